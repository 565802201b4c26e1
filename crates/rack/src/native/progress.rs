// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The progress of a run, as a value and as a line that a guest prints.

use std::fmt;
use std::str::FromStr;

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// The network is being built.
    Building,
    /// The hosts' daemons start: the fraction of the start-up time that has passed, 0 to 1.
    Daemons(f64),
    /// Traffic: the fraction of its duration that has passed, 0 to 1; above 1 while the last flows finish.
    Traffic(f64),
    /// Results are being written.
    Writing,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Building => write!(f, "building"),
            Progress::Daemons(part) => write!(f, "daemons {part:.3}"),
            Progress::Traffic(part) => write!(f, "traffic {part:.3}"),
            Progress::Writing => write!(f, "writing"),
        }
    }
}

/// The text is not how a [`Progress`] is shown.
#[derive(Debug, PartialEq, Eq)]
pub struct NoProgress;

impl FromStr for Progress {
    type Err = NoProgress;

    fn from_str(text: &str) -> Result<Progress, NoProgress> {
        let (phase, part) = text.split_once(' ').unwrap_or((text, ""));
        match (phase, part.parse()) {
            ("building", _) => Ok(Progress::Building),
            ("daemons", Ok(part)) => Ok(Progress::Daemons(part)),
            ("traffic", Ok(part)) => Ok(Progress::Traffic(part)),
            ("writing", _) => Ok(Progress::Writing),
            _ => Err(NoProgress),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_read() {
        for progress in [
            Progress::Building,
            Progress::Daemons(0.25),
            Progress::Traffic(1.5),
            Progress::Writing,
        ] {
            assert_eq!(progress.to_string().parse(), Ok(progress));
        }
        assert_eq!("traffic jam".parse::<Progress>(), Err(NoProgress));
    }
}
