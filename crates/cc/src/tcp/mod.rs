// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Congestion controls of TCP: growth of the window, and its reduction at losses.
//!
//! Each has one file. A new one needs a file and a line in the list below (docs/architecture.md). Windows are
//! in packets.

use crate::parameter::{Parameter, ParameterValue, Parameters, Tuning};
use crate::plug::Plugs;
use crate::{Custom, Mistakes, Named, Watched};
use onramp_units::{Sim, Span, Time};
use std::fmt;

/// Payload of a packet.
const PACKET_BYTES: u32 = 1448;

/// A connection's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Packets that may be in flight.
    pub packets: u32,
    /// Below this it grows by slow start.
    pub slow_start_below: u32,
}

impl Window {
    /// The window of a new connection.
    pub fn initial(packets: u32) -> Window {
        Window {
            packets,
            slow_start_below: u32::MAX,
        }
    }

    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.packets < self.slow_start_below
    }

    /// RFC 5681 §3.1, as in Linux: the window grows by the acknowledged packets, up to the threshold. Returns
    /// the remaining acknowledged packets.
    #[inline]
    fn slow_start(&mut self, acked: u32) -> u32 {
        let to = self
            .packets
            .saturating_add(acked)
            .min(self.slow_start_below);
        let left = acked - (to - self.packets);
        self.packets = to;
        left
    }
}

/// The layer below TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    /// Packets of the largest segment.
    pub segment: u32,
    /// Its qdisc spaces segments by TCP's pace, and TCP knows: sch_fq.
    pub paces: bool,
}

/// Content of an acknowledgement.
#[derive(Debug, Clone, Copy)]
pub struct Acked {
    pub now: Time<Sim>,
    /// Packets newly delivered.
    pub packets: u32,
    /// Those of them that were marked CE.
    pub marked: u32,
    /// All below this have arrived; the packet to be sent next.
    pub cumulative: u32,
    pub next: u32,
    /// Round-trip time of this acknowledgement, and the least of the connection.
    pub rtt: Span,
    pub min_rtt: Span,
    /// Whether the window limited the sender.
    pub may_grow: bool,
    /// Packets in flight; packets delivered so far.
    pub in_flight: u32,
    pub delivered: u64,
    /// Whether a packet was found lost just now, and whether any loss is being repaired.
    pub lost: bool,
    pub repairing: bool,
    pub sample: RateSample,
    pub reported: Reported,
    pub pacing: Pacing,
}

/// What the receiver reports of single packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reported {
    /// The packet that led to this acknowledgement, unless it was sent again.
    pub arrival: Option<Arrival>,
    /// One-way delay of a packet, by the clocks of the two hosts, if an OR-ACK has come since the acknowledgement before.
    pub owd: Option<Span>,
}

/// A packet that was sent once and has arrived, as an acknowledgement tells by a time stamp (RFC 7323, with the time of
/// arrival).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    pub number: u32,
    pub sent_at: Time<Sim>,
    pub arrived_at: Time<Sim>,
    /// There was too little data to fill the path when it was sent.
    pub app_limited: bool,
}

/// How TCP hands packets to the layers below it.
#[derive(Debug, Clone, Copy)]
pub struct Pacing {
    /// TCP's pacing rate, in packets a second; none before it has one.
    pub packets_per_s: Option<f64>,
    /// Data that may wait below TCP, as time at the pacing rate. It bounds the size of segments.
    pub small_queue: Span,
    pub device: Device,
}

/// A sample of the delivery rate (Cheng et al., draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Debug, Clone, Copy, Default)]
pub struct RateSample {
    pub packets_per_s: Option<f64>,
    /// Packets that had been delivered when the sample's packet was sent.
    pub prior_delivered: u64,
    /// Application limited: there was too little data to fill the path.
    pub app_limited: bool,
}

/// Where Linux gets a congestion control from.
#[derive(Debug, Clone, Copy)]
pub enum Linux {
    /// It does not have it.
    Lacks,
    /// It has it, as stock kernels do.
    Has,
    /// `onramp cc load` gives it the one of bpf/cc with this configuration.
    Loads(fn(&Tuning) -> Vec<u8>),
}

