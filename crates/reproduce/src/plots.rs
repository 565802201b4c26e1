// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Makes charts from runs.

use crate::error::Result;
use crate::spec::{Choice, FlowColumn, PlotSpec, Show};
use crate::world::World;
use onramp_results::figure::{world_name, Axis, Plot, PlotKind, Series};
use onramp_results::{each_flow, each_point, Estimate, RunResult};

/// Points of a distribution: enough for a chart as wide as a screen.
const MOST_STEPS: usize = 500;

/// The charts of `spec` from the runs of `worlds`. Bars and distributions of all worlds share one chart;
/// other kinds, which would hide each other, have one chart for each world. A world without points is
/// omitted if there are others.
///
/// # Errors
/// Results that cannot be read.
pub fn plots(spec: &PlotSpec, worlds: &[World]) -> Result<Vec<Plot>> {
    let mut charts: Vec<Plot> = Vec::new();
    for world in worlds {
        let mut chart = plot(spec, world)?;
        if worlds.len() == 1 {
            return Ok(vec![chart]);
        }
        let world = world_name(&world.name);
        chart.series.retain(|series| !series.x.is_empty());
        let is_shared = matches!(chart.kind, PlotKind::Bar | PlotKind::Step);
        match is_shared {
            true => chart
                .series
                .iter_mut()
                .for_each(|series| series.name += &format!(", {world}")),
            false => chart.title += &format!(", {world}"),
        }
        match charts.last_mut() {
            Some(last) if is_shared && last.x.categories == chart.x.categories => {
                last.series.append(&mut chart.series);
            }
            _ if chart.series.is_empty() => {}
            _ => charts.push(chart),
        }
    }
    Ok(charts)
}

/// The chart of `spec` from the runs of `world`.
fn plot(spec: &PlotSpec, world: &World) -> Result<Plot> {
    let runs: Vec<&RunResult> = world.chosen(&spec.of).collect();
    let mut categories = Vec::new();
    let (x, series) = match &spec.show {
        Show::Bars {
            metrics,
            x,
            groups: only,
            by,
            relative_to,
        } => {
            let mut groups = groups(metrics, x.as_deref(), &runs);
            if !only.is_empty() {
                keep(&mut groups, only);
            }
            categories = groups.iter().map(|(name, ..)| name.clone()).collect();
            let base = Base {
                world,
                spec,
                choice: relative_to.as_ref(),
            };
            let bar = |name: &String| bars(name, by, &groups, &runs, &base);
            (
                String::new(),
                values_of(by, &runs).iter().map(bar).collect(),
            )
        }
        Show::Time {
            series,
            places,
            by,
            from_ms,
            to_ms,
            ..
        } => {
            let span = (from_ms.unwrap_or(f64::MIN), to_ms.unwrap_or(f64::MAX));
            let first = first_seed(&runs);
            let lines = match by {
                Some(by) => over_runs(world, &first, (series, &places[0], by), span)?,
                None => over_places(world, &first, series, places, span)?,
            };
            ("time (ms)".to_owned(), lines)
        }
        Show::Pairs { signal } => (String::new(), pairs(world, &first_seed(&runs), signal)?),
        Show::Cdf { column, kind, by } => {
            let mut steps = Vec::new();
            for name in values_of(by, &runs) {
                let of = with(&runs, by, &name);
                steps.push(cdf(world, name, &of, (*column, kind))?);
            }
            (String::new(), steps)
        }
    };
    Ok(Plot {
        title: spec.title.clone(),
        kind: spec.show.kind(),
        x: Axis {
            label: spec.x_label.clone().unwrap_or(x),
            log: spec.log_x,
            categories,
        },
        y: Axis {
            label: spec.y_label.clone(),
            log: spec.log_y,
            categories: Vec::new(),
        },
        series,
    })
}

/// Values of `key`, in the order of the runs.
fn values_of(key: &str, runs: &[&RunResult]) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for value in runs.iter().filter_map(|run| run.params.get(key)) {
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    values
}

fn with<'a>(runs: &[&'a RunResult], key: &str, value: &str) -> Vec<&'a RunResult> {
    let has = |run: &&&RunResult| run.params.get(key).is_some_and(|v| v == value);
    runs.iter().filter(has).copied().collect()
}

