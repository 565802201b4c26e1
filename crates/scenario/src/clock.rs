//! Keys of [clock]: how wrong the hosts' clocks are.

use crate::key::{field, Is, Rack, HOUR};
use crate::section::section;
use crate::value::Form;
use crate::Fraction;
use onramp_units::Span;
use strum::{Display, EnumString, VariantNames};

section! {
    /// How wrong the hosts' clocks are, and what synchronises them.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Clock in "clock" {
        offset: Span = field(Form::Span(Span::ZERO, Span::from_ms(10)), Is("0 s")),
            "Standard deviation of a host's constant offset.";
        drift: Fraction = field(Form::Fraction(0.0, 0.001), Is("0")),
            "Standard deviation of a host's constant drift. 1/1000000 is a microsecond a second.";
        noise: Span = field(Form::Span(Span::ZERO, Span::from_ms(10)), Is("0 s")).rack_has(Rack::Only(&["0 s"])),
            "Standard deviation of the error of a single time stamp of a data packet.";
        wander: Fraction = field(Form::Fraction(0.0, 0.0001), Is("0")),
            "Amplitude by which a host's drift changes with its temperature. Each host has its own period of 10 to 60 minutes.";
        sync: ClockSync = field(Form::Choice(ClockSync::VARIANTS), Is("none")),
            "What corrects the clocks. `huygens`: hosts probe each other with packets of this network. Until the first correction delays are unknown, and nothing is held.";
        stamps: ProbeStamps = field(Form::Choice(ProbeStamps::VARIANTS), Is("software")).rack_has(Rack::If(
            "`software`",
            |run, _, _| {
                run.clock.sync == ClockSync::Huygens && run.clock.stamps == ProbeStamps::Hardware
            },
        )),
            "What stamps probes. `hardware`: the NIC, with an error of about 5 ns; the probes of a pair are 10 us apart. `software`: the kernel, on arrival late by a microsecond or more; 50 us apart. The rack slows its stamps down like everything else.";
        degree: u32 = field(Form::Count(1, 1000), Is("10")),
            "Number of hosts that each host probes. In the rack, as in the daemon: the number of a host's neighbours, half of which it probes.";
        probe_interval: Span = field(Form::Span(Span::from_us(100), HOUR), Is("20 ms")),
            "Time between two pairs of probes to a host.";
        window: Span = field(Form::Span(Span::from_ms(1), HOUR), Is("2 s")),
            "Time between two corrections. A line is fitted to the pairs of the last three windows. The rack needs 2 s of its slowed-down time: 20 ms at `time_dilation` 100.";
    }
}

/// What corrects clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum ClockSync {
    /// Nothing: they are as wrong as they are.
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
