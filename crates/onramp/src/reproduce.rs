// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp reproduce`: reproduces the paper's figures. Runs their scenarios ([`worlds`]), writes figure.json
//! and prints the paper's numbers beside ours. The reproduce crate defines figures.
mod marks;
mod model;
mod record;
mod session;
mod worlds;

use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::Instant,
};

use anyhow::{bail, Context, Result};
use onramp_batch::{available_memory, check_memory};
use onramp_reproduce::{Library, Planned, ScaleName};
use onramp_results::write_json;
use onramp_runs::{cancelled_by_signals, Existing};

pub use self::session::{has_results, Session};
use crate::args::Machines;
use crate::args::ThreadArgs;

#[derive(clap::Args)]
pub struct Args {
    /// Figures and tables, such as f9 or table1, or all
    ids: Vec<String>,
    /// Run at small scale: about a minute for each figure [default]
    #[arg(long, conflicts_with_all = ["full", "rack"])]
    quick: bool,
    /// Run at the paper's scale: hours
    #[arg(long, conflicts_with = "rack")]
    full: bool,
    /// Run on real kernels in virtual machines, and in the simulator with the same settings: ten minutes
    /// or more for each figure. Only for figures with a section [rack]
    #[arg(long)]
    rack: bool,
    /// Directory for the results
    #[arg(long, default_value = "results/reproduce")]
    out: PathBuf,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Repeat runs that have results. Without --force, an interrupted command resumes
    #[arg(long, alias = "again")]
    force: bool,
    /// Directory with figures/ and scenarios/ to use instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Write docs/reproduction.md from the results in --out and docs/reproduction/
    #[arg(long)]
    table: bool,
    /// Print figure.json instead of the table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    machines: Machines,
}

pub fn run(args: &Args) -> Result<()> {
    reproduce(args, cancelled_by_signals())
}

fn reproduce(args: &Args, cancel: &AtomicBool) -> Result<()> {
    let library = match &args.from {
        Some(directory) => Library::Directory(directory.clone()),
        None => Library::BuiltIn,
    };
    if args.ids.is_empty() && !args.table {
        let known = library.ids().context("cannot read the figures")?;
        bail!(
            "no figure is given, expected all or some of {}",
            known.join(", ")
        );
    }
    let scale = match (args.full, args.rack) {
        (true, _) => ScaleName::Full,
        (_, true) => ScaleName::Rack,
        _ => ScaleName::Quick,
    };
    let planned = plan(&library, &args.ids, scale)?;
    let threads = args.threads.number();
    for scenario in planned.iter().filter_map(|figure| figure.scenario.as_ref()) {
        check_memory(scenario, threads, available_memory())?;
    }
    let session = Session {
        threads,
        existing: match args.force {
            true => Existing::Replace,
            false => Existing::KeepOrReplace,
        },
        json: args.json,
        machines: &args.machines,
        cancel,
    };
    let started = Instant::now();
    let all_s = planned.iter().map(|figure| figure.settings.takes_s).sum();
    let mut before_s = 0.0;
    for (place, figure) in planned.iter().enumerate() {
        let place = format!("{} ({} of {})", figure.id, place + 1, planned.len());
        let out = args.out.join(figure.scale.to_string()).join(&figure.id);
        let takes_s = figure.settings.takes_s;
        let label = |done: f64| {
            let left = time_left(started, before_s + done * takes_s, all_s);
            format!("{place}, {left}: ")
        };
        let made = session.figure(figure, &out, &label);
        if has_results(&made) {
            eprintln!("{place}: results are in {}", out.display());
        }
        made?;
        before_s += takes_s;
    }
    match args.table {
        true => write_table(&library, args, threads),
        false => Ok(()),
    }
}

/// Remaining time of all figures, from their estimates and the progress so far.
fn time_left(started: Instant, done_s: f64, all_s: f64) -> String {
    let pace = if done_s > 0.0 {
        started.elapsed().as_secs_f64() / done_s
    } else {
        1.0
    };
    match ((all_s - done_s) * pace).max(0.0) {
        s if s < 120.0 => format!("{s:.0} s left for all"),
        s => format!("{:.0} min left for all", s / 60.0),
    }
}

