// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Refuses runs that need more memory than is available, before anything is written.
use onramp_scenario::Scenario;
use onramp_sim::run::{memory_needed, BuildError};
use onramp_units::Bytes;

/// Why runs are refused.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The simulator does not support a run.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// They need more than there is.
    #[error(
        "this needs about {} MB of memory for {at_once} runs at a time, and {} MB are available; \
         shorten it, lower its load, or give --threads 1",
        needed.get() / 1_000_000,
        available.get() / 1_000_000
    )]
    TooLarge {
        /// By the largest runs at the same time.
        needed: Bytes,
        /// Without swapping.
        available: Bytes,
        /// Runs.
        at_once: usize,
    },
}

/// Checks that `threads` runs of `scenario` at a time fit into `available`, if that is known.
///
/// # Errors
/// They do not fit, or the simulator does not support one of them.
pub fn check(
    scenario: &Scenario,
    threads: usize,
    available: Option<Bytes>,
) -> Result<(), MemoryError> {
    let mut needed = Vec::new();
    for run in scenario.runs() {
        needed.push(memory_needed(run, threads)?.get());
    }
    // The largest runs at the same time.
    needed.sort_unstable_by(|a, b| b.cmp(a));
    let at_once = threads.clamp(1, needed.len().max(1));
    let needed = Bytes::new(needed.iter().take(at_once).sum());
    match available {
        Some(available) if needed > available => Err(MemoryError::TooLarge {
            needed,
            available,
            at_once,
        }),
        _ => Ok(()),
    }
}

/// Memory that is available without swapping, if /proc has it.
pub fn available() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(Bytes::new(kib << 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POISSON: &str = r#"title = "t"
duration = "1 s"
[network]
topology = { kind = "star", hosts = 4 }
link = { rate = "100 Gbit/s", delay = "1 us" }
[host]
kind = "nic"
cc = "hpcc"
[[traffic]]
kind = "poisson"
to = "all"
workload = "fb_hadoop"
load = "80 %"
"#;

    #[test]
    fn what_does_not_fit_is_refused_with_both_figures() {
        let scenario = Scenario::parse(POISSON, "t").unwrap();
        let few = Some(Bytes::new(110_000_000));
        let error = check(&scenario, 1, few).unwrap_err().to_string();
        assert!(error.contains("and 110 MB are available"), "{error}");
        let needed: u64 = error.split(' ').nth(3).unwrap().parse().unwrap();
        assert!((110..2_000).contains(&needed), "{error}");
        assert!(check(&scenario, 1, Some(Bytes::new(2_000_000_000))).is_ok());
        assert!(check(&scenario, 1, None).is_ok());
    }
}
