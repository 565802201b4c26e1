//! The paper's numbers beside ours, and the verdict by rule.

use crate::error::Result;
use crate::spec::{Choice, RowSpec};
use crate::statistics::Estimate;
use crate::world::{measured, of_cost, seed, World};
use onramp_results::figure::{By, Measured, Row, Verdict};

/// Largest factor between the paper's improvement and ours that counts as reproduced.
const WITHIN: f64 = 1.5;

/// What `row` came to in each world.
///
/// # Errors
/// Results that cannot be read.
pub fn row(spec: &RowSpec, worlds: &[World]) -> Result<Row> {
    let mut all = Vec::new();
    let can =
        |world: &&World| spec.measure.cost.is_none() && (!spec.is_cpu() || world.name == "rack");
    for world in worlds.iter().filter(can) {
        all.push(judged(spec, &world.name, estimate(spec, world)?));
    }
    if let Some(path) = &spec.measure.cost {
        let value = of_cost(path).map(|value| Estimate {
            value: value * spec.measure.times.unwrap_or(1.0),
            interval: None,
        });
        all.push(judged(spec, "bench", value));
    }
    Ok(Row {
        name: spec.name.clone(),
        unit: unit(spec),
        by: spec.runs.by,
        gives: spec.given(),
        paper: spec.paper.number,
        source: spec.paper.source.clone(),
        measured: all,
        note: spec.note.trim().to_owned(),
    })
}

fn judged(spec: &RowSpec, world: &str, estimate: Option<Estimate>) -> Measured {
    Measured {
        world: world.to_owned(),
        value: estimate.map(|e| e.value),
        interval: estimate.and_then(|e| e.interval),
        verdict: verdict(spec, estimate),
    }
}

fn unit(spec: &RowSpec) -> String {
    let given = spec.unit.clone();
    given.unwrap_or_else(|| match spec.runs.by {
        By::Change => "%".to_owned(),
        By::Ratio | By::Value => "x".to_owned(),
    })
}

/// Over the seeds that there are on both sides.
fn estimate(spec: &RowSpec, world: &World) -> Result<Option<Estimate>> {
    let of = values(spec, world, &spec.runs.of)?;
    let Some(over) = &spec.runs.over else {
        let values: Vec<f64> = of.into_iter().map(|(_, value)| value).collect();
        return Ok(Estimate::of(&values));
    };
    let over = values(spec, world, over)?;
    let partner = |(seed, a): &(String, f64)| {
        let (_, b) = over.iter().find(|(other, _)| other == seed)?;
        Some((*a, *b))
    };
    let pairs: Vec<(f64, f64)> = of.iter().filter_map(partner).collect();
    if pairs.is_empty() {
        return Ok(None);
    }
    let ratio = Estimate::of_ratios(&pairs);
    Ok(ratio.map(|ratio| match spec.runs.by {
        By::Change => ratio.map(|ratio| (ratio - 1.0) * 100.0),
        By::Ratio | By::Value => ratio,
    }))
}

/// By seed.
fn values(spec: &RowSpec, world: &World, choice: &Choice) -> Result<Vec<(String, f64)>> {
    let mut values = Vec::new();
    for run in world.chosen(choice) {
        if let Some(value) = measured(world, run, spec)? {
            values.push((seed(run).to_owned(), value));
        }
    }
    Ok(values)
}

