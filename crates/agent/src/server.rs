//! Common to all daemons: wait for signals, read keys again, and answer status requests.
use std::{
    io::Write,
    os::{
        fd::BorrowedFd,
        unix::net::{UnixListener, UnixStream},
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
use onramp_clock::keys::Keys;
use serde::Serialize;
use tracing::{error, info, warn};

/// A descriptor that becomes readable on SIGINT, SIGTERM or SIGHUP.
pub fn block_signals() -> Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGINT);
    set.add(Signal::SIGTERM);
    set.add(Signal::SIGHUP);
    set.thread_block()?;
    Ok(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC)?)
}

/// Whether the signal that has arrived is SIGHUP, which asks to read the keys again; the others ask to stop.
pub fn is_hangup(signals: &SignalFd) -> Result<bool> {
    let signal = signals.read_signal()?;
    Ok(signal.is_some_and(|signal| signal.ssi_signo == Signal::SIGHUP as u32))
}

/// Reads the key file again and hands its keys over. A file that is refused changes nothing.
pub fn reload_keys(key_file: Option<&Path>, take: impl FnOnce(Keys) -> Result<()>) {
    let Some(path) = key_file else {
        return info!("SIGHUP: there is no --key-file to read again");
    };
    let read = Keys::read(path).map_err(anyhow::Error::from);
    match read.and_then(take) {
        Ok(()) => info!("SIGHUP: the keys of {} are in use", path.display()),
        Err(error) => error!("SIGHUP: {error:#}; the former keys stay in use"),
    }
}

/// Listens at `socket` for status requests.
pub fn listen(socket: &Path) -> Result<UnixListener> {
    let parent: PathBuf = socket.parent().map(Into::into).unwrap_or_default();
    std::fs::create_dir_all(&parent)
        .with_context(|| format!("cannot create {} for --socket", parent.display()))?;
    let _ = std::fs::remove_file(socket); // left by a daemon that was killed
    UnixListener::bind(socket).with_context(|| {
        format!(
            "cannot listen on {}; use another path with --socket",
            socket.display()
        )
    })
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

/// Answers one client; gives up after a second if the client does not read.
pub fn answer(mut stream: UnixStream, status: &impl Serialize) -> Result<()> {
    stream.set_write_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(serde_json::to_string_pretty(status)?.as_bytes())?;
    Ok(())
}

/// Answers the next client with `status`.
pub fn answer_next<T: Serialize>(listener: &UnixListener, status: impl Fn() -> T) {
    let answered = listener
        .accept()
        .map_err(anyhow::Error::from)
        .and_then(|(stream, _)| answer(stream, &status()));
    if let Err(error) = answered {
        warn!("status client: {error:#}");
    }
}
