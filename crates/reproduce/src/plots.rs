// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Makes charts from runs.

use crate::error::Result;
use crate::spec::{Choice, FlowColumn, PlotSpec, Show};
use crate::world::World;
use onramp_results::figure::{world_name, Axis, Plot, PlotKind, Series};
use onramp_results::{each_flow, each_point, unit_of, Estimate, RunResult};

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
            categories = groups.iter().map(|group| group.name.clone()).collect();
            let base = Base {
                world,
                spec,
                choice: relative_to.as_ref(),
            };
            let kinds = kinds_of_bars(metrics, x.is_some(), by.as_deref(), &runs);
            let bar = |kind: &Bars| bars(kind, &groups, &runs, &base);
            (
                x.clone().unwrap_or_default(),
                kinds.iter().map(bar).collect(),
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
            label: y_label(spec),
            log: spec.log_y,
            categories: Vec::new(),
        },
        series,
    })
}

/// The label of the y axis; without one, bars have the name and unit of their metrics, if these are the same.
fn y_label(spec: &PlotSpec) -> String {
    let Show::Bars {
        metrics,
        relative_to: None,
        ..
    } = &spec.show
    else {
        return spec.y_label.clone();
    };
    let stem = |metric: &String| match metrics.len() {
        1 => metric.clone(),
        _ => metric
            .rsplit_once('.')
            .map_or(metric.clone(), |(name, _)| name.to_owned()),
    };
    let named = |metric: &String| match unit_of(metric) {
        Ok("" | "1") | Err(_) => stem(metric),
        Ok(unit) => format!("{} ({unit})", stem(metric)),
    };
    let mut names: Vec<String> = metrics.iter().map(named).collect();
    names.dedup();
    match (spec.y_label.is_empty(), &names[..]) {
        (true, [name]) => name.clone(),
        _ => spec.y_label.clone(),
    }
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

/// A group of bars.
struct Group {
    name: String,
    /// The metric of its bars; none where bars have their own.
    metric: Option<String>,
    /// The key and value of its runs; none where all are meant.
    runs: Option<(String, String)>,
}

/// The bars of one name, one in each group.
struct Bars {
    name: String,
    /// The metric; none where groups have theirs.
    metric: Option<String>,
    /// The key and value of its runs; none where all are meant.
    runs: Option<(String, String)>,
}

/// Those alone, in this order.
fn keep(groups: &mut Vec<Group>, only: &[String]) {
    let place = |group: &Group| only.iter().position(|other| *other == group.name);
    groups.retain(|group| place(group).is_some());
    groups.sort_by_key(place);
}

/// The values of `x`, or else the metrics.
fn groups(metrics: &[String], x: Option<&str>, runs: &[&RunResult]) -> Vec<Group> {
    let Some(key) = x else {
        let group = |(metric, name): (&String, String)| Group {
            name,
            metric: Some(metric.clone()),
            runs: None,
        };
        return metrics.iter().zip(short(metrics)).map(group).collect();
    };
    let group = |value: String| Group {
        name: value.clone(),
        metric: None,
        runs: Some((key.to_owned(), value)),
    };
    values_of(key, runs).into_iter().map(group).collect()
}

/// The values of `by`, each with each metric where the groups have none.
fn kinds_of_bars(
    metrics: &[String],
    of_metric: bool,
    by: Option<&str>,
    runs: &[&RunResult],
) -> Vec<Bars> {
    let values: Vec<Option<String>> = match by {
        Some(by) => values_of(by, runs).into_iter().map(Some).collect(),
        None => vec![None],
    };
    let metrics: Vec<(Option<String>, String)> = match of_metric {
        true => metrics
            .iter()
            .cloned()
            .map(Some)
            .zip(short(metrics))
            .collect(),
        false => vec![(None, String::new())],
    };
    let is_named = metrics.len() > 1 || by.is_none();
    let mut kinds = Vec::new();
    for value in values {
        for (metric, short) in &metrics {
            let words = value.iter().chain(is_named.then_some(short));
            let words = words.filter(|word| !word.is_empty()).cloned();
            kinds.push(Bars {
                name: words.collect::<Vec<String>>().join(", "),
                metric: metric.clone(),
                runs: by.map(str::to_owned).zip(value.clone()),
            });
        }
    }
    kinds
}

/// The metrics without the words that all begin with, which distinguish nothing.
fn short(metrics: &[String]) -> Vec<String> {
    let all: Vec<Vec<&str>> = metrics
        .iter()
        .map(|path| path.split('.').collect())
        .collect();
    let shared =
        |n: usize| all.len() > 1 && all.iter().all(|p| p.len() > n + 1 && p[n] == all[0][n]);
    let skip = (0..).take_while(|n| shared(*n)).count();
    all.iter().map(|parts| parts[skip..].join(" ")).collect()
}

/// The values that bars are divided by.
struct Base<'a> {
    world: &'a World,
    spec: &'a PlotSpec,
    choice: Option<&'a Choice>,
}

impl Base<'_> {
    /// The run of the same seed, group and bar, but for what the choice says.
    fn of(&self, run: &RunResult, (kind, group): (&Bars, &Group), metric: &str) -> Option<f64> {
        let mut all = self.spec.of.clone();
        let of_bar = kind.runs.iter().cloned();
        all.extend(of_bar);
        all.extend(self.choice?.clone());
        let mut partners = self
            .world
            .chosen(&all)
            .filter(|run| is_in(run, &group.runs));
        let partner = partners.find(|other| other.seed() == run.seed())?;
        partner.number(metric)
    }
}

/// Whether `run` has the value of the key.
fn is_in(run: &RunResult, chosen: &Option<(String, String)>) -> bool {
    chosen
        .as_ref()
        .is_none_or(|(key, value)| run.params.get(key) == Some(value))
}

fn bars(kind: &Bars, groups: &[Group], runs: &[&RunResult], base: &Base<'_>) -> Series {
    let mut series = Series {
        name: kind.name.clone(),
        ..Series::default()
    };
    for (place, group) in groups.iter().enumerate() {
        let is_meant = |run: &&&RunResult| is_in(run, &kind.runs) && is_in(run, &group.runs);
        let of: Vec<&RunResult> = runs.iter().filter(is_meant).copied().collect();
        let metric = kind.metric.as_ref().or(group.metric.as_ref());
        let metric = metric.map_or("", String::as_str);
        let estimate = match base.choice {
            Some(_) => {
                let pair = |run: &&RunResult| {
                    Some((run.number(metric)?, base.of(run, (kind, group), metric)?))
                };
                let pairs: Vec<(f64, f64)> = of.iter().filter_map(pair).collect();
                (!pairs.is_empty())
                    .then(|| Estimate::of_ratios(&pairs))
                    .flatten()
            }
            None => estimate(&of, metric),
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
            .map(|group| group.name)
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
