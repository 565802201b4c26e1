// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! How long the calling thread and the machine have lacked a processor, from /proc.

use std::fs::read_to_string;

use crate::machine::Lacked;

/// A tick of /proc/stat, which has 100 a second on every architecture (USER_HZ).
const TICK_NS: i64 = 10_000_000;
/// Column of the steal time in a line of /proc/stat, after its name.
const STEAL: usize = 7;

/// Both, as far as this kernel says.
pub(crate) fn read() -> Lacked {
    let read = |path: &str| read_to_string(path).ok();
    Lacked {
        waited_ns: read("/proc/thread-self/schedstat").and_then(|text| waited_ns(&text)),
        stolen_ns: read("/proc/stat").and_then(|text| stolen_ns(&text)),
    }
}

/// The second number of schedstat: ns for which the thread could run and did not.
fn waited_ns(schedstat: &str) -> Option<i64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

/// Steal time of all processors, divided by their number.
fn stolen_ns(stat: &str) -> Option<i64> {
    let all = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: i64 = all.split_whitespace().nth(STEAL)?.parse().ok()?;
    let is_one = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    let processors = stat.lines().filter(is_one).count().max(1);
    ticks.checked_mul(TICK_NS).map(|ns| ns / processors as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_text_is_read_and_nonsense_says_nothing() {
        assert_eq!(waited_ns("123 456 7\n"), Some(456));
        let stat = "cpu  1 2 3 4 5 6 7 30 9 10\ncpu0 1 2 3 4 5 6 7 10 9 10\ncpu1 1 2 3 4 5 6 7 20 9 10\nintr 5\n";
        assert_eq!(stolen_ns(stat), Some(150_000_000));
        for nonsense in [
            "",
            "cpu",
            "x y z",
            "1",
            "cpu  1 2 3\n",
            "cpu  1 2 3 4 5 6 7 x\n",
        ] {
            assert_eq!(stolen_ns(nonsense), None, "{nonsense:?}");
        }
        assert_eq!(waited_ns("1"), None);
        assert_eq!(waited_ns("1 x 2"), None);
    }

    #[test]
    fn this_kernel_says_both() {
        let lacked = read();
        assert!(lacked.stolen_ns.is_some_and(|ns| ns >= 0), "{lacked:?}");
    }
}