/// A group of bars: its name, its metric, and the value of its key.
type Group = (String, String, Option<(String, String)>);

/// Those alone, in this order.
fn keep(groups: &mut Vec<Group>, only: &[String]) {
    let place = |name: &String| only.iter().position(|other| other == name);
    groups.retain(|(name, ..)| place(name).is_some());
    groups.sort_by_key(|(name, ..)| place(name));
}

fn groups(metrics: &[String], x: Option<&str>, runs: &[&RunResult]) -> Vec<Group> {
    match x {
        Some(key) => {
            let metric = metrics.first().cloned().unwrap_or_default();
            let group =
                |value: String| (value.clone(), metric.clone(), Some((key.to_owned(), value)));
            values_of(key, runs).into_iter().map(group).collect()
        }
        None => {
            // The common prefix of all metrics distinguishes nothing.
            let parts = |metric: &String| metric.split('.').map(str::to_owned).collect::<Vec<_>>();
            let all: Vec<Vec<String>> = metrics.iter().map(parts).collect();
            let shared = |n: usize| {
                all.len() > 1 && all.iter().all(|p| p.len() > n + 1 && p[n] == all[0][n])
            };
            let skip = (0..).take_while(|n| shared(*n)).count();
            let name = |parts: &Vec<String>| parts[skip..].join(" ");
            metrics
                .iter()
                .zip(&all)
                .map(|(metric, parts)| (name(parts), metric.clone(), None))
                .collect()
        }
    }
}

/// The values that bars are divided by.
struct Base<'a> {
    world: &'a World,
    spec: &'a PlotSpec,
    choice: Option<&'a Choice>,
}

impl Base<'_> {
    /// The run of the same seed and group.
    fn of(&self, run: &RunResult, group: &Group) -> Option<f64> {
        let choice = self.choice?;
        let in_group = |other: &&RunResult| match &group.2 {
            Some((key, value)) => other.params.get(key) == Some(value),
            None => true,
        };
        let mut all = self.spec.of.clone();
        all.extend(choice.clone());
        let mut partners = self.world.chosen(&all).filter(in_group);
        let partner = partners.find(|other| other.seed() == run.seed())?;
        partner.number(&group.1)
    }
}

fn bars(name: &str, by: &str, groups: &[Group], runs: &[&RunResult], base: &Base<'_>) -> Series {
    let mut series = Series {
        name: name.to_owned(),
        ..Series::default()
    };
    for (place, group) in groups.iter().enumerate() {
        let mut of = with(runs, by, name);
        if let Some((key, value)) = &group.2 {
            of = with(&of, key, value);
        }
        let estimate = match base.choice {
            Some(_) => {
                let pair = |run: &&RunResult| Some((run.number(&group.1)?, base.of(run, group)?));
                let pairs: Vec<(f64, f64)> = of.iter().filter_map(pair).collect();
                (!pairs.is_empty())
                    .then(|| Estimate::of_ratios(&pairs))
                    .flatten()
            }
            None => estimate(&of, &group.1),
        };
        put(&mut series, place as f64, estimate);
    }
    series
}

fn estimate(runs: &[&RunResult], metric: &str) -> Option<Estimate> {
    let values = runs.iter().filter_map(|run| run.number(metric));
    Estimate::of(&values.collect::<Vec<_>>())
}

fn put(series: &mut Series, x: f64, estimate: Option<Estimate>) {
    series.x.push(x);
    series.y.push(estimate.map(|e| e.value));
    series.low.push(estimate.and_then(|e| Some(e.interval?[0])));
    series
        .high
        .push(estimate.and_then(|e| Some(e.interval?[1])));
}

/// The first run of each setting.
fn first_seed<'a>(runs: &[&'a RunResult]) -> Vec<&'a RunResult> {
    let first = runs.first().map_or("", |run| run.seed());
    runs.iter()
        .filter(|run| run.seed() == first)
        .copied()
        .collect()
}

fn over_runs(
    world: &World,
    runs: &[&RunResult],
    (series, place, by): (&str, &str, &str),
    span: (f64, f64),
) -> Result<Vec<Series>> {
    let mut lines = Vec::new();
    for run in runs {
        let name = run.params.get(by).map_or("", String::as_str);
        lines.push(points(world, run, (name, series, place), span)?);
    }
    Ok(lines)
}

