// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Watches the measured port and the machine while traffic runs.

use super::dilation::Dilation;
use super::load::Observer;
use super::probe::Event;
use super::soak::Soak;
use super::tools::{QdiscStats, Reading};
use super::topology::Instruments;
use super::Progress;
use crate::error::{Error, Result};
use crate::measure::{Port, QueueDelay, QueueTracker, Sample, Series};
use onramp_scenario::{HostId, Run};
use std::sync::atomic::{AtomicBool, Ordering};

/// Points of a series: enough for a picture two screens wide.
const SERIES_POINTS: usize = 4000;

/// What was observed in a run. Times are the rack's own (dilated), from the start of the traffic; the window
/// is from warm-up to the end of the traffic.
#[derive(Debug)]
pub struct Observed {
    pub port: MeasuredPort,
    pub one_way: OneWay,
    /// Drops at all ports since warm-up, as the kernel counts them.
    pub drops: u64,
    /// Drops by the hosts' stock qdiscs, in the whole run.
    pub host_drops: u64,
    /// Frames that left all ports within the window.
    pub frames: u64,
    /// From warm-up until everything had finished, ns.
    pub elapsed_ns: i64,
    /// CPU time of the window, ns, if it was measured.
    pub busy_ns: Option<i64>,
    /// Events of the probes that were lost.
    pub lost_events: u64,
    /// Frames for no host of the rack.
    pub unknown_frames: u64,
}

/// What was observed at the measured port.
#[derive(Debug)]
pub struct MeasuredPort {
    /// Queueing delay in the window, ns; none if no frame came.
    pub queue: Option<QueueDelay>,
    /// Fraction of the window in which the port had nothing to send.
    pub idle_fraction: f64,
    /// Bytes that the port took within the window.
    pub admitted_bytes: u64,
    /// Drops that the probes saw within the window.
    pub probed_drops: u64,
    /// Drops since warm-up, as the kernel counts them.
    pub drops: u64,
    /// Peaks of the queueing delay, ns.
    pub queue_series: Vec<Sample>,
    /// Fraction of each interval in which the port was sending.
    pub load_series: Vec<Sample>,
}

/// One-way delays to the measured host.
#[derive(Debug)]
pub struct OneWay {
    /// All of the window, ns.
    pub ns: Vec<f64>,
    /// Peaks, ns.
    pub series: Vec<Sample>,
}

/// An [`Observer`] that reads a rack's instruments.
pub struct Watch<'a> {
    dilation: Dilation,
    run: &'a Run,
    measured: HostId,
    instruments: Instruments<'a>,
    cancel: &'a AtomicBool,
    progress: &'a mut dyn FnMut(Progress),
    zero_ns: i64,
    now_ns: i64,
    queue: QueueTracker,
    queue_series: Series,
    one_way_series: Series,
    one_way_ns: Vec<f64>,
    /// Counters of the ports when the window opened and when it closed.
    opening: Option<Reading>,
    closing: Option<Reading>,
    opened_ns: i64,
    soak: Option<Soak>,
    idle_before_ns: i64,
    busy_ns: Option<i64>,
}