/// Writes docs/reproduction.md and its records. The page has the digests that this binary was built with.
/// If they have changed, the binary must be built and run again.
fn write_table(library: &Library, args: &Args, threads: usize) -> Result<()> {
    let docs = Path::new("docs");
    let models = model::models(library, threads)?;
    write_json(&docs.join("reproduction").join(record::MODELS), &models)?;
    record::write_table(library, &args.out, docs)?;
    let data_path = onramp_reproduce::made_by("").data_path.unwrap_or_default();
    for page in marks::mark_pages(Path::new("."), &data_path)? {
        eprintln!("marked {}", page.display());
    }
    if models != onramp_reproduce::models() {
        bail!("the model has changed: build onramp, then run `onramp reproduce --table` again");
    }
    Ok(())
}

fn plan(library: &Library, ids: &[String], scale: ScaleName) -> Result<Vec<Planned>> {
    if ids.iter().any(|id| id == "all") {
        return Ok(Planned::all(library, scale)?);
    }
    let mut planned: Vec<Planned> = Vec::new();
    for id in ids {
        let figure = Planned::read(library, id, scale)?;
        if !planned.contains(&figure) {
            planned.push(figure);
        }
    }
    Ok(planned)
}

#[cfg(test)]
mod tests {
    use super::record::write_table;
    use super::*;
    use onramp_results::figure::{Figure, Verdict};
    use onramp_results::read_json;
    use onramp_runs::Interrupted;

    const SCENARIO: &str = r#"title = "Six to one"
duration = "400 us"
[network]
topology = { kind = "star", hosts = 7 }
link = { rate = "100 Gbit/s", delay = "1 us" }
[host]
kind = "nic"
cc = "dcqcn"
[[traffic]]
kind = "incast"
fanout = 6
size = "200 kB"
interval = "100 us"
[onramp]
threshold = "10 us"
[sweep]
"onramp.law" = ["off", "final"]
"#;

    const FIGURE: &str = r#"title = "Six to one"
asked = "Is it better?"
scenario = "tiny.toml"
[quick]
seeds = 5
takes_s = 1
scaled_down = "all of it"
[full]
seeds = 5
takes_s = 1
set = { duration = "1 ms" }
[[row]]
name = "RCT mean, off / final"
source = "nowhere"
metric = "incast.rct_us.mean"
of = { "onramp.law" = "off" }
over = { "onramp.law" = "final" }
as = "ratio"
gives = "words"
at_least = 0.1
[[plot]]
title = "RCT"
y_label = "RCT (us)"
show.bars = { metrics = ["incast.rct_us.mean"], by = "onramp.law" }
[[plot]]
title = "Queue"
y_label = "queue (us)"
show.time = { series = "queue_us", places = ["switch0-host0"], by = "onramp.law" }
"#;

    /// A repository with one figure, and arguments that reproduce it.
    fn repository() -> (tempfile::TempDir, Args) {
        let root = tempfile::tempdir().unwrap();
        for directory in ["figures", "scenarios"] {
            std::fs::create_dir(root.path().join(directory)).unwrap();
        }
        std::fs::write(root.path().join("scenarios/tiny.toml"), SCENARIO).unwrap();
        std::fs::write(root.path().join("figures/tiny.toml"), FIGURE).unwrap();
        let args = Args {
            ids: vec!["all".to_owned()],
            quick: true,
            full: false,
            rack: false,
            out: root.path().join("out"),
            threads: ThreadArgs { threads: Some(2) },
            force: false,
            from: Some(root.path().to_owned()),
            table: false,
            json: false,
            machines: Machines {
                kernel: None,
                cache: root.path().join("cache"),
            },
        };
        (root, args)
    }

    fn made(args: &Args) -> Figure {
        read_json(&args.out.join("quick/tiny/figure.json")).unwrap()
    }

    fn written(args: &Args, run: usize) -> std::time::SystemTime {
        let path = args.out.join(format!("quick/tiny/runs/run-{run}.json"));
        std::fs::metadata(path).unwrap().modified().unwrap()
    }

    #[test]
    fn a_figure_is_run_once_and_resumes_after_an_interruption() {
        let (_root, args) = repository();
        let error = reproduce(&args, &AtomicBool::new(true)).unwrap_err();
        assert!(error.is::<Interrupted>(), "{error}");
        let partial = made(&args);
        let measured = &partial.rows[0].measured[0];
        assert!(partial.partial && measured.verdict == Verdict::NotMeasured);

        let go_on = AtomicBool::new(false);
        reproduce(&args, &go_on).unwrap();
        let whole = made(&args);
        assert!(!whole.partial && whole.seeds == [1, 2, 3, 4, 5]);
        let measured = &whole.rows[0].measured[0];
        let [low, high] = measured.interval.unwrap();
        assert!(low < measured.value.unwrap() && measured.value.unwrap() < high);
        assert_eq!(whole.plots[0].series[1].y.len(), 1);
        assert!(whole.plots[1].series[0].x.len() > 10);

        // Interrupted in run 1: the results of other runs stay.
        let before = (written(&args, 0), written(&args, 1));
        std::fs::remove_file(args.out.join("quick/tiny/runs/run-1.json")).unwrap();
        reproduce(&args, &go_on).unwrap();
        let after = (written(&args, 0), written(&args, 1));
        assert!(before.0 == after.0 && before.1 < after.1);
        assert_eq!(made(&args), whole);
    }

