// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Congestion controls of NICs that are written in Python.

use std::cell::{Cell, OnceCell};

use onramp_cc::nic::{
    self, Ack, Algorithm, CongestionControl, Feedback, Limits, Needs, PathFacts, Preset,
};
use onramp_units::{Rate, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::{answer, ns, Classes, NoParameters};

static CLASSES: Classes = Classes::new();

/// A flow's path, before anything is sent.
#[pyclass(frozen, get_all, module = "onramp._onramp")]
pub struct NicPath {
    /// Rate of the sender's line, in bits per second.
    line_rate_bps: u64,
    /// Round-trip time of an idle network between the hosts that are furthest apart, in ns.
    base_rtt_ns: f64,
    /// Bandwidth-delay product of that path, in bytes.
    bdp_bytes: u64,
    /// Payload of a full packet, in bytes.
    payload_bytes: u64,
}

/// An acknowledgement of a NIC.
#[pyclass(frozen, get_all, module = "onramp._onramp")]
pub struct RateAck {
    /// Simulated time, in ns.
    now_ns: f64,
    /// All bytes below this have arrived.
    acked: u64,
    /// The next byte to send.
    next: u64,
    /// Since the acknowledged packet was sent, in ns.
    rtt_ns: f64,
    /// Whether that packet was marked CE.
    marked: bool,
}

impl<const TIME_STAMPS: bool> Needs for NoParameters<TIME_STAMPS> {
    const FEEDBACK: Feedback = match TIME_STAMPS {
        true => Feedback::TimeStamp,
        false => Feedback::Marks,
    };
}

/// What a class was registered with; another one needs another name.
type Kind = (bool, bool);

/// Gives scenarios the congestion control `name` for nic hosts: `class` makes the state of a flow. `kind`: whether packets carry
/// their time, and whether switches mark by a step, as for DCTCP, in place of RED. A class may be replaced by one of the same
/// name.
#[pyfunction]
pub fn register_rate_control(
    name: &str,
    about: &str,
    kind: Kind,
    class: Py<PyAny>,
) -> PyResult<()> {
    let is_ours = CLASSES.all().contains_key(name);
    if !is_ours && nic::preset(name).is_some() {
        return Err(PyValueError::new_err(format!(
            "there is a congestion control {name}: give yours another name"
        )));
    }
    if is_ours && nic::preset(name).is_some_and(|preset| kind_of(preset) != kind) {
        return Err(PyValueError::new_err(format!(
            "the congestion control {name} was registered with other options: give it another name"
        )));
    }
    CLASSES.put(name, class);
    if !is_ours {
        register(name.to_owned().leak(), about.to_owned().leak(), kind);
    }
    Ok(())
}

fn kind_of(preset: &Preset) -> Kind {
    let line = Rate::from_bits_per_s(1_000_000_000).expect("above zero");
    let has_time = (preset.algorithm)(line).feedback() == Feedback::TimeStamp;
    (has_time, (preset.ecn)(line) == nic::step(line))
}

fn register(name: &'static str, about: &'static str, (time_stamps, step): Kind) {
    let algorithm = move |_line: Rate| match time_stamps {
        true => Algorithm::custom(NoParameters::<true>, move |_, path| {
            Box::new(Control::new(name, path))
        }),
        false => Algorithm::custom(NoParameters::<false>, move |_, path| {
            Box::new(Control::new(name, path))
        }),
    };
    let preset = Preset::new(name, about, Box::leak(Box::new(algorithm)));
    let preset = match step {
        true => preset.ecn(nic::step),
        false => preset,
    };
    nic::register(Box::leak(Box::new(preset)));
}

/// A flow under an object of Python.
#[derive(Debug)]
struct Control {
    name: &'static str,
    path: PathFacts,
    /// Made when its limits are first asked for, because an exception of its `__init__` must be a mistake as any other.
    object: OnceCell<Py<PyAny>>,
    /// What the object had after the last call.
    limits: Cell<Option<Limits>>,
}

impl Control {
    fn new(name: &'static str, path: &PathFacts) -> Control {
        Control {
            name,
            path: *path,
            object: OnceCell::new(),
            limits: Cell::new(None),
        }
    }

    fn object(&self) -> &Py<PyAny> {
        self.object.get_or_init(|| {
            let path = NicPath {
                line_rate_bps: self.path.line_rate.bits_per_s(),
                base_rtt_ns: ns(self.path.base_rtt),
                bdp_bytes: self.path.bdp_bytes,
                payload_bytes: self.path.payload_bytes,
            };
            answer(|py| CLASSES.get(py, self.name).call1(py, (path,)))
        })
    }

    /// Reads the attributes of the object.
    fn read(&self) -> Limits {
        let object = self.object();
        answer(|py| {
            let object = object.bind(py);
            let rate: f64 = object.getattr("rate_bps")?.extract()?;
            let window: Option<u64> = object.getattr("window_bytes")?.extract()?;
            let rate = Rate::from_bits_per_s(rate as u64).ok_or_else(|| {
                PyValueError::new_err(format!("rate_bps is {rate}, expected at least 1"))
            })?;
            Ok(Limits {
                rate,
                window_bytes: window.unwrap_or(u64::MAX),
            })
        })
    }
}

impl CongestionControl for Control {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        let shown = RateAck {
            now_ns: ns(ack.now - Time::ZERO),
            acked: ack.acked,
            next: ack.next,
            rtt_ns: ns(ack.rtt),
            marked: ack.marked,
        };
        let object = self.object();
        answer(|py| object.call_method1(py, "on_ack", (shown,)).map(drop));
        self.limits.set(Some(self.read()));
    }

    fn limits(&self) -> Limits {
        let limits = self.limits.get().unwrap_or_else(|| self.read());
        self.limits.set(Some(limits));
        limits
    }
}
