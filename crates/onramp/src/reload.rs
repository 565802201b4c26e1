// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp reload`: lets daemons read their configuration again, and prints their answers.
use std::path::PathBuf;

use anyhow::{bail, Context, Result};
use onramp_status::{clock_socket_path, netns_inode, query, reload, sockets, Reloaded};

#[derive(clap::Args)]
pub struct Args {
    /// Device of the daemon [default: all daemons in this network namespace]
    #[arg(long)]
    dev: Option<String>,
    /// Socket of a daemon that was started with --socket
    #[arg(long, conflicts_with = "dev")]
    socket: Option<PathBuf>,
}

/// What is read of any daemon's status.
#[derive(serde::Deserialize)]
struct Daemon {
    pid: u32,
}

pub fn run(args: &Args) -> Result<()> {
    let netns = netns_inode().context("reading the network namespace")?;
    let (mut asked, mut refused) = (vec![], 0); // a daemon has a socket for each of its devices
    for socket in wanted(args, netns)? {
        let Daemon { pid } = query(&socket)?;
        if asked.contains(&pid) {
            continue;
        }
        asked.push(pid);
        let answer = reload(&socket)?;
        println!("{}", text(pid, &answer));
        refused += usize::from(answer.error.is_some());
    }
    if refused > 0 {
        bail!(
            "{refused} of {} daemons keep their former configuration",
            asked.len()
        );
    }
    Ok(())
}

/// The sockets of the daemons that were named, or of all, `onramp clock run` included.
fn wanted(args: &Args, netns: u64) -> Result<Vec<PathBuf>> {
    if let Some(socket) = &args.socket {
        return Ok(vec![socket.clone()]);
    }
    let clock = clock_socket_path(netns);
    match sockets(netns, args.dev.as_deref()) {
        Ok(sockets) => Ok(sockets),
        Err(_) if args.dev.is_none() && clock.exists() => Ok(vec![clock]),
        Err(none) => Err(none.into()),
    }
}

fn text(pid: u32, answer: &Reloaded) -> String {
    let changed = answer.changed.join("\n");
    let again = "keys and members were read again";
    match (&answer.error, &answer.file) {
        (Some(error), Some(file)) => format!("daemon {pid} refuses {file}:\n{error}"),
        (Some(error), None) => format!("daemon {pid} refuses keys or members:\n{error}"),
        (None, Some(file)) if changed.is_empty() => {
            format!("daemon {pid}: {file} has not changed; {again}")
        }
        (None, Some(file)) => format!("daemon {pid} uses {file} now:\n{changed}"),
        (None, None) if changed.is_empty() => {
            format!("daemon {pid} has no configuration file; {again}")
        }
        // A file that was there before has gone.
        (None, None) => format!("daemon {pid} has no configuration file; {again}:\n{changed}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(file: Option<&str>, changed: &[&str], error: Option<&str>) -> String {
        let answer = Reloaded {
            file: file.map(str::to_owned),
            changed: changed.iter().map(|line| (*line).to_owned()).collect(),
            error: error.map(str::to_owned),
        };
        text(7, &answer)
    }

    #[test]
    fn a_daemon_without_a_file_says_so() {
        let expected = "daemon 7 has no configuration file; keys and members were read again";
        assert_eq!(report(None, &[], None), expected);
        let gone = report(None, &["law.gain: 0.5, was 0.2"], None);
        assert_eq!(gone, format!("{expected}:\nlaw.gain: 0.5, was 0.2"));
        let refused = report(None, &[], Some("cannot read /k"));
        assert_eq!(refused, "daemon 7 refuses keys or members:\ncannot read /k");
    }

    #[test]
    fn a_daemon_with_a_file_names_it() {
        let same = "daemon 7: /f has not changed; keys and members were read again";
        assert_eq!(report(Some("/f"), &[], None), same);
        let uses = "daemon 7 uses /f now:\nlaw.gain: 0.5, was 0.2";
        assert_eq!(report(Some("/f"), &["law.gain: 0.5, was 0.2"], None), uses);
        let refuses = "daemon 7 refuses /f:\n/f:1: x is no key";
        assert_eq!(report(Some("/f"), &[], Some("/f:1: x is no key")), refuses);
    }
}
