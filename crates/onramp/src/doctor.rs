// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp doctor`: prints what crates/agent found out about this host, a line a feature.
use std::process::ExitCode;

use anyhow::Result;
use onramp_agent::{
    config::DoctorOptions,
    doctor::{
        judge_device, judge_host, read_device, read_host, DeviceFacts, Finding, HostFacts, Plan,
        State,
    },
};

/// The exit code is 0 if flows can be held on all devices, else 1.
pub fn run(options: &DoctorOptions) -> Result<ExitCode> {
    let plan = Plan::of(options)?;
    let devices = plan.devices()?;
    let host = read_host(plan)?;
    let findings = judge_host(&host);
    let mut holds = lacks_nothing(&findings);
    print!("{}", text("host", &findings));
    for dev in &devices {
        let device = read_device(dev)?;
        let (_, findings) = judge_device(&host, &device);
        holds &= lacks_nothing(&findings);
        print!("{}", text(dev, &findings));
    }
    Ok(match holds {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn lacks_nothing(findings: &[Finding]) -> bool {
    findings
        .iter()
        .all(|finding| finding.state < State::Missing)
}

/// The lines of a host.
pub fn of_host(host: &HostFacts) -> String {
    text("host", &judge_host(host))
}

/// The lines of a device.
pub fn of_device(host: &HostFacts, device: &DeviceFacts) -> String {
    text(&device.name, &judge_device(host, device).1)
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
        assert!(!lacks_nothing(std::slice::from_ref(&finding)));
        assert_eq!(text("host", &[finding]), expected);
    }
}
