// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The `onramp` command. Parses arguments, calls the other crates, and prints errors to stderr.
mod advise;
#[cfg(feature = "agent")]
mod agent;
mod args;
#[cfg(feature = "agent")]
mod bugtool;
mod cc;
mod clock;
mod compare;
mod connectivity;
mod daemons;
#[cfg(feature = "agent")]
mod detach;
#[cfg(feature = "agent")]
mod doctor;
mod doors;
mod experiment;
mod help;
mod keygen;
mod log;
#[cfg(not(feature = "rack"))]
mod missing;
mod output;
mod pipe;
#[cfg(feature = "rack")]
mod rack;
mod reference;
mod reload;
mod report;
mod reproduce;
mod scenario;
mod sim;
mod status;
mod sweep;
mod tbtcp;
mod top;
mod trace;

use std::process::ExitCode;
use std::sync::LazyLock;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use onramp_runs::Interrupted;

/// On-Ramp: holds packets at the sender while the network is congested, below any TCP
#[derive(Parser)]
#[command(version, long_version = LONG_VERSION.as_str(), propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the daemon, which holds traffic on this host
    #[cfg(feature = "agent")]
    #[command(subcommand)]
    Agent(agent::Command),
    /// The daemon (not in this build)
    #[cfg(not(feature = "agent"))]
    Agent(missing::Args),
    /// Congestion controls: where each can run, and ours for this host's kernel
    #[command(subcommand)]
    Cc(cc::Command),
    /// Restore devices that a killed daemon left, and remove all else that it left on this host
    #[cfg(feature = "agent")]
    #[command(after_help = "Example: onramp detach --dev eth0")]
    Detach(detach::Args),
    /// Restore devices that a killed daemon left (not in this build)
    #[cfg(not(feature = "agent"))]
    Detach(missing::Args),
    /// Check this host and its devices: which path flows get, what lacks, and what mends it
    #[cfg(feature = "agent")]
    #[command(
        after_help = "Examples: onramp doctor\n          onramp doctor --dev eth0 --peers 10.0.0.0/8\nThe options are those of onramp agent run. The exit code is 0 if flows can be held on all devices, else 1."
    )]
    Doctor(onramp_agent::config::DoctorOptions),
    /// Check this host (not in this build)
    #[cfg(not(feature = "agent"))]
    Doctor(missing::Args),
    /// Write one tar file for a report of a fault: statuses, metrics, versions, tc, ip and bpftool; no keys
    #[cfg(feature = "agent")]
    #[command(after_help = "Example: onramp bugtool --out /tmp/onramp.tar")]
    Bugtool(bugtool::Args),
    /// Write one tar file for a report of a fault (not in this build)
    #[cfg(not(feature = "agent"))]
    Bugtool(missing::Args),
    /// Say what On-Ramp would do for the traffic of traces, flow logs or captures, and advise for or against it
    #[command(
        after_help = "Examples: onramp advise /var/log/onramp/*.trace --buffer '300 kB' --out advice\n          onramp advise conn.log --rate '25 Gbit/s'"
    )]
    Advise(advise::Args),
    /// Show the status of the daemon: delays and pauses by peer, OR-ACKs, counters
    #[command(after_help = "Example: onramp status --dev eth0")]
    Status(status::Args),
    /// Let the daemon read its configuration again
    #[command(after_help = "Example: onramp reload --dev eth0")]
    Reload(reload::Args),
    /// Make a file with keys of the fleet, or change the keys of one
    #[command(after_help = keygen::EXAMPLES)]
    Keygen(keygen::Args),
    /// Compare cases with a baseline: paired differences with intervals, and which are beyond noise
    #[command(
        after_help = "Examples: onramp compare results/incast --baseline case=fq\n          onramp compare before after --baseline dir=before --metric incast.rct_us.p99"
    )]
    Compare(compare::Args),
    /// Test between two hosts whether OR-ACKs go there and come back, and keys and clocks agree
    #[command(subcommand)]
    Connectivity(connectivity::Command),
    /// Watch delays, pauses and OR-ACKs by peer, live and sortable
    #[command(
        after_help = "Examples: onramp top --sort wait\n          onramp top --once > peers.txt"
    )]
    Top(top::Args),
    /// Watch one flow: its delay, threshold and pauses, and whether it is held or why not
    #[command(
        after_help = "Example: onramp trace 10.0.0.1:43210 10.0.0.2:5001\nCtrl-C ends it. It ends by itself when the flow leaves the flow table."
    )]
    Trace(trace::Args),
    /// Synchronise clocks, and show their status
    #[command(subcommand)]
    Clock(clock::Command),
    /// Reproduce figures and tables of papers: run them, compare with the paper, keep the plots
    #[command(after_help = "Example: onramp reproduce f9 --quick")]
    Reproduce(reproduce::Args),
    /// Experiments of your own: a question, the runs that answer it, numbers with intervals, and plots
    #[command(subcommand)]
    Experiment(experiment::Command),
    /// Run scenarios on real Linux TCP stacks: the virtual rack
    #[cfg(feature = "rack")]
    #[command(subcommand)]
    Rack(rack::Command),
    /// Run scenarios on real Linux TCP stacks: the virtual rack (not in this build)
    #[cfg(not(feature = "rack"))]
    Rack(missing::Args),
    /// Write manual pages, completions of shells, and the reference of the command line
    #[command(subcommand)]
    Reference(reference::Args),
    /// Write one HTML page of results that works offline: comparison with the paper, plots, scenarios
    #[command(after_help = "Example: onramp report results/reproduce --out report.html")]
    Report(report::Args),
    /// Begin scenario files, check them, and explain their keys
    #[command(subcommand)]
    Scenario(scenario::Command),
    /// Run scenarios in the packet-level simulator
    #[command(subcommand)]
    Sim(sim::Command),
    /// Simulate a scenario at many points of its keys; makes one data set with a row for each run
    #[command(
        after_help = "Example: onramp sweep examples/sweep/threshold.toml --out results/threshold\nRepeat an interrupted command to resume it."
    )]
    Sweep(sweep::Args),
    /// Configure switches for Tiny Buffer TCP
    #[command(subcommand)]
    Tbtcp(tbtcp::Command),
}

