// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A control law: the strawman (On-Ramp, eq. 2), but in a part of each period nothing is held, so that a T below the
//! path's own delay slows a flow and does not stop it.

use onramp_cc::law::{CustomLaw, Entry, FlowFacts, FlowLaw, Head, Sample};
use onramp_cc::{parameters, Bounds, SHORT};
use onramp_units::{Mono, Span, Time};

parameters! { in "onramp.": "partly", {
    "part" part: f64 = 0.8, Bounds::Fraction(0.0, 1.0), "Part of each period in which flows are held.";
    "period" period: Span = Span::from_us(200), SHORT, "Time from the begin of a hold to that of the next.";
} }

pub static ENTRY: Entry = Entry::new("partly", "the strawman in a part of the time", &|| {
    CustomLaw::starting(Params::default(), |params, flow| {
        Box::new(Partly {
            params: *params,
            flow: *flow,
            pause_until: Time::ZERO,
        })
    })
})
.parameters(PARAMETERS);

#[derive(Debug)]
struct Partly {
    params: Params,
    flow: FlowFacts,
    pause_until: Time<Mono>,
}

impl FlowLaw for Partly {
    fn on_sample(&mut self, sample: &Sample) {
        let pause = (sample.owd - self.flow.threshold).min(self.flow.max_pause);
        if pause > Span::ZERO {
            self.pause_until = sample.now + pause;
        }
    }

    fn hold_until(&mut self, head: &Head) -> Option<Time<Mono>> {
        let period_ns = self.params.period.as_ns();
        let begin_ns = head.now.ticks() / period_ns * period_ns;
        let held_ns = (period_ns as f64 * self.params.part) as i64;
        let until = self.pause_until.min(Time::from_ticks(begin_ns + held_ns));
        (until > head.now).then_some(until)
    }
}