fn over_places(
    world: &World,
    runs: &[&RunResult],
    series: &str,
    places: &[String],
    span: (f64, f64),
) -> Result<Vec<Series>> {
    let Some(run) = runs.first() else {
        return Ok(Vec::new());
    };
    let line = |place: &String| points(world, run, (place, series, place), span);
    places.iter().map(line).collect()
}

fn points(
    world: &World,
    run: &RunResult,
    (name, series, place): (&str, &str, &str),
    (from_ms, to_ms): (f64, f64),
) -> Result<Series> {
    let mut line = Series {
        name: name.to_owned(),
        ..Series::default()
    };
    each_point(&world.directory, run.run, |point| {
        let time_ms = point.time_ns as f64 / 1e6;
        if point.name == series && point.place == place && (from_ms..=to_ms).contains(&time_ms) {
            line.x.push(time_ms);
            line.y.push(Some(point.value));
        }
    })?;
    Ok(line)
}

/// Rows of a pair or a round are consecutive, so that the n-th row of each name belongs to the n-th pair.
fn pairs(world: &World, runs: &[&RunResult], signal: &str) -> Result<Vec<Series>> {
    let mut series = Series {
        name: signal.to_owned(),
        ..Series::default()
    };
    let met = match signal {
        "round_rtt_us" => "round_marked_fraction",
        _ => "pair_owd_us",
    };
    if let Some(run) = runs.first() {
        each_point(&world.directory, run.run, |point| {
            if point.name == signal {
                series.x.push(point.value);
            } else if point.name == met {
                series.y.push(Some(point.value));
            }
        })?;
    }
    Ok(vec![series])
}

fn cdf(
    world: &World,
    name: String,
    runs: &[&RunResult],
    (column, kind): (FlowColumn, &str),
) -> Result<Series> {
    let mut values: Vec<f64> = Vec::new();
    for run in runs {
        each_flow(&world.directory, run.run, |flow| {
            let value = match column {
                FlowColumn::SizeBytes => flow.size_bytes.map(|size| size as f64),
                FlowColumn::FctUs => flow.fct_ns.map(|ns| ns as f64 / 1e3),
            };
            values.extend(value.filter(|_| flow.measured && flow.kind == kind));
        })?;
    }
    values.sort_by(f64::total_cmp);
    let (count, last) = (values.len() as f64, values.len().saturating_sub(1));
    let stride = values.len().div_ceil(MOST_STEPS).max(1);
    let steps = (0..values.len()).filter(|n| n % stride == 0 || *n == last);
    let steps: Vec<(f64, f64)> = steps.map(|n| (values[n], (n + 1) as f64 / count)).collect();
    Ok(Series {
        name,
        x: steps.iter().map(|step| step.0).collect(),
        y: steps.iter().map(|step| Some(step.1)).collect(),
        ..Series::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_called_by_what_differs() {
        let metrics = ["a.b_us.mean".to_owned(), "a.b_us.p99".to_owned()];
        let names: Vec<String> = groups(&metrics, None, &[])
            .into_iter()
            .map(|g| g.0)
            .collect();
        assert_eq!(names, ["mean", "p99"]);
    }

    #[test]
    fn only_the_groups_that_are_chosen_are_drawn() {
        let run = |(n, case): (usize, &str)| RunResult {
            run: n,
            params: Choice::from([("case", case), ("law", "off")].map(owned)),
            resolved: serde_json::Value::Null,
            partial: false,
            metrics: [("drops".to_owned(), n.into())].into(),
            cost: Default::default(),
        };
        let world = World {
            name: "sim".to_owned(),
            directory: Default::default(),
            runs: ["a", "b", "c"].into_iter().enumerate().map(run).collect(),
        };
        let spec: PlotSpec = toml::from_str(
            "title = \"t\"\ny_label = \"y\"\n\
             show.bars = { metrics = [\"drops\"], x = \"case\", groups = [\"c\", \"a\"], by = \"law\" }",
        )
        .unwrap();
        let plot = plot(&spec, &world).unwrap();
        assert_eq!(plot.x.categories, ["c", "a"]);
        assert_eq!(plot.series[0].y, [Some(2.0), Some(0.0)]);
    }

    fn owned((key, value): (&str, &str)) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }
}