impl<'a> Watch<'a> {
    /// Watches the port of host `measured`.
    pub fn new(
        run: &'a Run,
        measured: HostId,
        instruments: Instruments<'a>,
        cancel: &'a AtomicBool,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Watch<'a> {
        let dilation = Dilation::new(run.time_dilation);
        let port = Port {
            rate: dilation.slow_rate(run.network.link_of(measured).rate),
            buffer_bytes: run.network.ports.buffer.get(),
        };
        let (from_ns, until_ns) = window(run);
        Watch {
            dilation,
            run,
            measured,
            instruments,
            cancel,
            progress,
            zero_ns: 0,
            now_ns: 0,
            queue: QueueTracker::new(port, from_ns, until_ns),
            queue_series: Series::new(until_ns, SERIES_POINTS),
            one_way_series: Series::new(until_ns, SERIES_POINTS),
            one_way_ns: Vec::new(),
            opening: None,
            closing: None,
            opened_ns: 0,
            soak: None,
            idle_before_ns: 0,
            busy_ns: None,
        }
    }

    /// Also measures the CPU time of the window.
    pub fn measuring_cpu(mut self, soak: Soak) -> Self {
        self.soak = Some(soak);
        self
    }

    /// Reads what is left and adds up.
    pub fn finish(mut self) -> Result<Observed> {
        let last = Some(self.instruments.read_ports()?);
        let ports = |reading: Option<Reading>| match reading {
            Some(reading) => self.instruments.ports(reading),
            None => Ok(Vec::new()),
        };
        let (before, closing) = (ports(self.opening.take())?, ports(self.closing.take())?);
        let last = ports(last)?;
        let changes = || last.iter().zip(&before);
        let measured = self.measured as usize;
        let (from_ns, until_ns) = window(self.run);
        Ok(Observed {
            port: MeasuredPort {
                queue: self.queue.delay(),
                idle_fraction: self.queue.idle_ns() / (until_ns - from_ns) as f64,
                admitted_bytes: self.queue.admitted_bytes,
                probed_drops: self.queue.dropped,
                drops: changes()
                    .nth(measured)
                    .map_or(0, |(now, before)| now.drops - before.drops),
                queue_series: self.queue_series.samples().cloned().collect(),
                load_series: self.queue.load.fractions().collect(),
            },
            one_way: OneWay {
                ns: self.one_way_ns,
                series: self.one_way_series.samples().cloned().collect(),
            },
            drops: changes()
                .map(|(now, before)| now.drops - before.drops)
                .sum(),
            host_drops: self.instruments.host_drops()?,
            frames: packets(&closing) - packets(&before),
            elapsed_ns: self.now_ns - self.opened_ns,
            busy_ns: self.busy_ns,
            lost_events: self.instruments.probe.lost(),
            unknown_frames: self.instruments.unknown_frames(),
        })
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Arrival {
                at_ns,
                bytes,
                queued_bytes,
            } => {
                let at = at_ns - self.zero_ns;
                let wait_ns = self.queue.arrive(at, bytes, queued_bytes);
                self.queue_series.add(at, wait_ns);
            }
            Event::Delay { at_ns, one_way_ns } => {
                let at = at_ns - self.zero_ns;
                self.one_way_series.add(at, one_way_ns as f64);
                let (from_ns, until_ns) = window(self.run);
                if (from_ns..until_ns).contains(&at) {
                    self.one_way_ns.push(one_way_ns as f64);
                }
            }
        }
    }

    fn drain(&mut self) -> Result<()> {
        for event in self.instruments.probe.drain()? {
            self.note(event);
        }
        Ok(())
    }
}

impl Observer for Watch<'_> {
    fn zero(&mut self, zero_ns: i64) {
        self.zero_ns = zero_ns;
    }

    fn window_opens(&mut self, now_ns: i64) -> Result<()> {
        self.opening = Some(self.instruments.read_ports()?);
        self.idle_before_ns = self.soak.as_ref().map_or(0, Soak::idle_ns);
        self.opened_ns = now_ns;
        Ok(())
    }

    fn window_closes(&mut self, now_ns: i64) -> Result<()> {
        // The thread that counts ends here: the rest of the run need not be slow.
        if let Some(soak) = self.soak.take() {
            self.busy_ns = Some(now_ns - self.opened_ns - (soak.idle_ns() - self.idle_before_ns));
        }
        self.closing = Some(self.instruments.read_ports()?);
        self.drain()
    }

    fn tick(&mut self, now_ns: i64) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        self.now_ns = now_ns;
        self.drain()?;
        let duration_ns = self.dilation.slow(self.run.duration).as_ns() as f64;
        (self.progress)(Progress::Traffic(
            (now_ns - self.zero_ns) as f64 / duration_ns,
        ));
        Ok(())
    }
}

/// Start and end of the measured window in the rack's time.
fn window(run: &Run) -> (i64, i64) {
    let dilation = Dilation::new(run.time_dilation);
    (
        dilation.slow(run.warmup).as_ns(),
        dilation.slow(run.duration).as_ns(),
    )
}

fn packets(ports: &[QdiscStats]) -> u64 {
    ports.iter().map(|port| port.packets).sum()
}
