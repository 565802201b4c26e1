// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
use super::*;
use Verdict::{DirectionOnly, NotMeasured, NotReproduced, PointEstimate, Reproduced};

fn spec(text: &str) -> RowSpec {
    let text = format!("name = \"n\"\nsource = \"s\"\nmetric = \"m\"\nunit = \"\"\n{text}");
    toml::from_str(&text).unwrap()
}

fn verdict(text: &str, value: f64, interval: [f64; 2]) -> Verdict {
    let interval = Some(interval);
    of(&spec(text), Some(Estimate { value, interval }))
}

#[test]
fn of_a_fall_of_21_percent_neither_47_nor_none_passes() {
    let paper = "as = \"change\"\npaper = -21";
    for (value, interval, expected) in [
        (-47.0, [-48.0, -46.0], DirectionOnly),
        (0.0, [-1.0, 1.0], NotReproduced),
        (0.0, [0.0, 0.0], NotReproduced),
        (21.0, [20.0, 22.0], NotReproduced),
        (-21.0, [-24.0, -18.0], Reproduced),
        // By the logarithm: from 14.5 to 29.8 %.
        (-15.0, [-15.4, -14.6], Reproduced),
        (-14.0, [-14.4, -13.6], DirectionOnly),
        (-29.0, [-29.7, -28.3], Reproduced),
        (-31.0, [-31.4, -30.6], DirectionOnly),
        // The mean agrees, but 33 or 1 % would be possible too.
        (-25.0, [-33.0, -17.0], PointEstimate),
        (-20.0, [-39.0, -1.0], PointEstimate),
        (-20.0, [-41.0, 1.0], PointEstimate),
        (-10.0, [-21.0, 1.0], NotReproduced),
    ] {
        assert_eq!(verdict(paper, value, interval), expected, "{value}");
    }
}

#[test]
fn a_large_effect_must_be_close_as_a_ratio_too() {
    let paper = "as = \"ratio\"\npaper = 13";
    assert_eq!(verdict(paper, 18.0, [17.0, 19.0]), Reproduced);
    // 1.2 times its logarithm, but 1.7 times the ratio.
    assert_eq!(verdict(paper, 22.0, [21.0, 23.0]), DirectionOnly);
    assert_eq!(verdict(paper, 0.1, [0.05, 0.2]), NotReproduced);
    let within = "as = \"ratio\"\npaper = 13\nwithin = 2";
    assert_eq!(verdict(within, 22.0, [21.0, 23.0]), Reproduced);
}

#[test]
fn a_number_is_judged_by_its_factor() {
    let paper = "paper = 60\nwithin = 1.2\nat_most = 95";
    assert_eq!(verdict(paper, 70.0, [69.0, 71.0]), Reproduced);
    assert_eq!(verdict(paper, 70.0, [60.0, 80.0]), PointEstimate);
    assert_eq!(verdict(paper, 80.0, [75.0, 85.0]), DirectionOnly);
    assert_eq!(verdict(paper, 90.0, [80.0, 100.0]), NotReproduced);
    assert_eq!(verdict("paper = 60", 200.0, [199.0, 201.0]), NotReproduced);
}

#[test]
fn an_index_is_judged_by_its_difference() {
    let paper = "paper = 0.98\ntolerance = 0.05";
    assert_eq!(verdict(paper, 0.95, [0.94, 0.96]), Reproduced);
    assert_eq!(verdict(paper, 0.95, [0.92, 0.98]), PointEstimate);
    assert_eq!(verdict(paper, 0.91, [0.90, 0.92]), NotReproduced);
}

