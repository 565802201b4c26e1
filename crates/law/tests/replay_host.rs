// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The vector files on this host's build of the laws.

#[path = "vectors/host.rs"]
mod host;
#[path = "vectors/random.rs"]
mod random;
mod vectors;

use host::Host;

const HAND: &str = include_str!("../../../tests/law-vectors.hand.txt");
const RANDOM: &str = include_str!("../../../tests/law-vectors.random.txt");

#[track_caller]
fn same(file: &str, expected: &str, got: &str) {
    for (number, (e, g)) in expected.lines().zip(got.lines()).enumerate() {
        assert_eq!(
            e,
            g,
            "tests/{file}:{}: expected (left) and got (right)",
            number + 1
        );
    }
    assert_eq!(expected.len(), got.len(), "tests/{file}: lines are missing");
}

#[test]
fn hand_derived_vectors_hold() {
    same(
        "law-vectors.hand.txt",
        HAND,
        &vectors::replay(HAND, &mut Host::new()),
    );
}

#[test]
fn randomised_vectors_hold() {
    same(
        "law-vectors.random.txt",
        RANDOM,
        &vectors::replay(RANDOM, &mut Host::new()),
    );
}

#[test]
fn regenerating_gives_the_same_bytes() {
    same("law-vectors.random.txt", RANDOM, &random::text());
}
