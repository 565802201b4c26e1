//! Parameters of the congestion controls: the keys of [cc].

use super::{kbit_per_s, key, mbit_per_s, Form, Key, Source, HOUR};
use crate::{Cc, HostKind};
use onramp_units::Span;

const PART: Form = Form::Fraction(0.0001, 1.0);
const STEP: Form = Form::Rate(kbit_per_s(1), mbit_per_s(1_000_000));
const SHORT: Form = Form::Span(Span::from_ns(1), Span::from_s(1));
const HPCC: &[Cc] = &[Cc::Hpcc];
const DCQCN: &[Cc] = &[Cc::Dcqcn, Cc::DcqcnW, Cc::DcqcnPaper, Cc::DcqcnPaperW];
const TIMELY: &[Cc] = &[Cc::Timely, Cc::TimelyW];
const DCTCP: &[Cc] = &[Cc::Dctcp];
const CUBIC: &[Cc] = &[Cc::Cubic];
const BBR: &[Cc] = &[Cc::Bbr];

pub(super) const KEYS: &[Key] = &[
    key("cc.hpcc.eta", PART, Source("95 %"), "Utilisation that it aims at.").of_cc(HPCC),
    key("cc.hpcc.max_stage", Form::Count(0, 1000), Source("0"), "Additive steps before a multiplicative one: 5 in the paper, 0 in its authors' simulator.").of_cc(HPCC),
    key("cc.hpcc.rate_ai", STEP, Source("40 Mbit/s"), "W_AI as a rate; the default is in proportion to the line rate.").of_cc(HPCC),
    key("cc.hpcc.min_rate", STEP, Source("1 Gbit/s"), "The rate is never below this; the default is in proportion to the line rate.").of_cc(HPCC),
    key("cc.dcqcn.g", PART, Source("1/256"), "Weight of a new sample in alpha.").of_cc(DCQCN),
    key("cc.dcqcn.alpha_interval", SHORT, Source("1 us"), "How often alpha is updated; 50 us with dcqcn_paper.").of_cc(DCQCN),
    key("cc.dcqcn.decrease_interval", SHORT, Source("4 us"), "T_d, how often the rate may be cut; 50 us with dcqcn_paper.").of_cc(DCQCN),
    key("cc.dcqcn.increase_interval", SHORT, Source("300 us"), "T_i, how often the rate grows; 55 us with dcqcn_paper.").of_cc(DCQCN),
    key("cc.dcqcn.fast_recovery", Form::Count(0, 1000), Source("1"), "F: steps of fast recovery before additive increase; 5 in the paper.").of_cc(DCQCN),
    key("cc.dcqcn.rate_ai", STEP, Source("20 Mbit/s"), "R_AI; the default is in proportion to the line rate.").of_cc(DCQCN),
    key("cc.dcqcn.rate_hai", STEP, Source("200 Mbit/s"), "R_HAI; the default is in proportion to the line rate.").of_cc(DCQCN),
    key("cc.dcqcn.min_rate", STEP, Source("1 Gbit/s"), "The rate is never below this; the default is in proportion to the line rate.").of_cc(DCQCN),
    key("cc.timely.t_low", SHORT, Source("50 us"), "Below this round-trip time the rate grows whatever the gradient; not above `t_high`.").of_cc(TIMELY),
    key("cc.timely.t_high", SHORT, Source("500 us"), "Above this the rate shrinks whatever the gradient.").of_cc(TIMELY),
    key("cc.timely.min_rtt", SHORT, Source("20 us"), "Round-trip time of the idle fabric, which scales the gradient.").of_cc(TIMELY),
    key("cc.timely.alpha", PART, Source("87.5 %"), "Weight of a new difference of round-trip times.").of_cc(TIMELY),
    key("cc.timely.beta", PART, Source("80 %"), "Part of the rate that a gradient of 1 takes away.").of_cc(TIMELY),
    key("cc.timely.delta", STEP, Source("100 Mbit/s"), "Additive step; the default is in proportion to the line rate.").of_cc(TIMELY),
    key("cc.timely.rate_hai", STEP, Source("500 Mbit/s"), "Step after `hai_after` increases in a row; the default is in proportion to the line rate.").of_cc(TIMELY),
    key("cc.timely.hai_after", Form::Count(0, 1000), Source("5"), "Increases in a row before the larger step.").of_cc(TIMELY),
    key("cc.timely.min_rate", STEP, Source("1 Gbit/s"), "The rate is never below this; the default is in proportion to the line rate.").of_cc(TIMELY),
    key("cc.dctcp.g", PART, Source("1/16"), "Weight of a window's marked part in alpha.").of_cc(DCTCP),
    key("cc.dctcp.rate_ai", STEP, Source("615 Mbit/s"), "Growth per window of a nic host's rate.").of_cc(DCTCP).on(HostKind::Nic),
    key("cc.dctcp.min_rate", STEP, Source("1 Gbit/s"), "A nic host's rate is never below this; the default is in proportion to the line rate.").of_cc(DCTCP).on(HostKind::Nic),
    key("cc.cubic.c", Form::Fraction(0.0001, 1000.0), Source("0.4"), "C of RFC 9438, in packets per cubic second.").of_cc(CUBIC),
    key("cc.cubic.beta", Form::Fraction(0.1, 0.99), Source("70 %"), "Part of the window that a loss leaves.").of_cc(CUBIC),
    key("cc.cubic.hystart", Form::Flag, Source("true"), "Whether HyStart may end slow start before a loss does.").of_cc(CUBIC),
    key("cc.bbr.startup_gain", Form::Fraction(1.0, 10.0), Source("2.885"), "Of pace and window while it looks for the bandwidth; its inverse drains the queue after that.").of_cc(BBR),
    key("cc.bbr.window_gain", Form::Fraction(1.0, 10.0), Source("2"), "Window in estimated bandwidth-delay products.").of_cc(BBR),
    key("cc.bbr.probe_gain", Form::Fraction(1.0, 10.0), Source("1.25"), "Pace of the phase that looks for more bandwidth.").of_cc(BBR),
    key("cc.bbr.drain_gain", Form::Fraction(0.1, 1.0), Source("75 %"), "Pace of the phase after it.").of_cc(BBR),
    key("cc.bbr.bandwidth_rounds", Form::Count(1, 1000), Source("10"), "Round trips for which the best sample of bandwidth counts.").of_cc(BBR),
    key("cc.bbr.min_rtt_window", Form::Span(Span::from_us(1), HOUR), Source("10 s"), "Time for which the shortest round trip counts.").of_cc(BBR),
    key("cc.bbr.probe_rtt", Form::Span(Span::from_us(1), HOUR), Source("200 ms"), "How long it keeps the path almost empty to see the shortest round trip.").of_cc(BBR),
    key("cc.reno.beta", Form::Fraction(0.1, 0.99), Source("50 %"), "Part of the window that a loss leaves.").of_cc(&[Cc::Reno]),
    key("cc.scalable.packets", Form::Count(1, 10_000), Source("100"), "Packets to be acknowledged for one more in the window, at most.").of_cc(&[Cc::Scalable]),
    key("cc.scalable.decrease", Form::Fraction(0.01, 0.9), Source("1/8"), "Part of the window that a loss takes.").of_cc(&[Cc::Scalable]),
];
