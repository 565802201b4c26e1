// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Keys of [clock]: errors of the hosts' clocks, and their synchronisation.

use crate::fraction::Fraction;
use crate::key::{both, Rack, Scope, HOUR};
use onramp_keys::{choice, section, Absent::Is};
use onramp_units::Span;

section! {
    /// Errors of the hosts' clocks, and their synchronisation.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Clock in "clock" with Scope {
        offset: Span [Span::ZERO, Span::from_ms(10)] = Is("0 s"), both(),
            "Standard deviation of a host's constant offset.";
        drift: Fraction [0.0, 0.001] = Is("0"), both(),
            "Standard deviation of a host's constant drift. 1/1000000 is 1 us per second.";
        noise: Span [Span::ZERO, Span::from_ms(10)] = Is("0 s"), both().rack_only(&["0 s"]),
            "Standard deviation of the error of each time stamp of a data packet.";
        wander: Fraction [0.0, 0.0001] = Is("0"), both(),
            "Amplitude of the drift's change with a host's temperature. Each host has its own period of 10 to 60 minutes.";
        sync: ClockSync = Is("none"), both(),
            "Clock synchronisation. `none`: clocks are not corrected. `huygens`: hosts send probes to each other over this network. Before the first correction one-way delays are unknown, so no packet is held.";
        stamps: ProbeStamps = Is("software"), both().rack(Rack::If("`software`", |run, stamps| {
            let sync = run.text(Clock::sync).and_then(|sync| sync.parse().ok());
            sync == Some(ClockSync::Huygens) && stamps.parse().is_ok_and(|stamps: ProbeStamps| stamps == ProbeStamps::Hardware)
        })),
            "Source of the probes' time stamps. `hardware`: the NIC, with an error of about 5 ns; the probes of a pair are 10 us apart. `software`: the kernel, which stamps an arrival late by 1 us or more; the probes of a pair are 50 us apart. `time_dilation` scales the rack's time stamps too.";
        degree: u32 [1, 1000] = Is("10"), both(),
            "Number of hosts that each host probes. In the rack, as in the daemon, it is the number of a host's neighbours, and the host probes half of them.";
        probe_interval: Span [Span::from_us(100), HOUR] = Is("20 ms"), both(),
            "Time between two pairs of probes to the same host.";
        window: Span [Span::from_ms(1), HOUR] = Is("2 s"), both(),
            "Time between two corrections. Each correction fits a line to the pairs of the last three windows. The rack needs 2 s before scaling: 20 ms at `time_dilation` 100.";
    }
}

choice! {
    /// What corrects clocks.
    pub enum ClockSync {
        /// Nothing.
        None = "none",
        /// Huygens, with probes that are packets of the network.
        Huygens = "huygens",
    }
}

choice! {
    /// Who stamps probes.
    pub enum ProbeStamps {
        /// The NIC.
        Hardware = "hardware",
        /// The kernel.
        Software = "software",
    }
}
