// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Control laws of On-Ramp that are written in Python. Times are in whole nanoseconds of the sender's clock.

use onramp_cc::law::{self, ControlLaw, CustomLaw, Entry, FlowFacts, FlowLaw};
use onramp_units::{Mono, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer;
use pyo3::PyClass;

use super::{answer, Classes, NoParameters};

static CLASSES: Classes = Classes::new();

/// What a law knows of a flow before anything is sent.
#[pyclass(frozen, get_all, module = "onramp._onramp")]
pub struct Flow {
    /// Rate of the sender's line, in bits per second.
    line_rate_bps: u64,
    /// Payload of a full packet, in bytes.
    payload_bytes: u64,
    /// T: `onramp.threshold`, in ns.
    threshold_ns: i64,
    /// `onramp.max_pause`, in ns: a head leaves so long after it was first refused, whatever the law answers.
    max_pause_ns: i64,
}

/// A one-way delay that an OR-ACK has brought.
#[pyclass(frozen, get_all, module = "onramp._onramp")]
pub struct Sample {
    /// The OR-ACK's arrival, in ns.
    now_ns: i64,
    /// When the first byte of the segment with the sampled byte left, in ns.
    sent_ns: i64,
    /// Delay of the sampled byte, without its place in the segment, in ns. It is below zero if clocks are wrong.
    owd_ns: i64,
}

/// A segment, or a NIC's packet, that leaves.
#[pyclass(frozen, get_all, module = "onramp._onramp")]
pub struct Departure {
    /// In ns.
    now_ns: i64,
    /// In bytes, also of a retransmission.
    payload_bytes: u64,
    /// Since its first refusal, in ns; zero if it was not refused.
    held_ns: i64,
}

/// The head of a flow's queue, which would leave now without a law.
#[pyclass(frozen, get_all, module = "onramp._onramp")]
pub struct Head {
    /// In ns.
    now_ns: i64,
    /// Since its first refusal, in ns; zero if it was not refused.
    held_ns: i64,
    /// As that of the flow, in ns.
    max_pause_ns: i64,
}

/// Gives scenarios the control law `name` (`onramp.law`): `class` makes the state of a flow. A class may be replaced by one
/// of the same name.
#[pyfunction]
pub fn register_law(name: &str, about: &str, class: Py<PyAny>) -> PyResult<()> {
    let is_ours = CLASSES.all().contains_key(name);
    if !is_ours && ControlLaw::all().any(|law| law.name() == name) {
        return Err(PyValueError::new_err(format!(
            "there is a control law {name}: give yours another name"
        )));
    }
    CLASSES.put(name, class);
    if !is_ours {
        let name: &'static str = name.to_owned().leak();
        let law = move || {
            CustomLaw::starting(NoParameters::<false>, move |_, facts| {
                Box::new(Holding {
                    name,
                    facts: *facts,
                    object: None,
                })
            })
        };
        let entry = Entry::new(name, about.to_owned().leak(), Box::leak(Box::new(law)));
        law::register(Box::leak(Box::new(entry)));
    }
    Ok(())
}

/// A flow under an object of Python.
#[derive(Debug)]
struct Holding {
    name: &'static str,
    facts: FlowFacts,
    /// Made when it is first called, because an exception of its `__init__` must be a mistake as any other.
    object: Option<Py<PyAny>>,
}

impl Holding {
    /// Calls `method` with `argument`.
    fn call<T: PyClass + Into<PyClassInitializer<T>>>(
        &mut self,
        py: Python<'_>,
        method: &str,
        argument: T,
    ) -> PyResult<Py<PyAny>> {
        let object = match &mut self.object {
            Some(object) => object,
            none => {
                let flow = Flow {
                    line_rate_bps: self.facts.line_rate.bits_per_s(),
                    payload_bytes: self.facts.payload.get(),
                    threshold_ns: self.facts.threshold.as_ns(),
                    max_pause_ns: self.facts.max_pause.as_ns(),
                };
                none.insert(CLASSES.get(py, self.name).call1(py, (flow,))?)
            }
        };
        object.call_method1(py, method, (Py::new(py, argument)?,))
    }
}

impl FlowLaw for Holding {
    fn on_sample(&mut self, sample: &law::Sample) {
        let sample = Sample {
            now_ns: sample.now.ticks(),
            sent_ns: sample.sent.ticks(),
            owd_ns: sample.owd.as_ns(),
        };
        answer(|py| self.call(py, "on_sample", sample).map(drop));
    }

    fn on_departure(&mut self, departure: &law::Departure) {
        let departure = Departure {
            now_ns: departure.now.ticks(),
            payload_bytes: departure.payload.get(),
            held_ns: departure.held.as_ns(),
        };
        answer(|py| self.call(py, "on_departure", departure).map(drop));
    }

    fn hold_until(&mut self, head: &law::Head) -> Option<Time<Mono>> {
        let head = Head {
            now_ns: head.now.ticks(),
            held_ns: head.held.as_ns(),
            max_pause_ns: head.max_pause.as_ns(),
        };
        let until_ns: Option<i64> = answer(|py| self.call(py, "hold_until", head)?.extract(py));
        until_ns.map(Time::from_ticks)
    }
}