/// Reproduced: within the factor of the paper's number and, if that is a change, on the same side and not by
/// chance; or within the bounds that the picture's shape sets, and not by chance if they ask for a change.
/// Direction only: the same without the factor.
fn verdict(spec: &RowSpec, measured: Option<Estimate>) -> Verdict {
    if spec.given().is_none() {
        return Verdict::Beyond;
    }
    let Some(measured) = measured else {
        return Verdict::NotMeasured;
    };
    let value = measured.value;
    let in_bounds = spec.paper.at_least.is_none_or(|least| value >= least)
        && spec.paper.at_most.is_none_or(|most| value <= most)
        && !(asks_for_change(spec) && is_chance(spec, measured));
    let is_close = spec.paper.number.is_none_or(|paper| {
        let (ours, theirs) = (scale(spec, value), scale(spec, paper));
        let has_sides = spec.runs.by != By::Value && theirs != 1.0;
        let is_on_its_side = same_side(ours, theirs) && !is_chance(spec, measured);
        factor(ours, theirs) <= spec.paper.within.unwrap_or(WITHIN)
            && (!has_sides || is_on_its_side)
    });
    match is_close && (in_bounds || spec.paper.number.is_some()) {
        true => Verdict::Reproduced,
        false if points_the_same_way(spec, measured, in_bounds) => Verdict::DirectionOnly,
        false => Verdict::NotReproduced,
    }
}

/// Changes as ratios, so that -50 % is as far from none as +100 %.
fn scale(spec: &RowSpec, value: f64) -> f64 {
    spec.runs.by.scale(value)
}

fn factor(a: f64, b: f64) -> f64 {
    match a > 0.0 && b > 0.0 {
        true => (a / b).max(b / a),
        false if a == b => 1.0,
        false => f64::INFINITY,
    }
}

fn same_side(a: f64, b: f64) -> bool {
    (a > 1.0) == (b > 1.0)
}

/// Whether no change is outside of the bounds.
fn asks_for_change(spec: &RowSpec) -> bool {
    let of = |bound: Option<f64>| bound.map(|bound| scale(spec, bound));
    let more = of(spec.paper.at_least).is_some_and(|least| least > 1.0);
    let less = of(spec.paper.at_most).is_some_and(|most| most < 1.0);
    spec.runs.by != By::Value && (more || less)
}

/// Whether seeds differ by so much that there may be no change.
fn is_chance(spec: &RowSpec, measured: Estimate) -> bool {
    let ends = measured.interval;
    ends.is_some_and(|[low, high]| scale(spec, low) <= 1.0 && scale(spec, high) >= 1.0)
}

