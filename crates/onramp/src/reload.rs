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

/// Of any daemon's status.
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
    let file = answer.file.as_deref().unwrap_or("no configuration file");
    match (&answer.error, answer.changed.as_slice()) {
        (Some(error), _) => format!("daemon {pid} refuses {file}:\n{error}"),
        (None, []) => {
            format!("daemon {pid}: {file} has not changed; keys and members were read again")
        }
        (None, changed) => format!("daemon {pid} uses {file} now:\n{}", changed.join("\n")),
    }
}