/// The version, and the digests that recorded results carry.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let data_path = onramp_reproduce::made_by("").data_path.unwrap_or_default();
    let model = onramp_reproduce::SIMULATOR;
    let version = env!("CARGO_PKG_VERSION");
    format!("{version}\ndata path {data_path}\nsimulator {model}")
});

fn main() -> ExitCode {
    log::start();
    pipe::end_without_output();
    match run(help::parse(doors::grouped(Cli::command()))) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("onramp: {}", with_causes(&error));
            match error.is::<Interrupted>() {
                true => ExitCode::from(Interrupted::EXIT_CODE),
                false => ExitCode::FAILURE,
            }
        }
    }
}

/// The error with its causes, each once, because some errors include the text of their cause.
fn with_causes(error: &anyhow::Error) -> String {
    let mut messages: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        if !messages.iter().any(|message| message.ends_with(&cause)) {
            messages.push(cause);
        }
    }
    messages.join(": ")
}

fn run(cli: Cli) -> Result<ExitCode> {
    let done = match cli.command {
        #[cfg(feature = "agent")]
        Command::Doctor(args) => return doctor::run(&args),
        #[cfg(not(feature = "agent"))]
        Command::Doctor(_) => missing::refuse("agent"),
        #[cfg(feature = "agent")]
        Command::Agent(command) => agent::run(&command),
        #[cfg(not(feature = "agent"))]
        Command::Agent(_) => missing::refuse("agent"),
        Command::Cc(command) => cc::run(&command),
        #[cfg(feature = "agent")]
        Command::Bugtool(args) => bugtool::run(&args),
        #[cfg(not(feature = "agent"))]
        Command::Bugtool(_) => missing::refuse("agent"),
        #[cfg(feature = "agent")]
        Command::Detach(args) => detach::run(&args),
        #[cfg(not(feature = "agent"))]
        Command::Detach(_) => missing::refuse("agent"),
        Command::Advise(args) => advise::run(&args),
        Command::Connectivity(command) => return connectivity::run(&command),
        Command::Reload(args) => reload::run(&args),
        Command::Keygen(args) => keygen::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Clock(command) => clock::run(command),
        #[cfg(feature = "rack")]
        Command::Rack(command) => rack::run(command),
        #[cfg(not(feature = "rack"))]
        Command::Rack(_) => missing::refuse("rack"),
        Command::Reference(args) => reference::run(&args, Cli::command()),
        Command::Experiment(command) => experiment::run(&command),
        Command::Compare(args) => compare::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Scenario(command) => scenario::run(&command),
        Command::Sim(command) => sim::run(command),
        Command::Sweep(args) => return sweep::run(&args),
        Command::Tbtcp(command) => tbtcp::run(&command),
    };
    done.map(|()| ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let missing = || std::io::Error::from_raw_os_error(2);
        let source = missing();
        let error = anyhow::Error::from(missing()).context(format!("cannot read it: {source}"));
        let expected = "cannot read it: No such file or directory (os error 2)";
        assert_eq!(with_causes(&error), expected);
        let other = anyhow::Error::from(missing()).context("cannot read it");
        assert_eq!(with_causes(&other), expected);
    }
}
