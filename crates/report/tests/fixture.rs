// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Made-up figures with everything that a report can show; no numbers of these were measured.

use onramp_results::figure::{
    Axis, By, Figure, Gives, MadeBy, Measured, Plot, PlotKind, Row, Series, Verdict,
};
use serde_json::json;

/// What would run, or end its element, if it were not escaped.
pub const HOSTILE: &str = "</script><script>document.title='owned'</script><b>&\"'";

/// A figure of every verdict and kind of plot.
pub fn figure(id: &str) -> Figure {
    Figure {
        schema: onramp_results::figure::SCHEMA,
        version: "0.1.0".into(),
        id: id.into(),
        title: "RCT and FCT of an incast over web search at 40 % load, five congestion controls"
            .into(),
        asked: "How much shorter do requests get with On-Ramp, whatever congestion control runs \
                above it? Section 5.2, figure 9: 40 requests a server over 400 MB of web search."
            .into(),
        scale: "quick".into(),
        scaled_down: "20 ms instead of 1 s; 32 of 320 servers.".into(),
        seeds: vec![1, 2, 3, 4, 5],
        partial: false,
        rows: rows(),
        made_by: MadeBy::default(),
        plots: plots(),
        resolved: vec![
            json!({"title": "incast, simulated", "seed": 5, "network": {"link": {"rate": "10 Gbit/s"}}}),
            json!({"title": "incast, on the rack", "seed": 5, "time_dilation": 100}),
        ],
    }
}

fn rows() -> Vec<Row> {
    let measured = |world: &str, value, interval, verdict| Measured {
        world: world.into(),
        value,
        interval,
        verdict,
    };
    let row = |name: &str, unit: &str, paper, measured, note: &str| Row {
        name: name.into(),
        unit: unit.into(),
        by: if unit == "x" { By::Ratio } else { By::Value },
        gives: match (paper, name) {
            (Some(_), _) => Some(Gives::Number),
            (None, "Utilisation with final") => Some(Gives::Picture),
            (None, _) => None,
        },
        paper,
        source: "section 5.2".into(),
        measured,
        note: note.into(),
    };
    vec![
        row(
            "RCT mean, off / final, CUBIC",
            "x",
            Some(2.6),
            vec![
                measured("sim", Some(2.7123), Some([2.41, 3.0]), Verdict::Reproduced),
                measured("rack", Some(2.31), Some([2.2, 2.42]), Verdict::Reproduced),
            ],
            "",
        ),
        row(
            "RCT p99, off / final, CUBIC",
            "x",
            Some(5.6),
            vec![
                measured("sim", Some(1.9), Some([1.2, 2.6]), Verdict::DirectionOnly),
                measured("rack", None, None, Verdict::NotMeasured),
            ],
            "Our switch shares its buffer; the paper's has 0.5 MB a port, so fewer answers are lost.",
        ),
        row(
            "Drops, off / final",
            "x",
            Some(260.0),
            vec![measured("sim", Some(21.0), None, Verdict::NotReproduced)],
            "The run is too short to see a timeout.",
        ),
        row(
            "Utilisation with final",
            "%",
            None,
            vec![measured("sim", Some(97.34), Some([96.9, 97.8]), Verdict::Reproduced)],
            "Compared by the picture's shape.",
        ),
        row(
            "RCT mean with gate",
            "us",
            None,
            vec![measured("sim", Some(40.9), Some([39.0, 43.0]), Verdict::Beyond)],
            "",
        ),
    ]
}

fn axis(label: &str, log: bool, categories: &[&str]) -> Axis {
    Axis {
        label: label.into(),
        log,
        categories: categories.iter().map(|name| (*name).into()).collect(),
    }
}

/// `points` at `x`, `spread` of each above and below it if that is not 0.
fn series(name: &str, x: Vec<f64>, points: &[f64], spread: f64) -> Series {
    let ends = |sign: f64| {
        let end = |y: &f64| Some(y * (1.0 + sign * spread));
        points.iter().map(end).filter(|_| spread > 0.0).collect()
    };
    Series {
        name: name.into(),
        x,
        y: points.iter().copied().map(Some).collect(),
        low: ends(-1.0),
        high: ends(1.0),
        z: vec![],
    }
}