/// For [`Linux::Loads`]: the configuration of law/cc as the kernel's program has it.
fn in_kernel<P: Parameters + Default, C: bytemuck::NoUninit>(
    given: &Tuning,
    law: impl Fn(&P) -> C,
) -> Vec<u8> {
    let mut params = P::default();
    params.tune(given);
    bytemuck::bytes_of(&law(&params)).to_vec()
}

/// A congestion control, as a scenario names it.
#[non_exhaustive]
pub struct Entry {
    /// Name in scenarios and in Linux.
    pub name: &'static str,
    /// Full name, with its source.
    pub about: &'static str,
    /// Where Linux gets it from.
    pub linux: Linux,
    /// Whether it needs marks.
    pub marks: bool,
    /// Whether it needs segments of at most 16 kB: what it reads from a burst is the burst's own length otherwise.
    pub short_segments: bool,
    /// Parameters that scenarios can set.
    pub parameters: &'static [Parameter],
    /// Pairs of parameters of which the first is not above the second.
    pub ordered: &'static [(&'static str, &'static str)],
    /// Jain's index of two flows that share a link, at least.
    pub fairness: f64,
    /// Payload of a flow alone on a link, as a part of the line, at least.
    pub fills: f64,
    /// With its source's parameters.
    pub algorithm: &'static (dyn Fn() -> TcpAlgorithm + Sync),
}

impl Entry {
    /// A congestion control of another crate, without parameters. Its `algorithm` is [`TcpAlgorithm::custom`].
    pub const fn new(
        name: &'static str,
        about: &'static str,
        algorithm: &'static (dyn Fn() -> TcpAlgorithm + Sync),
    ) -> Entry {
        Entry {
            name,
            about,
            linux: Linux::Lacks,
            marks: false,
            short_segments: false,
            parameters: &[],
            ordered: &[],
            fairness: crate::FAIR,
            fills: crate::FILLED,
            algorithm,
        }
    }
}

crate::setters!(Entry {
    /// Whether it needs marks.
    marks: bool;
    /// Whether it needs segments of at most 16 kB.
    short_segments: bool;
    /// Parameters that scenarios can set.
    parameters: &'static [Parameter];
    /// Pairs of parameters of which the first is not above the second.
    ordered: &'static [(&'static str, &'static str)];
    /// Jain's index of two flows that share a link, at least.
    fairness: f64;
    /// Payload of a flow alone on a link, as a part of the line, at least.
    fills: f64;
});

crate::named!(Entry, "congestion control");

static PLUGS: Plugs<Entry> = Plugs::new();

/// Adds a congestion control of another crate, whose `algorithm` is [`TcpAlgorithm::custom`]. Linux lacks it.
///
/// # Panics
/// One for kernels has this name; or it has parameters, and a scenario has been read already.
pub fn register(entry: &'static Entry) {
    PLUGS.add_with(entry, BUILT_IN, entry.parameters);
}

/// All, in the order of the documentation.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    BUILT_IN.iter().chain(PLUGS.all().iter().copied())
}

/// The congestion control of that name.
pub fn entry(name: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.name == name)
}

