// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The [`Machine`] of this host's build, through the crate's own face.

use super::vectors::{Machine, Op};
use onramp_law::abi::{onr_cfg, onr_flow, onr_records, ONR_NO_OWD};
use onramp_law::{Config, Flow, Hint, Law, PathState, Record, Records};
use onramp_units::{Span, Time};

pub struct Host {
    config: Config,
    flow: Flow,
    records: Records,
}

impl Host {
    pub fn new() -> Host {
        Host {
            config: Config::new(Law::Off, Span::ZERO),
            flow: Flow::default(),
            records: Records::default(),
        }
    }
}

impl Machine for Host {
    fn configure(&mut self, cfg: &onr_cfg) {
        self.config = Config::from(*cfg);
    }

    fn begin(&mut self) {
        self.flow = Flow::default();
        self.records = Records::default();
    }

    fn run(&mut self, op: &Op) -> i64 {
        let Host {
            config,
            flow,
            records,
        } = self;
        let at = Time::from_ticks;
        match *op {
            Op::Sent { now, seq, len } => {
                records.sent(config, flow, at(now), seq, len);
                0
            }
            Op::Orack { now, seq, rx } => records.orack(config, flow, seq, at(now), at(rx)) as i64,
            Op::Arrived {
                now,
                seq,
                rx,
                record,
            } => flow.orack(config, &Record::from(record), seq, at(now), at(rx)) as i64,
            Op::MayGo { now } => flow.may_go(config, at(now)).map_or(0, Time::ticks),
            Op::Path { least, ahead, hint } => {
                flow.set_path(&PathState {
                    least: (least != ONR_NO_OWD as i64).then(|| Span::from_ns(least)),
                    fleet_ahead: Span::from_ns(ahead),
                    hint: Hint::of_bits(hint),
                });
                0
            }
        }
    }

    fn state(&self) -> (onr_flow, onr_records) {
        (*self.flow.abi(), *self.records.abi())
    }
}
