//! The results as Markdown: docs/cost.md. Generated but for the reading in reading.md.

use std::fmt::Write as _;

use crate::{
    bed::{Bed, Setup},
    guest::Measured,
    stats::Runs,
};

/// The bounds of the project's goals: what may be added to the baseline's whole path, in per cent.
const TX_BOUND: f64 = 15.0;
const RX_BOUND: f64 = 5.0;

const READING: &str = include_str!("reading.md");

/// The runs of one bed: for every seed, every set-up.
type Runs2<'a> = &'a [Vec<Measured>];

/// The document. `beds`: the measurements of each bed.
pub fn markdown(beds: &[Runs2<'_>]) -> String {
    let mut out = READING.to_owned();
    for line in [true, false] {
        let chosen: Vec<Runs2<'_>> = beds
            .iter()
            .copied()
            .filter(|runs| bed(runs).line == line)
            .collect();
        if chosen.is_empty() {
            continue;
        }
        let title = if line {
            "Frames as a line delivers them"
        } else {
            "Batches: the processor is the limit"
        };
        let _ = writeln!(out, "\n## {title}\n");
        paths(&mut out, &chosen);
    }
    let _ = writeln!(out, "\n## Inside On-Ramp, instructions a run\n");
    inside(&mut out, beds);
    out
}

fn bed(runs: Runs2<'_>) -> Bed {
    runs[0][0].bed
}

/// One row a bed: both paths with fq, and what On-Ramp adds.
fn paths(out: &mut String, beds: &[Runs2<'_>]) {
    let _ = writeln!(out, "| link | frames a segment, sent / received | fq, sender | edge, law off | edge, law final | with OR-ACKs | as shipped | fq, receiver | with OR-ACKs | as shipped | frames an OR-ACK | spread | unaccounted |");
    let _ = writeln!(out, "|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for runs in beds {
        let tx = |setup| mean(runs, setup, |m| m.parts.tx);
        let rx = |setup| mean(runs, setup, |m| m.parts.rx);
        let both = each(runs, Setup::Both)
            .next()
            .expect("every set-up is measured");
        let fq = each(runs, Setup::Fq)
            .next()
            .expect("every set-up is measured");
        let _ = writeln!(
            out,
            "| {} | {:.1} / {:.1} | {:.0} | {} | {} | {} | {} | {:.0} | {} | {} | {:.1} | {:.1} % | {:.2} % |",
            link(bed(runs)),
            ratio(fq.moved.frames, fq.moved.segments),
            ratio(fq.moved.frames, fq.moved.delivered),
            tx(Setup::Fq),
            added(tx(Setup::EdgeOff), tx(Setup::Fq), TX_BOUND),
            added(tx(Setup::EdgeFinal), tx(Setup::Fq), TX_BOUND),
            added(tx(Setup::Both), tx(Setup::Fq), TX_BOUND),
            added(tx(Setup::Shipped), tx(Setup::Fq), TX_BOUND),
            rx(Setup::Fq),
            added(rx(Setup::Both), rx(Setup::Fq), RX_BOUND),
            added(rx(Setup::Shipped), rx(Setup::Fq), RX_BOUND),
            ratio(both.moved.frames, both.oracks_sent),
            spread(runs),
            unaccounted(runs),
        );
    }
}

fn link(bed: Bed) -> String {
    format!(
        "IPv{}, {}, GRO {}",
        if bed.ip6 { 6 } else { 4 },
        if bed.gso { "GSO" } else { "single frames" },
        if bed.gro { "on" } else { "off" },
    )
}

/// "+712 (8.3 %)", bold beyond the bound; a dash if `with` was not measured.
fn added(with: f64, without: f64, bound: f64) -> String {
    if with.is_nan() {
        return "-".to_owned();
    }
    let percent = 100.0 * (with - without) / without;
    let text = format!("{:+.0} ({percent:.1} %)", with - without);
    if percent > bound {
        format!("**{text}**")
    } else {
        text
    }
}

fn each<'a>(runs: Runs2<'a>, setup: Setup) -> impl Iterator<Item = &'a Measured> {
    runs.iter().flatten().filter(move |m| m.setup == setup)
}

/// Mean over the runs of instructions a frame.
fn mean(runs: Runs2<'_>, setup: Setup, part: impl Fn(&Measured) -> f64) -> f64 {
    let values: Vec<f64> = each(runs, setup)
        .map(|m| part(m) / m.moved.frames as f64)
        .collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// Largest difference between two runs of the same, either path, any set-up, of their mean.
fn spread(runs: Runs2<'_>) -> f64 {
    let mut worst: f64 = 0.0;
    for setup in Setup::ALL {
        for part in [|m: &Measured| m.parts.tx, |m: &Measured| m.parts.rx] {
            let values: Vec<f64> = each(runs, setup)
                .map(|m| part(m) / m.moved.frames as f64)
                .collect();
            let (low, high) = values
                .iter()
                .fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
            worst = worst.max(200.0 * (high - low) / (high + low));
        }
    }
    worst
}

/// Largest difference between the sum of all parts and the whole time.
fn unaccounted(runs: Runs2<'_>) -> f64 {
    let off = |m: &Measured| 100.0 * (m.parts.sum() - m.parts.total).abs() / m.parts.total;
    runs.iter().flatten().map(off).fold(0.0, f64::max)
}

fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}

/// One row a bed: On-Ramp's programs by the kernel's run-time statistics.
fn inside(out: &mut String, beds: &[Runs2<'_>]) {
    let _ = writeln!(out, "| link | edge_enqueue | edge_dequeue | orack_egress, sender | orack_ingress: not sampled | pure ACK | OR-ACK used | segment sampled, OR-ACK sent | orack_egress: OR-ACK made |");
    let _ = writeln!(out, "|---|---|---|---|---|---|---|---|---|");
    for runs in beds {
        let Some(m) = each(runs, Setup::Both).next() else {
            continue;
        };
        let i = &m.inside;
        let statistics = mean_run(i.programs.get("a.nothing"), 0.0);
        let run = |name: &str| mean_run(i.programs.get(name), statistics);
        let total = |name: &str| {
            i.programs
                .get(name)
                .map_or(0.0, |r| r.ns as f64 - r.runs as f64 * statistics)
        };
        let count = |name: &str| i.programs.get(name).map_or(0, |r| r.runs);
        let (ack, unsampled) = (i.ack_ns.unwrap_or(0.0), i.unsampled_ns.unwrap_or(0.0));
        let oracks = i.oracks.max(1) as f64;
        // What is left when the runs that did nothing are taken off.
        let used =
            (total("a.orack_ingress") - (count("a.orack_ingress") as f64 - oracks) * ack) / oracks;
        let sampled = (total("b.orack_ingress")
            - (count("b.orack_ingress") as f64 - oracks) * unsampled)
            / oracks;
        let passed = count("b.orack_egress") as f64 - oracks;
        let made = (total("b.orack_egress") - passed * run("a.orack_egress")) / oracks;
        let _ = writeln!(
            out,
            "| {}, {} | {:.0} | {:.0} | {:.0} | {unsampled:.0} | {ack:.0} | {used:.0} | {sampled:.0} | {made:.0} |",
            if m.bed.line { "line" } else { "batches" },
            link(m.bed),
            run("a.edge_enqueue"),
            run("a.edge_dequeue"),
            run("a.orack_egress"),
        );
    }
}

/// Mean of a run without what the statistics take.
fn mean_run(runs: Option<&Runs>, statistics: f64) -> f64 {
    runs.map_or(0.0, |r| r.ns as f64 / r.runs.max(1) as f64 - statistics)
}
