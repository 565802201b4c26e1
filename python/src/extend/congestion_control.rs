// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Congestion controls of TCP that are written in Python.

use onramp_cc::tcp::{self, Acked, Entry, TcpAlgorithm, WindowControl};
use onramp_cc::Cc;
use onramp_units::{Span, Time};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::{answer, ns, Classes, NoParameters};

static CLASSES: Classes = Classes::new();

/// A connection's window, in packets of 1448 B.
#[pyclass(module = "onramp._onramp")]
pub struct Window {
    /// Packets that may be in flight.
    #[pyo3(get, set)]
    packets: u32,
    /// Below this the window grows by slow start.
    #[pyo3(get, set)]
    slow_start_below: u32,
}

/// An acknowledgement.
#[pyclass(frozen, module = "onramp._onramp")]
pub struct Ack(Acked);

#[pymethods]
impl Ack {
    /// Simulated time, in ns.
    #[getter]
    fn now_ns(&self) -> f64 {
        ns(self.0.now - Time::ZERO)
    }

    /// Packets newly delivered.
    #[getter]
    fn packets(&self) -> u32 {
        self.0.packets
    }

    /// Those of them that were marked CE.
    #[getter]
    fn marked(&self) -> u32 {
        self.0.marked
    }

    /// All packets below this number have arrived.
    #[getter]
    fn cumulative(&self) -> u32 {
        self.0.cumulative
    }

    /// The packet to be sent next.
    #[getter]
    fn next(&self) -> u32 {
        self.0.next
    }

    /// Round-trip time of this acknowledgement, in ns.
    #[getter]
    fn rtt_ns(&self) -> f64 {
        ns(self.0.rtt)
    }

    /// The least round-trip time of the connection, in ns.
    #[getter]
    fn min_rtt_ns(&self) -> f64 {
        ns(self.0.min_rtt)
    }

    /// Whether the window limited the sender.
    #[getter]
    fn may_grow(&self) -> bool {
        self.0.may_grow
    }

    /// Packets in flight.
    #[getter]
    fn in_flight(&self) -> u32 {
        self.0.in_flight
    }

    /// Packets delivered so far.
    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered
    }

    /// Whether a packet was found lost just now.
    #[getter]
    fn lost(&self) -> bool {
        self.0.lost
    }

    /// Whether a loss is being repaired.
    #[getter]
    fn repairing(&self) -> bool {
        self.0.repairing
    }

    /// Sample of the delivery rate, in packets per second.
    #[getter]
    fn delivery_rate_pps(&self) -> Option<f64> {
        self.0.sample.packets_per_s
    }

    /// One-way delay of a packet in ns, by the clocks of the two hosts, if an OR-ACK has come since the acknowledgement
    /// before.
    #[getter]
    fn owd_ns(&self) -> Option<f64> {
        self.0.reported.owd.map(ns)
    }
}

/// Gives scenarios the congestion control `name` for kernel hosts: `class` makes the state of a connection. A class may be
/// replaced by one of the same name.
#[pyfunction]
pub fn register_congestion_control(
    name: &str,
    about: &str,
    marks: bool,
    class: Py<PyAny>,
) -> PyResult<()> {
    let known = tcp::entry(name);
    let is_ours = known.is_some() && CLASSES.all().contains_key(name);
    match known {
        Some(entry) if is_ours && entry.marks == marks => {}
        Some(_) if is_ours => {
            return Err(PyValueError::new_err(format!(
                "the congestion control {name} was registered with marks={}: give it another name",
                !marks
            )))
        }
        Some(_) => {
            return Err(PyValueError::new_err(format!(
                "there is a congestion control {name}: give yours another name"
            )))
        }
        None => {}
    }
    CLASSES.put(name, class);
    if !is_ours {
        debug_assert!(Cc::named(name).is_none_or(Cc::is_nic));
        let name: &'static str = name.to_owned().leak();
        let algorithm = move || {
            TcpAlgorithm::custom(NoParameters::<false>, move |_| {
                Box::new(Control { name, object: None })
            })
        };
        let entry = Entry::new(
            name,
            about.to_owned().leak(),
            Box::leak(Box::new(algorithm)),
        );
        tcp::register(Box::leak(Box::new(entry.marks(marks))));
    }
    Ok(())
}

/// A connection under an object of Python.
#[derive(Debug)]
struct Control {
    name: &'static str,
    /// Made when the connection begins, because an exception of its `__init__` must be a mistake as any other.
    object: Option<Py<PyAny>>,
}

impl Control {
    /// Calls `method`.
    fn call<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        args: impl PyCallArgs<'py>,
    ) -> PyResult<Py<PyAny>> {
        let object = self.object.as_ref().expect("the connection has begun");
        object.call_method1(py, method, args)
    }

    /// Calls `method` with the window, which it may change, and more.
    fn with_window(&self, window: &mut tcp::Window, method: &str, ack: Option<&Acked>) {
        answer(|py| {
            let shown = Py::new(
                py,
                Window {
                    packets: window.packets,
                    slow_start_below: window.slow_start_below,
                },
            )?;
            match ack {
                Some(ack) => self.call(py, method, (&shown, Ack(*ack)))?,
                None => self.call(py, method, (&shown,))?,
            };
            let set = shown.borrow(py);
            window.packets = set.packets;
            window.slow_start_below = set.slow_start_below;
            Ok(())
        });
    }
}

impl WindowControl for Control {
    fn begin(&mut self, window: &mut tcp::Window) {
        let name = self.name;
        self.object = Some(answer(|py| CLASSES.get(py, name).call0(py)));
        self.with_window(window, "begin", None);
    }

    fn on_ack(&mut self, window: &mut tcp::Window, acked: &Acked) {
        self.with_window(window, "on_ack", Some(acked));
    }

    fn on_loss(&mut self, window: &tcp::Window) -> u32 {
        answer(|py| {
            let shown = Window {
                packets: window.packets,
                slow_start_below: window.slow_start_below,
            };
            self.call(py, "on_loss", (shown,))?.extract(py)
        })
    }

    fn on_timeout(&mut self) {
        answer(|py| self.call(py, "on_timeout", ()).map(drop));
    }

    fn on_idle(&mut self, idle: Span) {
        answer(|py| self.call(py, "on_idle", (ns(idle),)).map(drop));
    }

    fn packets_per_s(&self, smoothed_rtt: Span) -> Option<f64> {
        answer(|py| {
            self.call(py, "pacing_rate_pps", (ns(smoothed_rtt),))?
                .extract(py)
        })
    }
}