    #[test]
    fn another_scenario_is_run_again_and_another_row_is_not() {
        let (root, args) = repository();
        let go_on = AtomicBool::new(false);
        reproduce(&args, &go_on).unwrap();
        let (first, before) = (made(&args), written(&args, 0));

        let stricter = FIGURE.replace("at_least = 0.1", "at_least = 100.0");
        std::fs::write(root.path().join("figures/tiny.toml"), stricter).unwrap();
        reproduce(&args, &go_on).unwrap();
        assert_eq!(written(&args, 0), before);
        let verdict = |figure: &Figure| figure.rows[0].measured[0].verdict;
        assert_ne!(verdict(&made(&args)), verdict(&first));

        let larger = SCENARIO.replace("200 kB", "300 kB");
        std::fs::write(root.path().join("scenarios/tiny.toml"), larger).unwrap();
        reproduce(&args, &go_on).unwrap();
        assert!(written(&args, 0) > before);
        assert_ne!(made(&args).rows[0].measured, first.rows[0].measured);
    }

    #[test]
    fn runs_of_other_sources_are_kept_and_remembered_as_such() {
        let (_root, args) = repository();
        let go_on = AtomicBool::new(false);
        reproduce(&args, &go_on).unwrap();
        let (before, path) = (written(&args, 0), args.out.join("quick/tiny/plan.json"));
        let of_model = |model: &str| {
            let mut plan: serde_json::Value = read_json(&path).unwrap();
            let was = plan["model"].as_str().unwrap().to_owned();
            plan["model"] = model.into();
            write_json(&path, &plan).unwrap();
            was
        };
        assert_eq!(of_model("another"), onramp_reproduce::SIMULATOR);
        std::fs::remove_file(args.out.join("quick/tiny/runs/run-1.json")).unwrap();
        reproduce(&args, &go_on).unwrap();
        assert_eq!(written(&args, 0), before);
        assert_eq!(of_model("another"), "another");
        assert_eq!(made(&args).made_by.model.as_deref(), Some("another build"));

        let forced = Args {
            force: true,
            ..args
        };
        reproduce(&forced, &go_on).unwrap();
        assert_eq!(of_model(""), onramp_reproduce::SIMULATOR);
    }

    #[test]
    fn unknown_figures_and_places_that_cannot_be_written_are_named() {
        let (root, mut args) = repository();
        args.ids = vec!["f99".to_owned()];
        let error = reproduce(&args, &AtomicBool::new(false)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown figure f99, expected one of tiny"
        );
        args.ids = vec!["tiny".to_owned()];
        args.out = root.path().join("figures/tiny.toml");
        let error = reproduce(&args, &AtomicBool::new(false)).unwrap_err();
        let error = format!("{error:#}");
        assert!(
            error.contains("cannot make") && error.contains("tiny.toml"),
            "{error}"
        );
        assert_eq!(std::fs::read_to_string(&args.out).unwrap(), FIGURE);
    }

    #[test]
    fn the_table_keeps_what_other_runs_found() {
        let (root, args) = repository();
        reproduce(&args, &AtomicBool::new(false)).unwrap();
        let docs = root.path().join("docs");
        let older = Figure {
            scale: "full".to_owned(),
            ..made(&args)
        };
        let record = docs.join("reproduction/tiny.json");
        std::fs::create_dir_all(record.parent().unwrap()).unwrap();
        write_json(&record, &[older]).unwrap();
        let library = Library::Directory(root.path().to_owned());
        write_table(&library, &args.out, &docs).unwrap();
        let kept: Vec<Figure> = read_json(&record).unwrap();
        let scales: Vec<&str> = kept.iter().map(|figure| figure.scale.as_str()).collect();
        assert_eq!(scales, ["full"], "the fullest is kept");
        let text = std::fs::read_to_string(docs.join("reproduction.md")).unwrap();
        assert!(text.contains("## tiny: Six to one, full"), "{text}");
    }
}
