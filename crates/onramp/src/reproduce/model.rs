// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The digest of the simulator's results in each figure's scenario (docs/reproduction/models.json).
use std::hash::Hasher;
use std::sync::Mutex;

use anyhow::{Context, Result};
use onramp_reproduce::{probe, Library, Models, Planned, ScaleName};
use onramp_results::FlowRow;
use onramp_scenario::Run;
use onramp_sim::run::{run, Progress, Watch};
use siphasher::sip::SipHasher13;

/// A probe ends after so many transmissions over a link, so that the digests of all figures take seconds.
const ENOUGH: u64 = 60_000;

/// The digests of all figures that have a scenario, `threads` at a time.
pub fn models(library: &Library, threads: usize) -> Result<Models> {
    let planned = Planned::all(library, ScaleName::Quick)?;
    let todo = Mutex::new(planned.iter().filter(|figure| figure.scenario.is_some()));
    let done = Mutex::new(Ok(Models::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| loop {
                let next = todo.lock().expect("no thread panicked").next();
                let Some(figure) = next else { return };
                let digest = model(figure);
                let mut done = done.lock().expect("no thread panicked");
                if let Ok(models) = &mut *done {
                    match digest {
                        Ok(digest) => drop(models.insert(figure.id.clone(), digest)),
                        Err(error) => *done = Err(error),
                    }
                }
            });
        }
    });
    done.into_inner().expect("no thread panicked")
}

fn model(figure: &Planned) -> Result<String> {
    let mut hasher = SipHasher13::new();
    for run in probe(figure) {
        add(&mut hasher, &run).with_context(|| format!("simulating {}", figure.id))?;
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// Adds the results of a run's flows.
fn add(hasher: &mut SipHasher13, of: &Run) -> Result<()> {
    let go_on = &mut |progress: Progress| progress.packet_hops < ENOUGH;
    let report = run(of, 0, Watch::default(), go_on)?;
    for flow in report.flows() {
        for number in outcome(&flow) {
            hasher.write_i64(number);
        }
    }
    Ok(())
}

/// The results that a change of the model may change. Missing times are -1.
fn outcome(flow: &FlowRow) -> [i64; 7] {
    let simulated = flow.simulated.as_ref();
    [
        flow.start_ns,
        flow.fct_ns.unwrap_or(-1),
        simulated.and_then(|s| s.acked_ns).unwrap_or(-1),
        simulated.map_or(0, |s| s.held_ns),
        flow.retransmissions,
        flow.timeouts,
        flow.src << 32 | flow.dst,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digests_of_the_model_are_current() {
        let now = models(&Library::BuiltIn, 2).unwrap();
        let recorded = onramp_reproduce::models();
        let changed: Vec<&String> = now
            .keys()
            .filter(|id| now.get(*id) != recorded.get(*id))
            .collect();
        assert!(
            changed.is_empty() && now.len() == recorded.len(),
            "the simulator's results changed in the scenarios of {changed:?}. If that is meant, say why in the \
             commit and run `onramp reproduce --table`, which marks what is stale, or run the figures again"
        );
    }
}
