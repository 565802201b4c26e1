// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Classes of flow sizes.

/// Small up to this.
pub const SMALL_BYTES: i64 = 10_000;
/// Medium up to this, large above.
pub const MEDIUM_BYTES: i64 = 1_000_000;

/// A class of flow sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Up to 10 kB.
    Small,
    /// Up to 1 MB.
    Medium,
    /// Above.
    Large,
}

impl Class {
    /// All, by size.
    pub const ALL: [Class; 3] = [Class::Small, Class::Medium, Class::Large];

    /// The class of a flow of `bytes`.
    pub fn of(bytes: i64) -> Class {
        match bytes {
            small if small <= SMALL_BYTES => Class::Small,
            medium if medium <= MEDIUM_BYTES => Class::Medium,
            _ => Class::Large,
        }
    }

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Class::Small => "small",
            Class::Medium => "medium",
            Class::Large => "large",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_meet_at_10_kb_and_1_mb() {
        let sizes = [0, 10_000, 10_001, 1_000_000, 1_000_001];
        let names = sizes.map(|bytes| Class::of(bytes).name());
        assert_eq!(names, ["small", "small", "medium", "medium", "large"]);
    }
}
