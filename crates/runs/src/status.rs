// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The progress of a schedule, and its line on stderr.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shortest time between two lines, on a terminal and in a log.
const PERIODS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(15));

/// The progress of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// Runs to make.
    pub runs: usize,
    /// Complete runs.
    pub finished: usize,
    /// Runs in progress.
    pub running: Vec<Running>,
    /// Time since the start.
    pub elapsed: Duration,
    /// Remaining time; none while too little is complete for an estimate.
    pub left: Option<Duration>,
}

/// A run in progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Running {
    /// Its number.
    pub index: usize,
    /// The fraction of its time that has passed, 0 to 1.
    pub done: f64,
    /// Its current step.
    pub doing: String,
}

impl Status {
    /// The fraction of the wall-clock time that has passed, 0 to 1.
    pub fn part_done(&self) -> f64 {
        let elapsed = self.elapsed.as_secs_f64();
        self.left
            .map_or(0.0, |left| elapsed / (elapsed + left.as_secs_f64()))
    }

    /// The time since the start, and the remaining time.
    pub fn times(&self) -> String {
        let left = match self.left {
            Some(left) => format!(
                "{:.0} %, {:.0} s left",
                100.0 * self.part_done(),
                left.as_secs_f64()
            ),
            None => "time left unknown".to_owned(),
        };
        format!("{:.0} s, {left}", self.elapsed.as_secs_f64())
    }

    /// The status in a line; `speed` precedes the runs in progress.
    pub fn text(&self, speed: &str) -> String {
        let (runs, times) = (count(self.runs, "run"), self.times());
        let mut line = format!("{} of {runs} done, {times}{speed}", self.finished);
        for run in &self.running {
            line += &format!("   #{} {:.0} %", run.index, run.done * 100.0);
            if !run.doing.is_empty() {
                line += &format!(" ({})", run.doing);
            }
        }
        line
    }
}

/// `1 run`, `2 runs`.
pub fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// Progress on stderr: one changing line on a terminal, otherwise a line from time to time.
pub struct Line {
    terminal: bool,
    last: Option<Instant>,
}

impl Default for Line {
    fn default() -> Line {
        Line {
            terminal: std::io::stderr().is_terminal(),
            last: None,
        }
    }
}

impl Line {
    /// Shows the result of `text`, unless the last line is too recent.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        let period = if self.terminal { PERIODS.0 } else { PERIODS.1 };
        if self.last.is_some_and(|last| last.elapsed() < period) {
            return;
        }
        self.last = Some(Instant::now());
        if self.terminal {
            eprint!("\r\x1b[K{}", text());
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{}", text());
        }
    }
}

impl Drop for Line {
    /// Ends the line, so that the next output starts a new one.
    fn drop(&mut self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_done_is_that_of_the_wall_clock_time() {
        let status = |left: Option<u64>| Status {
            runs: 3,
            finished: 2,
            running: vec![Running {
                index: 2,
                done: 0.25,
                doing: "boots".to_owned(),
            }],
            elapsed: Duration::from_secs(10),
            left: left.map(Duration::from_secs),
        };
        assert_eq!(status(Some(30)).part_done(), 0.25);
        assert_eq!(
            status(Some(30)).text(", fast"),
            "2 of 3 runs done, 10 s, 25 %, 30 s left, fast   #2 25 % (boots)"
        );
        let unknown = status(None);
        assert_eq!(unknown.part_done(), 0.0);
        assert!(unknown.text("").contains("time left unknown"));
    }

    #[test]
    fn one_run_is_no_plural() {
        assert_eq!(
            (count(1, "run"), count(0, "run")),
            ("1 run".into(), "0 runs".into())
        );
    }
}
