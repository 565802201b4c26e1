// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A section of a report: one directory of results of any kind.

use onramp_results::figure::{Figure, MadeBy, Plot, PlotKind, Row, Series, ANOTHER_BUILD};
use serde_json::Value;

/// One directory's part of the page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Section {
    /// Short: `f15`, or the directory's name.
    pub name: String,
    /// One line.
    pub title: String,
    /// The question, in sentences; empty if the title is enough.
    pub asked: String,
    /// What is smaller than in the paper; empty if nothing.
    pub scaled_down: String,
    /// `quick`, `full` or `rack` of a figure of a paper; else empty.
    pub scale: String,
    /// What is missing, if the command was interrupted.
    pub partial: Option<String>,
    /// What has changed since it was made, if anything has.
    pub stale: Option<&'static str>,
    /// Scale, seeds, version, directory.
    pub facts: Vec<(&'static str, String)>,
    /// Comparison with the paper.
    pub rows: Vec<Row>,
    /// Other numbers.
    pub tables: Vec<Table>,
    /// Charts.
    pub plots: Vec<Plot>,
    /// Resolved scenarios, each with its name.
    pub resolved: Vec<(String, Value)>,
}

/// A plain table; its first column names the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Above it.
    pub title: String,
    /// Whether it is folded.
    pub folded: bool,
    /// The heading that neighbouring columns share, and the name.
    pub columns: Vec<(String, String)>,
    /// Cells of each row.
    pub rows: Vec<Vec<String>>,
}

/// The series of a figure do not match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("plot \"{plot}\", series \"{series}\": {reason}")]
pub struct BadPlot {
    plot: String,
    series: String,
    reason: String,
}

impl Section {
    /// Whether its rows are compared with a paper.
    pub(crate) fn is_of_paper(&self) -> bool {
        !self.scale.is_empty()
    }

    /// A section of a reproduced figure. `directory` is its path; `now` has the digests of this version.
    ///
    /// # Errors
    /// Lists of a series that do not match each other or the axes.
    pub fn of_figure(figure: Figure, directory: &str, now: &MadeBy) -> Result<Section, BadPlot> {
        for plot in &figure.plots {
            plot.series
                .iter()
                .try_for_each(|series| check(plot, series))?;
        }
        let stale = match figure.is_own() {
            true => of_another_build(&figure.made_by),
            false => figure.made_by.stale(now),
        };
        let seeds: Vec<String> = figure.seeds.iter().map(u64::to_string).collect();
        let facts = [
            ("Scale", figure.scale.clone()),
            ("Seeds", seeds.join(", ")),
            ("onramp", figure.version),
            ("Directory", directory.to_owned()),
        ];
        let partial = "The command was interrupted: runs are missing, and the numbers may change.";
        Ok(Section {
            name: figure.id,
            title: figure.title,
            asked: figure.asked,
            scaled_down: figure.scaled_down,
            scale: figure.scale,
            stale,
            partial: figure.partial.then(|| partial.to_owned()),
            facts: facts
                .into_iter()
                .filter(|(_, fact)| !fact.is_empty())
                .collect(),
            rows: figure.rows,
            tables: vec![],
            plots: figure
                .plots
                .into_iter()
                .flat_map(one_heat_map_each)
                .collect(),
            resolved: figure.resolved.into_iter().enumerate().map(named).collect(),
        })
    }
}

/// An experiment of one's own has no record of what made it; but runs that another build made are marked.
fn of_another_build(made_by: &MadeBy) -> Option<&'static str> {
    let mut parts = made_by.model.iter().chain(&made_by.data_path);
    parts
        .any(|part| part == ANOTHER_BUILD)
        .then_some("the build of onramp")
}

/// A resolved scenario with its title, if it has one.
fn named((index, scenario): (usize, Value)) -> (String, Value) {
    let title = scenario.get("title").and_then(Value::as_str);
    let name = title.map_or_else(|| format!("scenario {}", index + 1), str::to_owned);
    (name, scenario)
}

