//! Common to all daemons: wait for signals, and answer requests.
use std::{
    fs::Permissions,
    io::{Read, Write},
    os::{
        fd::BorrowedFd,
        unix::{
            fs::PermissionsExt,
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use nix::{
    poll::{poll, PollFd, PollFlags, PollTimeout},
    sys::{
        signal::{SigSet, Signal},
        signalfd::{SfdFlags, SignalFd},
    },
};
use onramp_status::Request;
use serde::Serialize;
use tracing::warn;

/// Longest request; longer ones are none.
const LONGEST_REQUEST: u64 = 128;
/// Longest wait for a client that does not read or write. Clients are the user that runs the daemon.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a signal asks a daemon to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// SIGINT, SIGTERM: restore everything and end.
    Stop,
    /// SIGHUP: read the configuration again.
    Reload,
    /// SIGUSR2: end and leave everything to the next daemon.
    HandOver,
}

/// A descriptor that becomes readable on these signals.
pub fn block_signals() -> Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGINT);
    set.add(Signal::SIGTERM);
    set.add(Signal::SIGHUP);
    set.add(Signal::SIGUSR2);
    set.thread_block()?;
    Ok(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC)?)
}

/// What the signal asks for that has arrived.
pub fn asked(signals: &SignalFd) -> Result<Asked> {
    let signal = signals.read_signal()?.map(|signal| signal.ssi_signo);
    let is = |wanted: Signal| signal == Some(wanted as u32);
    Ok(match () {
        () if is(Signal::SIGHUP) => Asked::Reload,
        () if is(Signal::SIGUSR2) => Asked::HandOver,
        () => Asked::Stop,
    })
}

/// Permission bits of a socket: whoever connects can let the daemon read its configuration again.
const OWNER_ONLY: u32 = 0o600;

/// Listens at `socket` for requests.
pub fn listen(socket: &Path) -> Result<UnixListener> {
    let parent: PathBuf = socket.parent().map(Into::into).unwrap_or_default();
    std::fs::create_dir_all(&parent)
        .with_context(|| format!("cannot create {} for --socket", parent.display()))?;
    let _ = std::fs::remove_file(socket); // left by a daemon that was killed
    let cannot = || {
        format!(
            "cannot listen on {}; use another path with --socket",
            socket.display()
        )
    };
    let listener = UnixListener::bind(socket).with_context(cannot)?;
    std::fs::set_permissions(socket, Permissions::from_mode(OWNER_ONLY)).with_context(cannot)?;
    Ok(listener)
}

/// Waits until a descriptor is readable or the timeout ends; returns for each whether it is readable.
pub fn wait(fds: &[BorrowedFd<'_>], timeout: PollTimeout) -> Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> = fds
        .iter()
        .map(|fd| PollFd::new(*fd, PollFlags::POLLIN))
        .collect();
    match poll(&mut polled, timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(polled.iter().map(|p| p.any().unwrap_or(false)).collect())
}

/// The next client and its request.
///
/// # Errors
/// The client asks for something unknown, or for nothing within a second.
fn next_request(listener: &UnixListener) -> Result<(UnixStream, Request)> {
    let (stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = String::new();
    (&stream).take(LONGEST_REQUEST).read_to_string(&mut text)?;
    let request = Request::of(&text).with_context(|| {
        format!("the request is {text:?}, which is neither status, reload nor flow; use the onramp of the daemon's version")
    })?;
    Ok((stream, request))
}

/// An answer, as it is sent.
pub fn json(answer: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(answer)?)
}

/// Answers the next client; gives up after a second if the client does not read.
pub fn answer_next(listener: &UnixListener, respond: impl FnOnce(Request) -> Result<String>) {
    let answered = next_request(listener).and_then(|(mut stream, request)| {
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream.write_all(respond(request)?.as_bytes())?)
    });
    if let Err(error) = answered {
        warn!("a client at the socket got no answer: {error:#}");
    }
}