/// A congestion control of one connection.
pub trait WindowControl: fmt::Debug {
    /// A connection begins with this window.
    fn begin(&mut self, _window: &mut Window) {}
    /// Packets have been delivered.
    fn on_ack(&mut self, window: &mut Window, acked: &Acked);
    /// Packets are lost: returns the new slow-start threshold.
    fn on_loss(&mut self, window: &Window) -> u32;
    /// A retransmission timeout has passed; the window is one packet.
    fn on_timeout(&mut self) {}
    /// Nothing was sent for a while.
    fn on_idle(&mut self, _idle: Span) {}
    /// Whether it sets the window itself while losses are repaired.
    #[inline]
    fn owns_window(&self) -> bool {
        false
    }
    /// Then: losses are being repaired from now on, `in_flight` packets and `delivered` so far.
    fn repairing_from(&mut self, _in_flight: u32, _delivered: u64, _window: &mut Window) {}
    /// Whether every packet leaves on its own, at a time that it sets.
    #[inline]
    fn clocks_gaps(&self) -> bool {
        false
    }
    /// Then: the time from the packet before `number` to this one, which is sent for the first time. Asked once for each
    /// packet, in order.
    #[inline]
    fn gap(&mut self, _number: u32) -> Option<Span> {
        None
    }
    /// The last estimate of the available bandwidth, in bytes a second, if it makes any.
    fn estimate(&self) -> Option<f64> {
        None
    }
    /// Its own pacing rate, if it has one.
    #[inline]
    fn packets_per_s(&self, _smoothed_rtt: Span) -> Option<f64> {
        None
    }
}

/// One of another crate, whose answers are checked.
impl WindowControl for Watched<dyn WindowControl + Send> {
    fn begin(&mut self, window: &mut Window) {
        self.call("begin", (), |cc| cc.begin(window));
        self.check("begin", window);
    }

    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        self.set_now(acked.now);
        self.call("on_ack", (), |cc| cc.on_ack(window, acked));
        self.check("on_ack", window);
    }

    fn on_loss(&mut self, window: &Window) -> u32 {
        let below = self.call("on_loss", window.packets, |cc| cc.on_loss(window));
        if below == 0 {
            self.note("on_loss", "answered a threshold of 0 packets".to_owned());
        }
        below.max(1)
    }

    fn on_timeout(&mut self) {
        self.call("on_timeout", (), |cc| cc.on_timeout());
    }

    fn on_idle(&mut self, idle: Span) {
        self.call("on_idle", (), |cc| cc.on_idle(idle));
    }

    fn owns_window(&self) -> bool {
        self.ask("owns_window", false, |cc| cc.owns_window())
    }

    fn repairing_from(&mut self, in_flight: u32, delivered: u64, window: &mut Window) {
        self.call("repairing_from", (), |cc| {
            cc.repairing_from(in_flight, delivered, window);
        });
        self.check("repairing_from", window);
    }

    fn clocks_gaps(&self) -> bool {
        self.ask("clocks_gaps", false, |cc| cc.clocks_gaps())
    }

    fn gap(&mut self, number: u32) -> Option<Span> {
        let gap = self.call("gap", None, |cc| cc.gap(number));
        if let Some(gap) = gap.filter(|gap| *gap < Span::ZERO) {
            self.note("gap", format!("answered {gap}, which is below 0"));
        }
        gap.map(|gap| gap.max(Span::ZERO))
    }

    fn estimate(&self) -> Option<f64> {
        self.ask("estimate", None, |cc| cc.estimate())
    }

    fn packets_per_s(&self, smoothed_rtt: Span) -> Option<f64> {
        let rate = self.ask("packets_per_s", None, |cc| cc.packets_per_s(smoothed_rtt));
        let is_rate = |rate: &f64| rate.is_finite() && *rate > 0.0;
        if let Some(rate) = rate.filter(|rate| !is_rate(rate)) {
            self.note(
                "packets_per_s",
                format!("answered {rate}, which is no rate above 0"),
            );
        }
        rate.filter(is_rate)
    }
}

impl Watched<dyn WindowControl + Send> {
    /// A window of zero would stop the connection for ever.
    fn check(&self, call: &'static str, window: &mut Window) {
        if window.packets == 0 {
            self.note(call, "set a window of 0 packets".to_owned());
            window.packets = 1;
        }
    }
}

