// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Waits for events: one epoll instance for all sockets, and one timer.

use crate::error::{Doing, Result};
use onramp_scenario::HostId;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

/// Most events taken at once.
const BATCH: usize = 256;

/// Where an event comes from, packed into the 64 bits that epoll keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The timer has expired.
    Timer,
    /// A connection request at a host.
    Listener(HostId),
    /// One end of a connection is ready.
    Connection(usize),
}

impl From<Source> for EventData {
    fn from(source: Source) -> EventData {
        EventData::new_u64(match source {
            Source::Timer => 0,
            Source::Listener(host) => 1 << 32 | u64::from(host),
            Source::Connection(index) => 2 << 32 | index as u64,
        })
    }
}

impl From<EventData> for Source {
    fn from(data: EventData) -> Source {
        let low = data.u64() & 0xffff_ffff;
        match data.u64() >> 32 {
            0 => Source::Timer,
            1 => Source::Listener(low as HostId),
            _ => Source::Connection(low as usize),
        }
    }
}

/// The sources of events.
#[derive(Debug)]
pub struct Events {
    epoll: OwnedFd,
    timer: OwnedFd,
}

impl Events {
    /// Waits for nothing yet but its timer.
    pub fn new() -> Result<Events> {
        let doing = || "preparing to wait for events".to_owned();
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let events = Events {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).doing(doing)?,
            timer: rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags).doing(doing)?,
        };
        events.watch(&events.timer, Source::Timer)?;
        Ok(events)
    }

    /// Also waits for `fd`. Connections tell each change once; the others as long as it lasts.
    pub fn watch(&self, fd: impl AsFd, source: Source) -> Result<()> {
        let flags = match source {
            Source::Connection(_) => EventFlags::IN | EventFlags::OUT | EventFlags::ET,
            Source::Timer | Source::Listener(_) => EventFlags::IN,
        };
        epoll::add(&self.epoll, fd, source.into(), flags).doing(|| "watching a socket".into())
    }

    /// Sets the timer to `at_ns` of CLOCK_MONOTONIC.
    pub fn wake_at(&self, at_ns: i64) -> Result<()> {
        let time = |ns: i64| Timespec {
            tv_sec: ns / 1_000_000_000,
            tv_nsec: ns % 1_000_000_000,
        };
        let once = Itimerspec {
            it_interval: time(0),
            it_value: time(at_ns),
        };
        rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)
            .map(drop)
            .doing(|| "setting the timer".into())
    }

    /// Waits until an event occurs.
    pub fn wait(&self) -> Result<Vec<Source>> {
        let mut events = Vec::with_capacity(BATCH);
        let room = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.epoll, room, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).doing(|| "waiting for events".into()),
        }
        let sources: Vec<Source> = events.iter().map(|event| event.data.into()).collect();
        if sources.contains(&Source::Timer) {
            // Only to make it quiet: the caller looks at the clock.
            let _ = rustix::io::read(&self.timer, &mut [0u8; 8]);
        }
        Ok(sources)
    }
}

/// CLOCK_MONOTONIC.
pub fn now_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_survive_epoll() {
        for source in [
            Source::Timer,
            Source::Listener(63),
            Source::Connection(0),
            Source::Connection(99_999),
        ] {
            assert_eq!(Source::from(EventData::from(source)), source);
        }
    }
}
