// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The file of a trace: a thread that writes, changes to a new file when one is full, and survives a full disk. What
//! cannot be written is counted, and lost.
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use anyhow::{anyhow, Context, Result};
use onramp_trace::{Head, Record};
use tracing::warn;

use crate::config::TraceKeys;
use crate::trouble::Trouble;

/// Texts that wait for the disk, each of one look.
const WAITING: usize = 64;

type Shared = Arc<Mutex<onramp_status::Trace>>;

/// The thread that writes.
pub struct File {
    texts: SyncSender<(String, u64)>,
    status: Shared,
    thread: JoinHandle<()>,
}

impl File {
    /// Begins a file. That it cannot be written is no error: the daemon goes on, says so, and tries again.
    ///
    /// # Errors
    /// There is no thread.
    pub fn begin(path: &Path, keys: &TraceKeys, head: &Head) -> Result<File> {
        let status = onramp_status::Trace {
            path: path.to_owned(),
            ..Default::default()
        };
        let status: Shared = Arc::new(Mutex::new(status));
        let writer = Writer::new(path, keys, head);
        let (texts, waiting) = sync_channel(WAITING);
        let shared = status.clone();
        let run = move || write_all(writer, &waiting, &shared);
        let thread = std::thread::Builder::new().name("trace".to_owned());
        let thread = thread
            .spawn(run)
            .context("cannot start the thread of the trace")?;
        Ok(File {
            texts,
            status,
            thread,
        })
    }

    /// Gives records to the thread; if it is behind, they are lost and counted.
    pub fn write(&self, records: &[Record]) {
        let number = records.len() as u64;
        let lines = records.iter().filter_map(line);
        let text: String = lines.collect();
        let sent = match number {
            0 => Ok(()),
            _ => self.texts.try_send((text, number)),
        };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = sent {
            lock(&self.status).lost += number;
        }
    }

    /// Waits until all is written.
    pub fn end(self) {
        drop(self.texts);
        if self.thread.join().is_err() {
            warn!("the thread of the trace has ended early; its last records may be lost");
        }
    }

    pub fn status(&self) -> onramp_status::Trace {
        lock(&self.status).clone()
    }
}

fn line(record: &Record) -> Option<String> {
    Some(serde_json::to_string(record).ok()? + "\n")
}

fn lock(status: &Shared) -> std::sync::MutexGuard<'_, onramp_status::Trace> {
    status
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn write_all(mut writer: Writer, texts: &Receiver<(String, u64)>, status: &Shared) {
    let mut trouble = Trouble::of("the trace is not written, and its records are lost");
    // The head at once, so that a mistake shows at the start and not with the first flow.
    let mut note = |outcome: Result<()>, number: u64| {
        let mut status = lock(status);
        status.error = outcome.as_ref().err().map(|error| format!("{error:#}"));
        match outcome.is_ok() {
            true => status.written += number,
            false => status.lost += number,
        }
        drop(status);
        trouble.note(outcome);
    };
    note(writer.write(""), 0);
    for (text, number) in texts {
        note(writer.write(&text), number);
    }
}

/// Writes whole lines.
struct Writer {
    path: PathBuf,
    max_bytes: u64,
    keep: u32,
    head: String,
    open: Option<(std::fs::File, u64)>,
}

impl Writer {
    fn new(path: &Path, keys: &TraceKeys, head: &Head) -> Writer {
        Writer {
            path: path.to_owned(),
            max_bytes: keys.max_size.get(),
            keep: keys.keep,
            head: line(&Record::Head(head.clone())).unwrap_or_default(),
            open: None,
        }
    }

    /// Writes `text`, at the end of the file or into a new one.
    fn write(&mut self, text: &str) -> Result<()> {
        let written = self.try_write(text);
        if written.is_err() {
            self.open = None; // it may be gone, or a disk may be back
        }
        written.map_err(|error| {
            let path = self.path.display();
            let fix = match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "free some space, or lower trace.max_size or trace.keep"
                }
                io::ErrorKind::ReadOnlyFilesystem => {
                    "set trace.path to a directory that can be written"
                }
                io::ErrorKind::PermissionDenied => {
                    "let the directory belong to the user that runs the daemon"
                }
                _ => "make the directory, or set trace.path to another file",
            };
            anyhow!("cannot write {path}: {error}; {fix}")
        })
    }

    fn try_write(&mut self, text: &str) -> io::Result<()> {
        if let Some((_, bytes)) = &self.open {
            if bytes + text.len() as u64 > self.max_bytes {
                self.open = None;
                self.rotate()?;
            }
        }
        if self.open.is_none() {
            self.open = Some(self.begin()?);
        }
        let Some((file, bytes)) = &mut self.open else {
            return Ok(());
        };
        match file.write_all(text.as_bytes()) {
            Ok(()) => {
                *bytes += text.len() as u64;
                Ok(())
            }
            Err(error) => {
                let _ = file.set_len(*bytes); // no half line
                Err(error)
            }
        }
    }

    /// Opens the file. A daemon that began again writes its head behind what is there, on a line of its own.
    fn begin(&self) -> io::Result<(std::fs::File, u64)> {
        let mut options = OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options
            .append(true)
            .create(true)
            .read(true)
            .open(&self.path)?;
        let before = cut_half_line(&file)?;
        if before + self.head.len() as u64 > self.max_bytes && before > 0 {
            drop(file);
            self.rotate()?;
            return self.begin();
        }
        if let Err(error) = file.write_all(self.head.as_bytes()) {
            let _ = file.set_len(before);
            return Err(error);
        }
        Ok((file, before + self.head.len() as u64))
    }

    /// trace becomes trace.1, trace.1 becomes trace.2, and so on; the oldest is replaced.
    fn rotate(&self) -> io::Result<()> {
        for number in (1..self.keep).rev() {
            rename(
                &numbered(&self.path, number),
                &numbered(&self.path, number + 1),
            )?;
        }
        match self.keep {
            0 => remove(&self.path),
            _ => rename(&self.path, &numbered(&self.path, 1)),
        }
    }
}

/// Cuts what follows the last line: the daemon before was killed while it wrote. Returns the size.
fn cut_half_line(file: &std::fs::File) -> io::Result<u64> {
    use std::os::unix::fs::FileExt;
    let mut size = file.metadata()?.len();
    let whole = size;
    let mut byte = [0];
    while size > 0 {
        file.read_exact_at(&mut byte, size - 1)?;
        if byte == *b"\n" {
            break;
        }
        size -= 1;
    }
    if size < whole {
        file.set_len(size)?;
    }
    Ok(size)
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    unless_missing(std::fs::rename(from, to))
}

fn remove(path: &Path) -> io::Result<()> {
    unless_missing(std::fs::remove_file(path))
}

fn unless_missing(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