/// Names each congestion control with its module.
macro_rules! window_controls {
    ($($variant:ident: $module:ident),* $(,)?) => {
        $(pub mod $module;)*

        static BUILT_IN: &[Entry] = &[$($module::ENTRY),*];

        /// A congestion control with its parameters.
        #[derive(Debug, Clone, PartialEq)]
        pub enum TcpAlgorithm {
            $(
                #[doc = concat!("tcp/", stringify!($module), ".rs")]
                $variant($module::Params),
            )*
            /// One of another crate.
            Custom(Custom<(), dyn WindowControl + Send>),
        }

        /// The state of one connection under its congestion control.
        #[derive(Debug)]
        #[allow(missing_docs)] // The modules say it.
        pub enum Control {
            $($variant($module::$variant),)*
            Custom(Watched<dyn WindowControl + Send>),
        }

        impl TcpAlgorithm {
            /// One of another crate: `start` makes the state of a new connection.
            pub fn custom<P: Parameters>(
                params: P,
                start: impl Fn(&P) -> Box<dyn WindowControl + Send> + Clone + Send + Sync + 'static,
            ) -> TcpAlgorithm {
                let start = move |params: &P, _: &()| start(params);
                TcpAlgorithm::Custom(Custom::new(Entry::KIND, params, start))
            }

            /// The mistakes of one of another crate.
            pub fn mistakes(&self) -> Option<&Mistakes> {
                match self {
                    TcpAlgorithm::Custom(custom) => Some(custom.mistakes()),
                    _ => None,
                }
            }

            /// The parameter `name`.
            pub fn get(&self, name: &str) -> Option<ParameterValue> {
                match self {
                    $(TcpAlgorithm::$variant(params) => params.get(name),)*
                    TcpAlgorithm::Custom(custom) => custom.get(name),
                }
            }

            /// With the parameters that a scenario sets.
            #[must_use]
            pub fn tuned(mut self, given: &Tuning) -> TcpAlgorithm {
                match &mut self {
                    $(TcpAlgorithm::$variant(params) => params.tune(given),)*
                    TcpAlgorithm::Custom(custom) => custom.tune(given),
                }
                self
            }

            pub fn start(&self) -> Control {
                match self {
                    $(TcpAlgorithm::$variant(params) => {
                        Control::$variant($module::$variant::new(params))
                    })*
                    TcpAlgorithm::Custom(custom) => Control::Custom(custom.start(&())),
                }
            }
        }

        impl WindowControl for Control {
            fn begin(&mut self, window: &mut Window) {
                match self {
                    $(Control::$variant(cc) => cc.begin(window),)*
                    Control::Custom(cc) => cc.begin(window),
                }
            }

            #[inline]
            fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
                match self {
                    $(Control::$variant(cc) => cc.on_ack(window, acked),)*
                    Control::Custom(cc) => cc.on_ack(window, acked),
                }
            }

            #[inline]
            fn on_loss(&mut self, window: &Window) -> u32 {
                match self {
                    $(Control::$variant(cc) => cc.on_loss(window),)*
                    Control::Custom(cc) => cc.on_loss(window),
                }
            }

            fn on_timeout(&mut self) {
                match self {
                    $(Control::$variant(cc) => cc.on_timeout(),)*
                    Control::Custom(cc) => cc.on_timeout(),
                }
            }

            fn on_idle(&mut self, idle: Span) {
                match self {
                    $(Control::$variant(cc) => cc.on_idle(idle),)*
                    Control::Custom(cc) => cc.on_idle(idle),
                }
            }

            #[inline]
            fn owns_window(&self) -> bool {
                match self {
                    $(Control::$variant(cc) => cc.owns_window(),)*
                    Control::Custom(cc) => cc.owns_window(),
                }
            }

            fn repairing_from(&mut self, in_flight: u32, delivered: u64, window: &mut Window) {
                match self {
                    $(Control::$variant(cc) => cc.repairing_from(in_flight, delivered, window),)*
                    Control::Custom(cc) => cc.repairing_from(in_flight, delivered, window),
                }
            }

            #[inline]
            fn clocks_gaps(&self) -> bool {
                match self {
                    $(Control::$variant(cc) => cc.clocks_gaps(),)*
                    Control::Custom(cc) => cc.clocks_gaps(),
                }
            }

            #[inline]
            fn gap(&mut self, number: u32) -> Option<Span> {
                match self {
                    $(Control::$variant(cc) => cc.gap(number),)*
                    Control::Custom(cc) => cc.gap(number),
                }
            }

            fn estimate(&self) -> Option<f64> {
                match self {
                    $(Control::$variant(cc) => cc.estimate(),)*
                    Control::Custom(cc) => cc.estimate(),
                }
            }

            #[inline]
            fn packets_per_s(&self, smoothed_rtt: Span) -> Option<f64> {
                match self {
                    $(Control::$variant(cc) => cc.packets_per_s(smoothed_rtt),)*
                    Control::Custom(cc) => cc.packets_per_s(smoothed_rtt),
                }
            }
        }
    };
}

