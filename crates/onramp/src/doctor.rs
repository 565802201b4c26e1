//! `onramp doctor`: prints what crates/agent found out about this host, a line a feature.
use std::process::ExitCode;

use anyhow::Result;
use onramp_agent::doctor::{
    judge_device, judge_host, read_device, read_host, DeviceFacts, Finding, Gets, HostFacts, State,
};

#[derive(clap::Args)]
pub struct Args {
    /// Device to look at; may be given several times
    #[arg(long, required = true)]
    dev: Vec<String>,
}

/// The exit code is 0 if flows can be held on all devices, else 1.
pub fn run(args: &Args) -> Result<ExitCode> {
    let host = read_host()?;
    let mut holds = judge_host(&host)
        .iter()
        .all(|finding| finding.state < State::Missing);
    print!("{}", of_host(&host));
    for dev in &args.dev {
        let (path, text) = of_device(&host, &read_device(dev)?);
        holds &= path.holds();
        print!("{text}");
    }
    Ok(match holds {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The lines of a host.
pub fn of_host(host: &HostFacts) -> String {
    text("host", &judge_host(host))
}

/// The path that a device gets, and its lines.
pub fn of_device(host: &HostFacts, device: &DeviceFacts) -> (Gets, String) {
    let (path, findings) = judge_device(host, device);
    (path, text(&device.name, &findings))
}

fn text(head: &str, findings: &[Finding]) -> String {
    let mut out = format!("{head}\n");
    for finding in findings {
        let state = match finding.state {
            State::Ok => "ok",
            State::Limited => "limited",
            State::Missing => "MISSING",
        };
        out += &format!("  {:<13} {state:<8} {}\n", finding.feature, finding.found);
        if let Some(fix) = &finding.fix {
            out += &format!("{:25}fix: {fix}\n", "");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lacks_is_followed_by_what_mends_it() {
        let finding = Finding {
            feature: "bpffs",
            state: State::Missing,
            found: "not mounted".to_owned(),
            fix: Some("mount it".to_owned()),
        };
        let expected =
            "host\n  bpffs         MISSING  not mounted\n                         fix: mount it\n";
        assert_eq!(text("host", &[finding]), expected);
    }
}