#[test]
fn a_bound_holds_for_the_whole_interval() {
    let bound = "as = \"ratio\"\nat_least = 1.5\ngives = \"picture\"";
    assert_eq!(verdict(bound, 1.6, [1.51, 1.69]), Reproduced);
    assert_eq!(verdict(bound, 1.6, [1.4, 1.8]), PointEstimate);
    assert_eq!(verdict(bound, 1.2, [1.1, 1.3]), DirectionOnly);
    assert_eq!(verdict(bound, 1.2, [0.9, 1.5]), NotReproduced);
    let least = "at_least = 80\ngives = \"words\"";
    assert_eq!(verdict(least, 81.0, [79.0, 83.0]), PointEstimate);
    assert_eq!(verdict(least, 79.0, [78.0, 80.0]), NotReproduced);
    let both = "as = \"ratio\"\nat_least = 0.8\nat_most = 1.5\ngives = \"picture\"";
    assert_eq!(verdict(both, 1.2, [1.1, 1.3]), Reproduced);
    assert_eq!(verdict(both, 1.6, [1.55, 1.65]), NotReproduced);
    let falls = "as = \"ratio\"\nat_most = 0.5\ngives = \"picture\"";
    assert_eq!(verdict(falls, 0.7, [0.6, 0.8]), DirectionOnly);
    assert_eq!(verdict(falls, 1.4, [1.3, 1.5]), NotReproduced);
}

#[test]
fn no_worse_is_not_improves() {
    let improves = "as = \"change\"\nsays = \"less\"\ngives = \"words\"";
    let no_worse = "as = \"change\"\nsays = \"no_more\"\nmargin = 2\ngives = \"words\"";
    for (value, interval, improved, kept) in [
        (-5.0, [-6.0, -4.0], Reproduced, Reproduced),
        (-1.0, [-3.0, 1.0], PointEstimate, Reproduced),
        (0.0, [0.0, 0.0], NotReproduced, Reproduced),
        (1.0, [-1.0, 3.0], NotReproduced, PointEstimate),
        (5.0, [4.0, 6.0], NotReproduced, NotReproduced),
    ] {
        assert_eq!(verdict(improves, value, interval), improved, "{value}");
        assert_eq!(verdict(no_worse, value, interval), kept, "{value}");
    }
    let more = "as = \"ratio\"\nsays = \"more\"\ngives = \"words\"";
    assert_eq!(verdict(more, 1.1, [1.05, 1.15]), Reproduced);
    assert_eq!(verdict(more, 0.9, [0.85, 0.95]), NotReproduced);
    let kept = "as = \"change\"\nsays = \"no_less\"\nmargin = 5\ngives = \"words\"";
    assert_eq!(verdict(kept, 20.0, [-4.0, 44.0]), Reproduced);
    assert_eq!(verdict(kept, 20.0, [-6.0, 46.0]), PointEstimate);
}

#[test]
fn the_same_means_an_interval_inside_of_the_margin() {
    let same = "as = \"change\"\nsays = \"same\"\nmargin = 10\ngives = \"words\"";
    assert_eq!(verdict(same, 4.0, [2.0, 6.0]), Reproduced);
    assert_eq!(verdict(same, -8.0, [-9.0, -7.0]), Reproduced);
    // No difference is shown, but neither is equality.
    assert_eq!(verdict(same, 4.0, [-12.0, 20.0]), PointEstimate);
    assert_eq!(verdict(same, 15.0, [14.0, 16.0]), NotReproduced);
}

#[test]
fn a_row_without_an_interval_is_never_sure() {
    for text in [
        "paper = 2",
        "as = \"ratio\"\npaper = 2",
        "as = \"ratio\"\nat_least = 1.5\ngives = \"picture\"",
        "as = \"ratio\"\nsays = \"more\"\ngives = \"words\"",
        "as = \"ratio\"\nsays = \"no_less\"\nmargin = 2\ngives = \"words\"",
    ] {
        let interval = None;
        let alone = |value| of(&spec(text), Some(Estimate { value, interval }));
        assert_eq!(alone(2.0), PointEstimate, "{text}");
        assert_eq!(alone(0.5), NotReproduced, "{text}");
    }
    let interval = None;
    let effect = spec("as = \"ratio\"\npaper = 2");
    let twice = Some(Estimate {
        value: 4.0,
        interval,
    });
    assert_eq!(of(&effect, twice), NotReproduced);
}

#[test]
fn a_row_without_a_value_is_not_measured_and_one_without_a_claim_is_beyond() {
    assert_eq!(of(&spec("as = \"ratio\"\npaper = 2"), None), NotMeasured);
    assert_eq!(verdict("as = \"ratio\"", 1.0, [1.0, 1.0]), Verdict::Beyond);
}