fn plot(title: &str, kind: PlotKind, x: Axis, y: Axis, series: Vec<Series>) -> Plot {
    Plot {
        title: title.into(),
        kind,
        x,
        y,
        series,
    }
}

fn count(n: usize) -> Vec<f64> {
    (0..n).map(|i| i as f64).collect()
}

const CCS: [&str; 5] = ["CUBIC", "DCTCP", "BBR", "TIMELY", "DCQCN"];

/// One of each kind.
fn plots() -> Vec<Plot> {
    let mut plots = over_time();
    plots.push(distribution());
    plots.extend(by_choice());
    plots
}

fn over_time() -> Vec<Plot> {
    let thousands: Vec<f64> = (1..=12).map(|i| 2f64.powi(i) * 1e3).collect();
    let mut line = series("off", count(12), &thousands, 0.2);
    line.y[4] = None;
    let fast: Vec<f64> = (1..=12).map(|i| 60.0 + 9.0 * f64::from(i)).collect();
    let wave = |phase: f64| -> Vec<f64> {
        (0..200)
            .map(|i| 20.0 + 15.0 * (f64::from(i) / 20.0 + phase).sin())
            .collect()
    };
    vec![
        plot(
            "RCT over the number of servers that answer",
            PlotKind::Line,
            axis("servers that answer (1)", false, &[]),
            axis("RCT mean (us)", true, &[]),
            vec![
                line,
                series("final", count(12), &fast, 0.1),
                series(
                    HOSTILE,
                    count(12),
                    &fast.iter().map(|y| y * 3.0).collect::<Vec<_>>(),
                    0.0,
                ),
            ],
        ),
        plot(
            "Goodput of flows that start one after the other",
            PlotKind::Stacked,
            axis("time (ms)", false, &[]),
            axis("goodput (Gbit/s)", false, &[]),
            vec![
                series("flow 0", count(200), &wave(0.0), 0.0),
                series("flow 1", count(200), &wave(2.0), 0.0),
            ],
        ),
    ]
}

fn distribution() -> Plot {
    let fractions: Vec<f64> = (1..=50).map(|i| f64::from(i) / 50.0).collect();
    let times = |mean: f64| {
        fractions
            .iter()
            .map(|f| mean * (1.0 - f * 0.98).ln().abs())
            .collect()
    };
    plot(
        "Distribution of request completion times",
        PlotKind::Step,
        axis("RCT (us)", true, &[]),
        axis("fraction of requests", false, &[]),
        vec![
            series("off (n = 50)", times(900.0), &fractions, 0.0),
            series("final (n = 50)", times(80.0), &fractions, 0.0),
        ],
    )
}

fn by_choice() -> Vec<Plot> {
    let cells = Series {
        name: "RCT, off / final".into(),
        x: (0..20).map(|i| f64::from(i % 5)).collect(),
        y: (0..20).map(|i| Some(f64::from(i / 5))).collect(),
        z: (0..20)
            .map(|i| (i != 7).then(|| 1.0 + f64::from(i) / 4.0))
            .collect(),
        ..Series::default()
    };
    vec![
        plot(
            "RCT by congestion control",
            PlotKind::Bar,
            axis("congestion control", false, &CCS),
            axis("RCT mean (us)", true, &[]),
            vec![
                series("off", count(5), &[3045.0, 870.0, 455.0, 120.0, 0.0], 0.3),
                series("final", count(5), &[38.9, 41.0, 35.9, 33.0, 61.0], 0.1),
            ],
        ),
        plot(
            "Gain against load",
            PlotKind::Scatter,
            axis("load (%)", false, &[]),
            axis("RCT, off / final", false, &[]),
            vec![series(
                "seeds 1-5",
                vec![20.0, 40.0, 60.0, 80.0],
                &[1.1, 1.9, 2.8, 3.9],
                0.2,
            )],
        ),
        plot(
            "Gain by buffer and fan-out",
            PlotKind::Heat,
            axis("congestion control", false, &CCS),
            axis("fan-out", false, &["10", "20", "40", "80"]),
            vec![cells],
        ),
    ]
}
