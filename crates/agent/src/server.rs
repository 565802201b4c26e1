// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Common to all daemons: wait for signals, and answer requests.
use std::{
    fs::Permissions,
    io::{self, Read, Write},
    ops::Deref,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::{
            fs::PermissionsExt,
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    sync::{
        mpsc::{sync_channel, Receiver, SyncSender},
        Arc,
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use nix::{
    poll::{poll, PollFd, PollFlags, PollTimeout},
    sys::{
        eventfd::{EfdFlags, EventFd},
        signal::{SigSet, Signal},
        signalfd::{SfdFlags, SignalFd},
    },
};
use onramp_status::Request;
use serde::Serialize;
use tracing::warn;

/// Longest request, bytes; longer ones are none.
const LONGEST_REQUEST: usize = 128;
/// Time that a client has for its request, and again for the answer.
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

/// A socket at which clients ask. A thread of its own reads requests and writes answers, so a client that is slow at either
/// holds up other clients, and nothing else.
pub struct Door {
    asked: Receiver<Question>,
    /// Readable while a request waits.
    bell: Arc<EventFd>,
}

/// One whose socket goes with it: nobody renames it.
pub struct OwnDoor {
    door: Door,
    path: PathBuf,
}

impl OwnDoor {
    /// As [`Door::open`].
    ///
    /// # Errors
    /// The socket cannot be bound.
    pub fn open(path: PathBuf) -> Result<OwnDoor> {
        let door = Door::open(&path)?;
        Ok(OwnDoor { door, path })
    }
}

impl Deref for OwnDoor {
    type Target = Door;

    fn deref(&self) -> &Door {
        &self.door
    }
}

impl Drop for OwnDoor {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path); // the next daemon replaces what stays
    }
}

struct Question {
    request: Request,
    answer: SyncSender<String>,
}

impl Door {
    /// Listens at `socket`. The thread has this thread's capabilities and signal mask.
    ///
    /// # Errors
    /// The socket cannot be bound.
    pub fn open(socket: &Path) -> Result<Door> {
        let listener = listen(socket)?;
        let bell = Arc::new(EventFd::from_flags(
            EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK,
        )?);
        let (ask, asked) = sync_channel(1);
        let rings = Arc::clone(&bell);
        thread::Builder::new()
            .name("door".into())
            .spawn(move || while admit(&listener, &ask, &rings) {})?;
        Ok(Door { asked, bell })
    }

    /// Answers the client that waits, if one does; never waits itself.
    pub fn answer(&self, respond: impl FnOnce(Request) -> Result<String>) {
        let _ = self.bell.read();
        let Ok(waiting) = self.asked.try_recv() else {
            return;
        };
        match respond(waiting.request) {
            // The thread waits for nothing else, so there is room.
            Ok(text) => drop(waiting.answer.try_send(text)),
            Err(error) => warn!("{UNANSWERED}: {error:#}"),
        }
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

const UNANSWERED: &str = "a client at the socket got no answer";

/// Lets the next client ask, and brings it the answer. False: the daemon has ended.
fn admit(listener: &UnixListener, ask: &SyncSender<Question>, bell: &EventFd) -> bool {
    let (stream, request) = match next_request(listener) {
        Ok(next) => next,
        Err(error) => {
            warn!("{UNANSWERED}: {error:#}");
            return true;
        }
    };
    let (answer, answered) = sync_channel(1);
    if ask.send(Question { request, answer }).is_err() {
        return false;
    }
    let _ = bell.write(1);
    // Without an answer the daemon has said why.
    let Ok(text) = answered.recv() else {
        return true;
    };
    if let Err(error) = write_within(&stream, text.as_bytes(), PATIENCE) {
        warn!("{UNANSWERED}: {error}");
    }
    true
}

/// Listens at `socket` for requests.
fn listen(socket: &Path) -> Result<UnixListener> {
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
/// The client asks for something unknown, or not within a second.
fn next_request(listener: &UnixListener) -> Result<(UnixStream, Request)> {
    let (stream, _) = match listener.accept() {
        Ok(accepted) => accepted,
        Err(error) => {
            thread::sleep(PATIENCE); // descriptors are short, and may be again
            return Err(error.into());
        }
    };
    let text = read_within(&stream, PATIENCE)?;
    let request = Request::of(&text).with_context(|| {
        format!("the request is {text:?}, which is neither status, reload nor flow; use the onramp of the daemon's version")
    })?;
    Ok((stream, request))
}

/// All that a client writes, of which there may not be more than a request has.
fn read_within(mut stream: &UnixStream, patience: Duration) -> io::Result<String> {
    let deadline = Instant::now() + patience;
    let mut text = vec![];
    let mut buffer = [0; LONGEST_REQUEST];
    loop {
        stream.set_read_timeout(Some(left(deadline)?))?;
        let room = LONGEST_REQUEST - text.len();
        match stream.read(&mut buffer[..room])? {
            0 => return String::from_utf8(text).map_err(io::Error::other),
            count => text.extend_from_slice(&buffer[..count]),
        }
    }
}

fn write_within(mut stream: &UnixStream, bytes: &[u8], patience: Duration) -> io::Result<()> {
    let deadline = Instant::now() + patience;
    let mut written = 0;
    while written < bytes.len() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        written += stream.write(&bytes[written..])?;
    }
    Ok(())
}

/// The time until the deadline.
///
/// # Errors
/// It has passed.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(io::Error::from(io::ErrorKind::TimedOut)),
        false => Ok(left),
    }
}

/// An answer, as it is sent.
pub fn json(answer: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(answer)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Shutdown;

    /// A client that writes this; it may be refused before all is written.
    fn client(socket: &Path, writes: &str) -> UnixStream {
        let mut stream = UnixStream::connect(socket).expect("it listens");
        let _ = stream.write_all(writes.as_bytes());
        stream
    }

    /// What the next client gets that asks for the status; nothing if it was too slow.
    fn ask(socket: &Path) -> String {
        let mut stream = client(socket, "status");
        let _ = stream.shutdown(Shutdown::Write);
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    }

    /// One that writes nothing more, one that writes for ever, and one that reads nothing of an answer that fills its buffers: the
    /// daemon is only asked by those that ask, and never waits.
    #[test]
    fn a_slow_client_holds_up_nobody_for_long() {
        let folder = tempfile::tempdir().expect("/tmp is writable");
        let socket = folder.path().join("door");
        let door = Door::open(&socket).expect("the socket is new");
        let _silent = client(&socket, "stat");
        let _endless = client(&socket, &"status".repeat(LONGEST_REQUEST));
        let deaf = client(&socket, "status");
        let _ = deaf.shutdown(Shutdown::Write);
        let long = "x".repeat(10_000_000);
        let polite = thread::spawn(move || while ask(&socket) != "well" {});
        let mut answers = [long.as_str()].into_iter().chain(std::iter::repeat("well"));
        while !polite.is_finished() {
            wait(&[door.as_fd()], PollTimeout::from(100u8)).expect("it rings");
            door.answer(|request| {
                assert_eq!(request, Request::Status);
                Ok(answers.next().unwrap_or_default().to_owned())
            });
        }
    }
}
