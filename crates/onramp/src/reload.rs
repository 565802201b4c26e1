//! `onramp reload`: lets daemons read their configuration again, and prints their answers.
use std::path::PathBuf;

use anyhow::{bail, Context, Result};
use onramp_status::{netns_inode, query, reload, sockets, Reloaded, Status};

#[derive(clap::Args)]
pub struct Args {
    /// Device of the daemon [default: all daemons in this network namespace]
    #[arg(long)]
    dev: Option<String>,
    /// Socket of a daemon that was started with --socket
    #[arg(long, conflicts_with = "dev")]
    socket: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<()> {
    let netns = netns_inode().context("reading the network namespace")?;
    let sockets = match &args.socket {
        Some(socket) => vec![socket.clone()],
        None => sockets(netns, args.dev.as_deref())?,
    };
    let (mut asked, mut refused) = (vec![], 0); // a daemon has a socket for each of its devices
    for socket in sockets {
        let status: Status = query(&socket)?;
        if asked.contains(&status.pid) {
            continue;
        }
        asked.push(status.pid);
        let answer = reload(&socket)?;
        println!("{}", text(status.pid, &answer));
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