/// Heat maps cannot overlap, so each series has its own plot.
fn one_heat_map_each(plot: Plot) -> Vec<Plot> {
    if plot.kind != PlotKind::Heat || plot.series.len() < 2 {
        return vec![plot];
    }
    let alone = |series: &Series| Plot {
        title: format!("{}: {}", plot.title, series.name),
        series: vec![series.clone()],
        ..plot.clone()
    };
    plot.series.iter().map(alone).collect()
}

/// Whether `series` can be drawn.
fn check(plot: &Plot, series: &Series) -> Result<(), BadPlot> {
    let points = series.x.len();
    let optional = |list: &Vec<Option<f64>>| list.is_empty() || list.len() == points;
    let counts = |mut values: Box<dyn Iterator<Item = f64> + '_>, names: &[String]| {
        let of_one = |v: f64| v.fract() == 0.0 && v >= 0.0 && v < names.len() as f64;
        names.is_empty() || values.all(of_one)
    };
    let reason = if series.y.len() != points {
        format!("x has {points} values, but y has {}", series.y.len())
    } else if !optional(&series.low) || !optional(&series.high) {
        format!("x has {points} values, but low or high has another number of values")
    } else if plot.kind == PlotKind::Heat && series.z.len() != points {
        format!("x has {points} values, but z has {}", series.z.len())
    } else if !counts(Box::new(series.x.iter().copied()), &plot.x.categories) {
        format!(
            "x has a value that is not the number of one of {} categories",
            plot.x.categories.len()
        )
    } else if !counts(
        Box::new(series.y.iter().copied().flatten()),
        &plot.y.categories,
    ) {
        format!(
            "y has a value that is not the number of one of {} categories",
            plot.y.categories.len()
        )
    } else {
        return Ok(());
    };
    Err(BadPlot {
        plot: plot.title.clone(),
        series: series.name.clone(),
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_results::figure::Axis;

    fn plot(kind: PlotKind, categories: usize, series: Vec<Series>) -> Plot {
        let axis = |categories| Axis {
            label: "x (us)".into(),
            log: false,
            categories: vec!["c".into(); categories],
        };
        Plot {
            title: "a plot".into(),
            kind,
            x: axis(categories),
            y: axis(0),
            series,
        }
    }

    fn series() -> Series {
        Series {
            name: "off".into(),
            x: vec![0.0, 1.0],
            y: vec![Some(1.0), None],
            ..Series::default()
        }
    }

    fn refused(kind: PlotKind, categories: usize, series: Series) -> String {
        check(&plot(kind, categories, vec![]), &series)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn lists_that_do_not_fit_are_refused() {
        assert_eq!(check(&plot(PlotKind::Bar, 2, vec![]), &series()), Ok(()));
        let short = Series {
            y: vec![Some(1.0)],
            ..series()
        };
        assert_eq!(
            refused(PlotKind::Line, 0, short),
            "plot \"a plot\", series \"off\": x has 2 values, but y has 1"
        );
        let whiskers = Series {
            low: vec![None],
            ..series()
        };
        assert!(refused(PlotKind::Line, 0, whiskers).contains("low or high"));
        assert!(refused(PlotKind::Heat, 0, series()).contains("z has 0"));
        assert!(
            refused(PlotKind::Bar, 1, series()).contains("not the number of one of 1 categories")
        );
    }

    #[test]
    fn heat_maps_are_plots_of_their_own() {
        let other = Series {
            name: "gate".into(),
            ..series()
        };
        let plots = one_heat_map_each(plot(PlotKind::Heat, 2, vec![series(), other]));
        let titles: Vec<&str> = plots.iter().map(|plot| plot.title.as_str()).collect();
        assert_eq!(titles, ["a plot: off", "a plot: gate"]);
    }
}
