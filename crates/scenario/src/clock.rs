// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Keys of [clock]: errors of the hosts' clocks, and their synchronisation.

use crate::key::{field, Is, Rack, HOUR};
use crate::section::section;
use crate::value::Form;
use crate::Fraction;
use onramp_units::Span;
use strum::{Display, EnumString, VariantNames};

section! {
    /// Errors of the hosts' clocks, and their synchronisation.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Clock in "clock" {
        offset: Span = field(Form::Span(Span::ZERO, Span::from_ms(10)), Is("0 s")),
            "Standard deviation of a host's constant offset.";
        drift: Fraction = field(Form::Fraction(0.0, 0.001), Is("0")),
            "Standard deviation of a host's constant drift. 1/1000000 is 1 us per second.";
        noise: Span = field(Form::Span(Span::ZERO, Span::from_ms(10)), Is("0 s")).rack_has(Rack::Only(&["0 s"])),
            "Standard deviation of the error of each time stamp of a data packet.";
        wander: Fraction = field(Form::Fraction(0.0, 0.0001), Is("0")),
            "Amplitude of the drift's change with a host's temperature. Each host has its own period of 10 to 60 minutes.";
        sync: ClockSync = field(Form::Choice(ClockSync::VARIANTS), Is("none")),
            "Clock synchronisation. `none`: clocks are not corrected. `huygens`: hosts send probes to each other over this network. Before the first correction one-way delays are unknown, so no packet is held.";
        stamps: ProbeStamps = field(Form::Choice(ProbeStamps::VARIANTS), Is("software")).rack_has(Rack::If(
            "`software`",
            |run, _, _| {
                run.clock.sync == ClockSync::Huygens && run.clock.stamps == ProbeStamps::Hardware
            },
        )),
            "Source of the probes' time stamps. `hardware`: the NIC, with an error of about 5 ns; the probes of a pair are 10 us apart. `software`: the kernel, which stamps an arrival late by 1 us or more; the probes of a pair are 50 us apart. `time_dilation` scales the rack's time stamps too.";
        degree: u32 = field(Form::Count(1, 1000), Is("10")),
            "Number of hosts that each host probes. In the rack, as in the daemon, it is the number of a host's neighbours, and the host probes half of them.";
        probe_interval: Span = field(Form::Span(Span::from_us(100), HOUR), Is("20 ms")),
            "Time between two pairs of probes to the same host.";
        window: Span = field(Form::Span(Span::from_ms(1), HOUR), Is("2 s")),
            "Time between two corrections. Each correction fits a line to the pairs of the last three windows. The rack needs 2 s before scaling: 20 ms at `time_dilation` 100.";
    }
}

/// What corrects clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum ClockSync {
    /// Nothing.
    None,
    /// Huygens, with probes that are packets of the network.
    Huygens,
}

/// Who stamps probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum ProbeStamps {
    /// The NIC.
    Hardware,
    /// The kernel.
    Software,
}