fn points_the_same_way(spec: &RowSpec, measured: Estimate, in_bounds: bool) -> bool {
    if spec.runs.by == By::Value {
        // Of a plain number only bounds say what a direction is.
        return in_bounds && (spec.paper.at_least.is_some() || spec.paper.at_most.is_some());
    }
    // Of a bound, the side that it lies towards: at most 2 % more is none.
    let more = match spec.paper.number {
        Some(paper) if scale(spec, paper) == 1.0 => return false,
        Some(paper) => scale(spec, paper) > 1.0,
        None => spec.paper.at_least.is_some(),
    };
    !is_chance(spec, measured) && (scale(spec, measured.value) > 1.0) == more
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_results::RunResult;
    use serde_json::{json, Value};
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    fn spec(text: &str) -> RowSpec {
        let text = format!("name = \"n\"\nsource = \"s\"\nmetric = \"m\"\n{text}");
        toml::from_str(&text).unwrap()
    }

    fn verdict_of(spec: &RowSpec, value: f64, interval: [f64; 2]) -> Verdict {
        let measured = Estimate {
            value,
            interval: Some(interval),
        };
        verdict(spec, Some(measured))
    }

    #[test]
    fn a_ratio_within_the_factor_is_reproduced() {
        let spec = spec("as = \"ratio\"\npaper = 3.0");
        assert_eq!(verdict_of(&spec, 2.1, [1.8, 2.4]), Verdict::Reproduced);
        assert_eq!(
            verdict_of(&spec, 30.0, [20.0, 40.0]),
            Verdict::DirectionOnly
        );
        assert_eq!(verdict_of(&spec, 1.5, [0.9, 2.2]), Verdict::NotReproduced);
        assert_eq!(verdict_of(&spec, 0.5, [0.4, 0.6]), Verdict::NotReproduced);
    }

    #[test]
    fn a_small_change_is_reproduced_if_it_goes_the_same_way_for_sure() {
        let spec = spec("as = \"change\"\npaper = -7.0");
        assert_eq!(
            verdict_of(&spec, -20.0, [-25.0, -15.0]),
            Verdict::Reproduced
        );
        assert_eq!(verdict_of(&spec, 4.0, [2.0, 6.0]), Verdict::NotReproduced);
        assert_eq!(
            verdict_of(&spec, -7.0, [-15.0, 1.0]),
            Verdict::NotReproduced
        );
        let none = self::spec("as = \"change\"\npaper = 0.0\nwithin = 1.1");
        assert_eq!(verdict_of(&none, 4.0, [2.0, 6.0]), Verdict::Reproduced);
        assert_eq!(
            verdict_of(&none, 15.0, [14.0, 16.0]),
            Verdict::NotReproduced
        );
    }

    #[test]
    fn what_is_only_a_picture_is_judged_by_its_bounds() {
        let spec = spec("as = \"ratio\"\nat_least = 1.5\ngives = \"picture\"");
        assert_eq!(verdict_of(&spec, 1.6, [1.1, 2.1]), Verdict::Reproduced);
        assert_eq!(verdict_of(&spec, 1.2, [1.1, 1.3]), Verdict::DirectionOnly);
        assert_eq!(verdict_of(&spec, 1.2, [0.9, 1.5]), Verdict::NotReproduced);
        assert_eq!(verdict_of(&spec, 1.6, [0.9, 2.8]), Verdict::NotReproduced);
        let no_worse = self::spec("as = \"change\"\nat_most = 2\ngives = \"picture\"");
        assert_eq!(
            verdict_of(&no_worse, 5.0, [4.0, 6.0]),
            Verdict::NotReproduced
        );
        assert_eq!(verdict_of(&no_worse, 1.0, [-1.0, 3.0]), Verdict::Reproduced);
        let free = self::spec("as = \"ratio\"");
        assert_eq!(verdict_of(&free, 1.0, [1.0, 1.0]), Verdict::Beyond);
    }

    /// Its CPU time is 2 s if it is the rack.
    fn world(name: &str, drops: i64) -> World {
        let cpu_s = (name == "rack").then_some(("cpu_s".to_owned(), 2.0));
        let run = RunResult {
            run: 0,
            params: Choice::new(),
            resolved: Value::Null,
            partial: false,
            metrics: BTreeMap::from([("drops".to_owned(), json!(drops))]),
            cost: cpu_s.into_iter().collect(),
        };
        World {
            name: name.to_owned(),
            directory: PathBuf::new(),
            runs: vec![run],
        }
    }

    #[test]
    fn each_world_that_can_measure_a_row_is_judged_alone() {
        let worlds = [world("sim", 30), world("rack", 90)];
        let judged = |text: &str| {
            let spec = toml::from_str(&format!(
                "name = \"n\"\nsource = \"s\"\nunit = \"\"\n{text}"
            ));
            let row = row(&spec.unwrap(), &worlds).unwrap().measured.into_iter();
            row.map(|m| (m.world, m.value, m.verdict))
                .collect::<Vec<_>>()
        };
        let (sim, rack) = ("sim".to_owned(), "rack".to_owned());
        assert_eq!(
            judged("metric = \"drops\"\npaper = 30"),
            [
                (sim, Some(30.0), Verdict::Reproduced),
                (rack.clone(), Some(90.0), Verdict::NotReproduced)
            ]
        );
        assert_eq!(
            judged("metric = \"cost.cpu_s\""),
            [(rack, Some(2.0), Verdict::Beyond)]
        );
        let per = judged("metric = \"drops\"\nper = \"cost.cpu_s\"");
        assert_eq!((per[0].1, per[1].1), (None, Some(45.0)));
        assert_eq!(judged("cost = \"0.sender_percent\"")[0].0, "bench");
    }

    #[test]
    fn a_row_without_a_number_is_not_measured() {
        assert_eq!(
            verdict(&spec("as = \"ratio\"\npaper = 2.0"), None),
            Verdict::NotMeasured
        );
    }
}