window_controls! {
    Cubic: cubic,
    Bbr: bbr,
    Dctcp: dctcp,
    Tbtcp: tbtcp,
    TbtcpOrack: tbtcp_orack,
    Rapid: rapid,
    Reno: reno,
    Scalable: scalable,
    Timely: timely,
    Udp: udp,
}

/// Grows the window by a packet for every `per` acknowledged, as Linux counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Growth {
    counted: u32,
}

impl Growth {
    /// Slow start, then a packet for every `per` of the window that it has led to.
    #[inline]
    pub fn on_ack(&mut self, window: &mut Window, acked: u32, per: impl Fn(u32) -> u32) {
        let left = match window.in_slow_start() {
            true => window.slow_start(acked),
            false => acked,
        };
        let per = per(window.packets);
        self.add(window, left, per);
    }

    fn add(&mut self, window: &mut Window, acked: u32, per: u32) {
        self.counted += acked;
        let per = per.max(1);
        window.packets += self.counted / per;
        self.counted %= per;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// `packets` delivered after 100 us, at the time `now_us`.
    pub fn acked(now_us: i64, packets: u32) -> Acked {
        Acked {
            now: Time::ZERO + Span::from_us(now_us),
            packets,
            marked: 0,
            cumulative: 0,
            next: 0,
            rtt: Span::from_us(100),
            min_rtt: Span::from_us(100),
            may_grow: true,
            in_flight: 0,
            delivered: 0,
            lost: false,
            repairing: false,
            sample: RateSample::default(),
            reported: Reported::default(),
            pacing: Pacing {
                packets_per_s: None,
                small_queue: Span::from_us(977),
                device: Device {
                    segment: 45,
                    paces: false,
                },
            },
        }
    }

    /// Those that grow by acknowledgements and fall at losses; BBR does neither.
    fn loss_based() -> impl Iterator<Item = TcpAlgorithm> {
        entries()
            .map(|entry| (entry.algorithm)())
            .filter(|algorithm| !algorithm.start().owns_window())
    }

    #[test]
    fn slow_start_doubles_and_stops_at_the_threshold() {
        for algorithm in loss_based() {
            let mut cc = algorithm.start();
            let mut window = Window {
                packets: 10,
                slow_start_below: 15,
            };
            cc.on_ack(&mut window, &acked(100, 4));
            assert_eq!(window.packets, 14, "{algorithm:?}");
            cc.on_ack(&mut window, &acked(200, 1));
            assert_eq!(window.packets, 15, "{algorithm:?}");
            assert!(!window.in_slow_start());
        }
    }

    #[test]
    fn nothing_grows_that_was_not_limited_by_its_window() {
        for algorithm in loss_based() {
            let mut cc = algorithm.start();
            let mut window = Window::initial(10);
            let idle = Acked {
                may_grow: false,
                ..acked(100, 10)
            };
            cc.on_ack(&mut window, &idle);
            assert_eq!(window, Window::initial(10), "{algorithm:?}");
        }
    }

    #[test]
    fn no_loss_leaves_less_than_two_packets() {
        for algorithm in entries().map(|entry| (entry.algorithm)()) {
            let one = Window {
                packets: 1,
                slow_start_below: 2,
            };
            assert!(algorithm.start().on_loss(&one) >= 2, "{algorithm:?}");
        }
    }
}
