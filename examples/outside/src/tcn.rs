// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A rule of switches: TCN marks packets by the time that they were in the queue (Bai et al., CoNEXT 2016).

use onramp_cc::switch::{Entry, Rule, Seen, SwitchRule, Verdict};
use onramp_cc::{parameters, SHORT};
use onramp_units::Span;

parameters! { in "network.": "tcn", {
    "threshold" threshold: Span = Span::from_us(20), SHORT, "A packet that was longer in the queue is marked.";
} }

pub static ENTRY: Entry = Entry::new(
    "tcn",
    "marks packets by the time that they were in the queue (Bai et al., CoNEXT 2016)",
    || Rule::custom(Params::default(), |params, _| Box::new(AtPort(*params))),
)
.marks(true)
.parameters(PARAMETERS);

struct AtPort(Params);

impl SwitchRule for AtPort {
    fn leaves(&mut self, seen: &mut Seen<'_>) -> Verdict {
        match seen.waited > self.0.threshold {
            true => Verdict::Mark,
            false => Verdict::Pass,
        }
    }
}
