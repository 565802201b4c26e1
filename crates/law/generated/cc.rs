// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
// Written by examples/law-bindings.
/// The configuration of the whole law.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct RapidCfg {
    /// at least 1
    pub min_rate: u64,
    pub max_rate: u64,
    /// the rate rises in about this time; at least 1
    pub tau_ns: u64,
    /// 1 / eta, the part of the way down that an update goes
    pub fall_q16: u32,
    /// s, the ratio of neighbouring rates; above one
    pub spread_q16: u32,
    /// s in the start
    pub start_spread_q16: u32,
    /// N_p, packets at each rate; 1 to ONR_RAPID_EACH_MOST
    pub each: u32,
    /// streams an update; at least 1
    pub gamma: u32,
    /// at least 1
    pub patience: u32,
    /// payload of a full packet
    pub packet_bytes: u32,
    /// entries of an excursion
    pub least_run: u32,
    pub least_rise_ns: u32,
    /// BASS: a spike is so much above the gap before it ...
    pub spike_rise_ns: u32,
    /// ... and so much above the gap after it
    pub spike_fall_ns: u32,
    /// of BASS, at most; 0: none
    pub passes: u32,
    /// a queue from here on is drained
    pub standing_ns: u32,
    /// that may be in flight: the window, which is the sender's
    pub cap_packets: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_rapid_cfg"][::std::mem::size_of::<RapidCfg>() - 80usize];
    ["Alignment of onr_rapid_cfg"][::std::mem::align_of::<RapidCfg>() - 8usize];
    [
        "Offset of field: onr_rapid_cfg::min_rate",
    ][::std::mem::offset_of!(RapidCfg, min_rate) - 0usize];
    [
        "Offset of field: onr_rapid_cfg::max_rate",
    ][::std::mem::offset_of!(RapidCfg, max_rate) - 8usize];
    [
        "Offset of field: onr_rapid_cfg::tau_ns",
    ][::std::mem::offset_of!(RapidCfg, tau_ns) - 16usize];
    [
        "Offset of field: onr_rapid_cfg::fall_q16",
    ][::std::mem::offset_of!(RapidCfg, fall_q16) - 24usize];
    [
        "Offset of field: onr_rapid_cfg::spread_q16",
    ][::std::mem::offset_of!(RapidCfg, spread_q16) - 28usize];
    [
        "Offset of field: onr_rapid_cfg::start_spread_q16",
    ][::std::mem::offset_of!(RapidCfg, start_spread_q16) - 32usize];
    [
        "Offset of field: onr_rapid_cfg::each",
    ][::std::mem::offset_of!(RapidCfg, each) - 36usize];
    [
        "Offset of field: onr_rapid_cfg::gamma",
    ][::std::mem::offset_of!(RapidCfg, gamma) - 40usize];
    [
        "Offset of field: onr_rapid_cfg::patience",
    ][::std::mem::offset_of!(RapidCfg, patience) - 44usize];
    [
        "Offset of field: onr_rapid_cfg::packet_bytes",
    ][::std::mem::offset_of!(RapidCfg, packet_bytes) - 48usize];
    [
        "Offset of field: onr_rapid_cfg::least_run",
    ][::std::mem::offset_of!(RapidCfg, least_run) - 52usize];
    [
        "Offset of field: onr_rapid_cfg::least_rise_ns",
    ][::std::mem::offset_of!(RapidCfg, least_rise_ns) - 56usize];
    [
        "Offset of field: onr_rapid_cfg::spike_rise_ns",
    ][::std::mem::offset_of!(RapidCfg, spike_rise_ns) - 60usize];
    [
        "Offset of field: onr_rapid_cfg::spike_fall_ns",
    ][::std::mem::offset_of!(RapidCfg, spike_fall_ns) - 64usize];
    [
        "Offset of field: onr_rapid_cfg::passes",
    ][::std::mem::offset_of!(RapidCfg, passes) - 68usize];
    [
        "Offset of field: onr_rapid_cfg::standing_ns",
    ][::std::mem::offset_of!(RapidCfg, standing_ns) - 72usize];
    [
        "Offset of field: onr_rapid_cfg::cap_packets",
    ][::std::mem::offset_of!(RapidCfg, cap_packets) - 76usize];
};
/// Packets that one acknowledgement reported, with the sum of their gaps.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct RapidEntry {
    pub packets: u32,
    pub send_ns: u32,
    pub receive_ns: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_rapid_entry"][::std::mem::size_of::<RapidEntry>() - 12usize];
    ["Alignment of onr_rapid_entry"][::std::mem::align_of::<RapidEntry>() - 4usize];
    [
        "Offset of field: onr_rapid_entry::packets",
    ][::std::mem::offset_of!(RapidEntry, packets) - 0usize];
    [
        "Offset of field: onr_rapid_entry::send_ns",
    ][::std::mem::offset_of!(RapidEntry, send_ns) - 4usize];
    [
        "Offset of field: onr_rapid_entry::receive_ns",
    ][::std::mem::offset_of!(RapidEntry, receive_ns) - 8usize];
};
/** The entries of a stream, in order. Their sums are kept, so that the end of a stream in which the receiver has not waited
 needs no pass over them.*/
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct RapidStream {
    count: u32,
    /// those of a stream that is over; the others are of the next one
    ended: u32,
    entries: [RapidEntry; 240usize],
    /// of the send gaps
    sent_ns: u64,
    /// of the receive gaps less the send gaps: the queueing delay, relative to that before the stream
    delay_ns: i64,
    /// the least delay at an entry, 0 at most
    least_ns: i64,
}
impl RapidStream {
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }
    /// those of a stream that is over; the others are of the next one
    #[inline]
    pub fn ended(&self) -> u32 {
        self.ended
    }
    /// of the send gaps
    #[inline]
    pub fn sent_ns(&self) -> u64 {
        self.sent_ns
    }
    /// of the receive gaps less the send gaps: the queueing delay, relative to that before the stream
    #[inline]
    pub fn delay_ns(&self) -> i64 {
        self.delay_ns
    }
    /// the least delay at an entry, 0 at most
    #[inline]
    pub fn least_ns(&self) -> i64 {
        self.least_ns
    }
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_rapid_stream"][::std::mem::size_of::<RapidStream>() - 2912usize];
    ["Alignment of onr_rapid_stream"][::std::mem::align_of::<RapidStream>() - 8usize];
    [
        "Offset of field: onr_rapid_stream::count",
    ][::std::mem::offset_of!(RapidStream, count) - 0usize];
    [
        "Offset of field: onr_rapid_stream::ended",
    ][::std::mem::offset_of!(RapidStream, ended) - 4usize];
    [
        "Offset of field: onr_rapid_stream::entries",
    ][::std::mem::offset_of!(RapidStream, entries) - 8usize];
    [
        "Offset of field: onr_rapid_stream::sent_ns",
    ][::std::mem::offset_of!(RapidStream, sent_ns) - 2888usize];
    [
        "Offset of field: onr_rapid_stream::delay_ns",
    ][::std::mem::offset_of!(RapidStream, delay_ns) - 2896usize];
    [
        "Offset of field: onr_rapid_stream::least_ns",
    ][::std::mem::offset_of!(RapidStream, least_ns) - 2904usize];
};
impl Default for RapidStream {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct Rapid {
    /// R_avg; 0 before it begins
    rate: u64,
    /// R_avg of the present stream
    sending_rate: u64,
    /// of the present rate
    gap_ns: u64,
    /// packet with which the first stream of the present length began
    first: u32,
    in_start: u32,
    /// packets at each rate
    each: u32,
    /// the receiver has waited in the present stream
    has_spike: u32,
    /// of the estimates
    sum: u64,
    /// of their streams
    lasted_ns: u64,
    estimates: u32,
    /// streams in a row without one
    absent: u32,
    /// Least round-trip times: of the present stream, of the time since window_ns, and of the time before that.
    stream_rtt_ns: u64,
    window_rtt_ns: u64,
    before_rtt_ns: u64,
    window_ns: u64,
    /// The last packet whose arrival is known.
    sent_ns: u64,
    arrived_ns: u64,
    last: u32,
    has_last: u32,
    /// Its stream.
    number: u32,
    /// it has a lost packet
    is_broken: u32,
    /// the application had no data in it
    is_limited: u32,
    /// estimates so far, and the last one: for those who watch
    seen: u32,
    last_estimate: u64,
}
impl Rapid {
    /// R_avg; 0 before it begins
    #[inline]
    pub fn rate(&self) -> u64 {
        self.rate
    }
    /// R_avg of the present stream
    #[inline]
    pub fn sending_rate(&self) -> u64 {
        self.sending_rate
    }
    /// of the present rate
    #[inline]
    pub fn gap_ns(&self) -> u64 {
        self.gap_ns
    }
    /// packet with which the first stream of the present length began
    #[inline]
    pub fn first(&self) -> u32 {
        self.first
    }
    #[inline]
    pub fn in_start(&self) -> u32 {
        self.in_start
    }
    /// packets at each rate
    #[inline]
    pub fn each(&self) -> u32 {
        self.each
    }
    /// the receiver has waited in the present stream
    #[inline]
    pub fn has_spike(&self) -> u32 {
        self.has_spike
    }
    /// of the estimates
    #[inline]
    pub fn sum(&self) -> u64 {
        self.sum
    }
    /// of their streams
    #[inline]
    pub fn lasted_ns(&self) -> u64 {
        self.lasted_ns
    }
    #[inline]
    pub fn estimates(&self) -> u32 {
        self.estimates
    }
    /// streams in a row without one
    #[inline]
    pub fn absent(&self) -> u32 {
        self.absent
    }
    /// Least round-trip times: of the present stream, of the time since window_ns, and of the time before that.
    #[inline]
    pub fn stream_rtt_ns(&self) -> u64 {
        self.stream_rtt_ns
    }
    #[inline]
    pub fn window_rtt_ns(&self) -> u64 {
        self.window_rtt_ns
    }
    #[inline]
    pub fn before_rtt_ns(&self) -> u64 {
        self.before_rtt_ns
    }
    #[inline]
    pub fn window_ns(&self) -> u64 {
        self.window_ns
    }
    /// The last packet whose arrival is known.
    #[inline]
    pub fn sent_ns(&self) -> u64 {
        self.sent_ns
    }
    #[inline]
    pub fn arrived_ns(&self) -> u64 {
        self.arrived_ns
    }
    #[inline]
    pub fn last(&self) -> u32 {
        self.last
    }
    #[inline]
    pub fn has_last(&self) -> u32 {
        self.has_last
    }
    /// Its stream.
    #[inline]
    pub fn number(&self) -> u32 {
        self.number
    }
    /// it has a lost packet
    #[inline]
    pub fn is_broken(&self) -> u32 {
        self.is_broken
    }
    /// the application had no data in it
    #[inline]
    pub fn is_limited(&self) -> u32 {
        self.is_limited
    }
    /// estimates so far, and the last one: for those who watch
    #[inline]
    pub fn seen(&self) -> u32 {
        self.seen
    }
    #[inline]
    pub fn last_estimate(&self) -> u64 {
        self.last_estimate
    }
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_rapid"][::std::mem::size_of::<Rapid>() - 144usize];
    ["Alignment of onr_rapid"][::std::mem::align_of::<Rapid>() - 8usize];
    ["Offset of field: onr_rapid::rate"][::std::mem::offset_of!(Rapid, rate) - 0usize];
    [
        "Offset of field: onr_rapid::sending_rate",
    ][::std::mem::offset_of!(Rapid, sending_rate) - 8usize];
    [
        "Offset of field: onr_rapid::gap_ns",
    ][::std::mem::offset_of!(Rapid, gap_ns) - 16usize];
    [
        "Offset of field: onr_rapid::first",
    ][::std::mem::offset_of!(Rapid, first) - 24usize];
    [
        "Offset of field: onr_rapid::in_start",
    ][::std::mem::offset_of!(Rapid, in_start) - 28usize];
    ["Offset of field: onr_rapid::each"][::std::mem::offset_of!(Rapid, each) - 32usize];
    [
        "Offset of field: onr_rapid::has_spike",
    ][::std::mem::offset_of!(Rapid, has_spike) - 36usize];
    ["Offset of field: onr_rapid::sum"][::std::mem::offset_of!(Rapid, sum) - 40usize];
    [
        "Offset of field: onr_rapid::lasted_ns",
    ][::std::mem::offset_of!(Rapid, lasted_ns) - 48usize];
    [
        "Offset of field: onr_rapid::estimates",
    ][::std::mem::offset_of!(Rapid, estimates) - 56usize];
    [
        "Offset of field: onr_rapid::absent",
    ][::std::mem::offset_of!(Rapid, absent) - 60usize];
    [
        "Offset of field: onr_rapid::stream_rtt_ns",
    ][::std::mem::offset_of!(Rapid, stream_rtt_ns) - 64usize];
    [
        "Offset of field: onr_rapid::window_rtt_ns",
    ][::std::mem::offset_of!(Rapid, window_rtt_ns) - 72usize];
    [
        "Offset of field: onr_rapid::before_rtt_ns",
    ][::std::mem::offset_of!(Rapid, before_rtt_ns) - 80usize];
    [
        "Offset of field: onr_rapid::window_ns",
    ][::std::mem::offset_of!(Rapid, window_ns) - 88usize];
    [
        "Offset of field: onr_rapid::sent_ns",
    ][::std::mem::offset_of!(Rapid, sent_ns) - 96usize];
    [
        "Offset of field: onr_rapid::arrived_ns",
    ][::std::mem::offset_of!(Rapid, arrived_ns) - 104usize];
    ["Offset of field: onr_rapid::last"][::std::mem::offset_of!(Rapid, last) - 112usize];
    [
        "Offset of field: onr_rapid::has_last",
    ][::std::mem::offset_of!(Rapid, has_last) - 116usize];
    [
        "Offset of field: onr_rapid::number",
    ][::std::mem::offset_of!(Rapid, number) - 120usize];
    [
        "Offset of field: onr_rapid::is_broken",
    ][::std::mem::offset_of!(Rapid, is_broken) - 124usize];
    [
        "Offset of field: onr_rapid::is_limited",
    ][::std::mem::offset_of!(Rapid, is_limited) - 128usize];
    ["Offset of field: onr_rapid::seen"][::std::mem::offset_of!(Rapid, seen) - 132usize];
    [
        "Offset of field: onr_rapid::last_estimate",
    ][::std::mem::offset_of!(Rapid, last_estimate) - 136usize];
};
#[repr(u32)]
/// What an arrival led to.
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub enum RapidNews {
    Nothing = 0,
    /// last_estimate is new
    Estimate = 1,
    /// a stream ended without an estimate
    Broken = 2,
}
unsafe extern "C" {
    /// The time from the packet before `number` to this one, at its first transmission.
    #[link_name = "onr_rapid_gap_ns__extern"]
    pub safe fn rapid_gap_ns(cfg: &RapidCfg, flow: &mut Rapid, number: u32) -> u64;
}
unsafe extern "C" {
    /// A timeout, or too many streams in a row with lost packets.
    #[link_name = "onr_rapid_back_off__extern"]
    pub safe fn rapid_back_off(
        cfg: &RapidCfg,
        flow: &mut Rapid,
        stream: &mut RapidStream,
        next: u32,
    );
}
unsafe extern "C" {
    /// Begins with a rate.
    #[link_name = "onr_rapid_begin__extern"]
    pub safe fn rapid_begin(
        cfg: &RapidCfg,
        flow: &mut Rapid,
        stream: &mut RapidStream,
        rate: u64,
        next: u32,
    );
}
unsafe extern "C" {
    /// The first rate: an initial window in a round-trip time.
    #[link_name = "onr_rapid_first_rate__extern"]
    pub safe fn rapid_first_rate(cfg: &RapidCfg, rtt_ns: u64) -> u64;
}
/// What is known of a packet that was sent once and has arrived.
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct RapidArrival {
    pub number: u32,
    /// so have all between it and the one reported before
    pub are_all: u32,
    /// the application did not have enough data when it was sent
    pub is_limited: u32,
    /// the packet that is sent next
    pub next: u32,
    pub sent_ns: u64,
    /// of any clock of the receiver
    pub arrived_ns: u64,
    pub rtt_ns: u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_rapid_arrival"][::std::mem::size_of::<RapidArrival>() - 40usize];
    ["Alignment of onr_rapid_arrival"][::std::mem::align_of::<RapidArrival>() - 8usize];
    [
        "Offset of field: onr_rapid_arrival::number",
    ][::std::mem::offset_of!(RapidArrival, number) - 0usize];
    [
        "Offset of field: onr_rapid_arrival::are_all",
    ][::std::mem::offset_of!(RapidArrival, are_all) - 4usize];
    [
        "Offset of field: onr_rapid_arrival::is_limited",
    ][::std::mem::offset_of!(RapidArrival, is_limited) - 8usize];
    [
        "Offset of field: onr_rapid_arrival::next",
    ][::std::mem::offset_of!(RapidArrival, next) - 12usize];
    [
        "Offset of field: onr_rapid_arrival::sent_ns",
    ][::std::mem::offset_of!(RapidArrival, sent_ns) - 16usize];
    [
        "Offset of field: onr_rapid_arrival::arrived_ns",
    ][::std::mem::offset_of!(RapidArrival, arrived_ns) - 24usize];
    [
        "Offset of field: onr_rapid_arrival::rtt_ns",
    ][::std::mem::offset_of!(RapidArrival, rtt_ns) - 32usize];
};
unsafe extern "C" {
    /// A packet has arrived. Those of earlier streams than the first of the present kind only end a gap.
    #[link_name = "onr_rapid_arrived__extern"]
    pub safe fn rapid_arrived(
        cfg: &RapidCfg,
        flow: &mut Rapid,
        stream: &mut RapidStream,
        arrival: &RapidArrival,
    ) -> RapidNews;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct TbtcpCfg {
    /// growth in a round trip, thousandths of a packet; 1 to 1000
    pub eta_per_mille: u32,
    /// packets that a mark takes, the divisor of the switch's curve (section 6.2); at least 1
    pub k: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_tbtcp_cfg"][::std::mem::size_of::<TbtcpCfg>() - 8usize];
    ["Alignment of onr_tbtcp_cfg"][::std::mem::align_of::<TbtcpCfg>() - 4usize];
    [
        "Offset of field: onr_tbtcp_cfg::eta_per_mille",
    ][::std::mem::offset_of!(TbtcpCfg, eta_per_mille) - 0usize];
    ["Offset of field: onr_tbtcp_cfg::k"][::std::mem::offset_of!(TbtcpCfg, k) - 4usize];
};
unsafe extern "C" {
    /// The window after an acknowledgement that echoes so many marks.
    #[link_name = "onr_tbtcp_cut__extern"]
    pub safe fn tbtcp_cut(cfg: &TbtcpCfg, window: u32, marks: u32) -> u32;
}
unsafe extern "C" {
    /** The window after so many packets have been acknowledged. *counted holds what has not yet made a packet, in
 thousandths of an acknowledged packet times eta; it begins at 0.*/
    #[link_name = "onr_tbtcp_grow__extern"]
    pub safe fn tbtcp_grow(
        cfg: &TbtcpCfg,
        counted: &mut u64,
        window: u32,
        acked: u32,
    ) -> u32;
}
unsafe extern "C" {
    /** Marks of equation 6 without a switch: of so many packets that met a queue of queue_ns on a path whose round trip takes
 base_ns without queues. p = q/(q + B) is queue_ns/(queue_ns + base_ns) at any rate. *owed_q16 holds what has not
 yet made a mark, in units of 2^-16; it begins at 0.*/
    #[link_name = "onr_tbtcp_marks__extern"]
    pub safe fn tbtcp_marks(
        owed_q16: &mut u64,
        packets: u32,
        queue_ns: u32,
        base_ns: u32,
    ) -> u32;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct TimelyCfg {
    /// the step of the rate, bytes a second
    pub delta: u64,
    /// at least 1
    pub min_rate: u64,
    pub max_rate: u64,
    pub t_low_ns: u32,
    /// at least 1
    pub t_high_ns: u32,
    /// of the idle network, a constant; 1 to 10^9
    pub min_rtt_ns: u32,
    /// at most one
    pub beta_q16: u32,
    /// the weight of a new difference; at most one
    pub alpha_q16: u32,
    /// N: falling gradients in a row, after which the rate grows by hai_steps
    pub hai_falls: u32,
    pub hai_steps: u32,
    /// 1: hyper-active increase counts every increase, also below t_low; else 0
    pub hai_low: u32,
    /// that have one round-trip time
    pub segment_bytes: u32,
    /// that may be in flight: the window, which is the sender's
    pub cap_packets: u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_timely_cfg"][::std::mem::size_of::<TimelyCfg>() - 64usize];
    ["Alignment of onr_timely_cfg"][::std::mem::align_of::<TimelyCfg>() - 8usize];
    [
        "Offset of field: onr_timely_cfg::delta",
    ][::std::mem::offset_of!(TimelyCfg, delta) - 0usize];
    [
        "Offset of field: onr_timely_cfg::min_rate",
    ][::std::mem::offset_of!(TimelyCfg, min_rate) - 8usize];
    [
        "Offset of field: onr_timely_cfg::max_rate",
    ][::std::mem::offset_of!(TimelyCfg, max_rate) - 16usize];
    [
        "Offset of field: onr_timely_cfg::t_low_ns",
    ][::std::mem::offset_of!(TimelyCfg, t_low_ns) - 24usize];
    [
        "Offset of field: onr_timely_cfg::t_high_ns",
    ][::std::mem::offset_of!(TimelyCfg, t_high_ns) - 28usize];
    [
        "Offset of field: onr_timely_cfg::min_rtt_ns",
    ][::std::mem::offset_of!(TimelyCfg, min_rtt_ns) - 32usize];
    [
        "Offset of field: onr_timely_cfg::beta_q16",
    ][::std::mem::offset_of!(TimelyCfg, beta_q16) - 36usize];
    [
        "Offset of field: onr_timely_cfg::alpha_q16",
    ][::std::mem::offset_of!(TimelyCfg, alpha_q16) - 40usize];
    [
        "Offset of field: onr_timely_cfg::hai_falls",
    ][::std::mem::offset_of!(TimelyCfg, hai_falls) - 44usize];
    [
        "Offset of field: onr_timely_cfg::hai_steps",
    ][::std::mem::offset_of!(TimelyCfg, hai_steps) - 48usize];
    [
        "Offset of field: onr_timely_cfg::hai_low",
    ][::std::mem::offset_of!(TimelyCfg, hai_low) - 52usize];
    [
        "Offset of field: onr_timely_cfg::segment_bytes",
    ][::std::mem::offset_of!(TimelyCfg, segment_bytes) - 56usize];
    [
        "Offset of field: onr_timely_cfg::cap_packets",
    ][::std::mem::offset_of!(TimelyCfg, cap_packets) - 60usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct Timely {
    /// 0 before it has one
    rate: u64,
    /// rtt_diff, smoothed, in ONR_TIMELY_UNIT
    difference: i64,
    /// 0 before the first
    prev_rtt_ns: u32,
    /// gradients below zero in a row; with hai_low, increases in a row
    falls: u32,
    /// bytes of the present segment that are acknowledged
    acked: u32,
    /// their least round-trip time, 0 before the first
    least_ns: u32,
}
impl Timely {
    /// 0 before it has one
    #[inline]
    pub fn rate(&self) -> u64 {
        self.rate
    }
    /// rtt_diff, smoothed, in ONR_TIMELY_UNIT
    #[inline]
    pub fn difference(&self) -> i64 {
        self.difference
    }
    /// 0 before the first
    #[inline]
    pub fn prev_rtt_ns(&self) -> u32 {
        self.prev_rtt_ns
    }
    /// gradients below zero in a row; with hai_low, increases in a row
    #[inline]
    pub fn falls(&self) -> u32 {
        self.falls
    }
    /// bytes of the present segment that are acknowledged
    #[inline]
    pub fn acked(&self) -> u32 {
        self.acked
    }
    /// their least round-trip time, 0 before the first
    #[inline]
    pub fn least_ns(&self) -> u32 {
        self.least_ns
    }
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of onr_timely"][::std::mem::size_of::<Timely>() - 32usize];
    ["Alignment of onr_timely"][::std::mem::align_of::<Timely>() - 8usize];
    ["Offset of field: onr_timely::rate"][::std::mem::offset_of!(Timely, rate) - 0usize];
    [
        "Offset of field: onr_timely::difference",
    ][::std::mem::offset_of!(Timely, difference) - 8usize];
    [
        "Offset of field: onr_timely::prev_rtt_ns",
    ][::std::mem::offset_of!(Timely, prev_rtt_ns) - 16usize];
    [
        "Offset of field: onr_timely::falls",
    ][::std::mem::offset_of!(Timely, falls) - 20usize];
    [
        "Offset of field: onr_timely::acked",
    ][::std::mem::offset_of!(Timely, acked) - 24usize];
    [
        "Offset of field: onr_timely::least_ns",
    ][::std::mem::offset_of!(Timely, least_ns) - 28usize];
};
unsafe extern "C" {
    /// Begins with a rate.
    #[link_name = "onr_timely_begin__extern"]
    pub safe fn timely_begin(cfg: &TimelyCfg, flow: &mut Timely, rate: u64);
}
unsafe extern "C" {
    /// A completion of so many bytes after rtt_ns. is_limited: the flow has not used its rate.
    #[link_name = "onr_timely_sample__extern"]
    pub safe fn timely_sample(
        cfg: &TimelyCfg,
        flow: &mut Timely,
        bytes: u64,
        rtt_ns: u64,
        is_limited: u32,
    );
}
unsafe extern "C" {
    /** So many bytes of a connection are acknowledged after rtt_ns. An acknowledgement is not a completion: those of one burst
 come later and later because of the burst itself, which is no gradient of the queue. So a segment has one round-trip
 time, as in the paper; here the least of its acknowledgements, which contains least of the burst's own time.*/
    #[link_name = "onr_timely_acked__extern"]
    pub safe fn timely_acked(
        cfg: &TimelyCfg,
        flow: &mut Timely,
        bytes: u32,
        rtt_ns: u64,
        is_limited: u32,
    );
}
unsafe extern "C" {
    /// A loss, on which the paper is silent (its network loses nothing): half the rate, as TCP.
    #[link_name = "onr_timely_loss__extern"]
    pub safe fn timely_loss(cfg: &TimelyCfg, flow: &mut Timely);
}
