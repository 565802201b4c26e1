// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Writes docs/reproduction/, the recorded results with one file for each figure, and docs/reproduction.md,
//! which shows them.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use onramp_reproduce::{
    annotate, counts, headlines, made_by, markdown, record, Library, ScaleName,
};
use onramp_results::figure::{fullest, Figure, MadeBy};
use onramp_results::{read_json, write_json};

/// Digests of the model, beside the records.
pub const MODELS: &str = "models.json";

/// Adds `results` to the records in `docs`/reproduction, and writes `docs`/reproduction.md. If a figure has
/// current results at the scales quick and full, those at full stay.
pub fn write_table(library: &Library, results: &Path, docs: &Path) -> Result<()> {
    let records = docs.join("reproduction");
    std::fs::create_dir_all(&records)
        .with_context(|| format!("cannot make {}", records.display()))?;
    let mut figures = recorded(&records)?;
    for figure in found(results)? {
        if figure.partial {
            eprintln!("{} ({}) is partial: not recorded", figure.id, figure.scale);
            continue;
        }
        figures.retain(|old| (&old.id, &old.scale) != (&figure.id, &figure.scale));
        figures.push(record(figure));
    }
    drop_stale(&mut figures, &made_by);
    let mut figures: Vec<Figure> = fullest(&figures).cloned().collect();
    figures.sort_by_key(|figure| (figure.id.clone(), figure.scale.clone()));
    declare(library, &mut figures)?;
    let path = docs.join("reproduction.md");
    std::fs::write(&path, markdown(&figures, &made_by))
        .with_context(|| path.display().to_string())?;
    let readme = docs.join("../README.md");
    if let Ok(text) = std::fs::read_to_string(&readme) {
        std::fs::write(&readme, with_results(&text, &figures))
            .with_context(|| readme.display().to_string())?;
    }
    let figures: Vec<Figure> = figures.into_iter().map(record).collect();
    for same in figures.chunk_by(|a, b| a.id == b.id) {
        write_json(&records.join(format!("{}.json", same[0].id)), &same)?;
    }
    eprintln!("wrote {} and {}", path.display(), records.display());
    Ok(())
}

/// README.md with the tables of these figures in place of its own. A table ends at an empty line.
fn with_results(readme: &str, figures: &[Figure]) -> String {
    let mut text = readme.to_owned();
    for table in [counts(figures), headlines(figures)] {
        let heading = table.lines().next().unwrap_or_default();
        let Some(start) = text.find(heading) else {
            continue;
        };
        let end = text[start..].find("\n\n").map(|length| start + length + 1);
        text.replace_range(start..end.unwrap_or(text.len()), &table);
    }
    text
}

/// Drops the simulator's stale results of figures that have current ones at another scale: current results
/// at scale quick are better than stale ones at scale full.
fn drop_stale(figures: &mut Vec<Figure>, now: &dyn Fn(&str) -> MadeBy) {
    let is_stale = |figure: &Figure| figure.made_by.stale(&now(&figure.id)).is_some();
    let current: BTreeSet<String> = figures
        .iter()
        .filter(|figure| figure.scale != "rack" && !is_stale(figure))
        .map(|figure| figure.id.clone())
        .collect();
    figures.retain(|figure| {
        figure.scale == "rack" || !is_stale(figure) || !current.contains(&figure.id)
    });
}

/// Gives recorded `figures` the texts and verdicts that follow from their declarations.
fn declare(library: &Library, figures: &mut [Figure]) -> Result<()> {
    for figure in figures {
        if !annotate(library, figure)? {
            let (id, scale) = (&figure.id, &figure.scale);
            bail!(
                "the rows of docs/reproduction/{id}.json ({scale}) differ from those of figures/{id}.toml: \
                 run `onramp reproduce {id} --{scale} --table`"
            );
        }
    }
    Ok(())
}

/// All figures of a directory of records.
pub fn recorded(records: &Path) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for path in json_files(records)? {
        figures.extend(read_json::<Vec<Figure>>(&path)?);
    }
    Ok(figures)
}

fn json_files(records: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read {}", records.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(records).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let is_record = path
            .extension()
            .is_some_and(|extension| extension == "json");
        if is_record && path.file_name().is_none_or(|name| name != MODELS) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// All figure.json of all scales.
fn found(results: &Path) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for scale in [ScaleName::Quick, ScaleName::Full, ScaleName::Rack] {
        let Ok(entries) = std::fs::read_dir(results.join(scale.to_string())) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path().join("figure.json");
            if path.exists() {
                figures.push(read_json(&path)?);
            }
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_reproduce::lost_headlines;

    #[test]
    fn current_results_replace_stale_ones_and_full_ones_quick_ones() {
        let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduction");
        let any = recorded(&records).unwrap().remove(0);
        let figure = |scale: &str, model: &str| Figure {
            scale: scale.to_owned(),
            made_by: MadeBy {
                model: Some(model.to_owned()),
                data_path: None,
            },
            ..any.clone()
        };
        let now = |_: &str| MadeBy {
            model: Some("now".to_owned()),
            data_path: None,
        };
        let kept = |mut figures: Vec<Figure>| {
            drop_stale(&mut figures, &now);
            let scales = fullest(&figures).map(|figure| figure.scale.clone());
            scales.collect::<Vec<_>>()
        };
        let both = |full, quick| vec![figure("full", full), figure("quick", quick)];
        assert_eq!(kept(both("now", "now")), ["full"]);
        assert_eq!(kept(both("then", "now")), ["quick"]);
        assert_eq!(kept(both("then", "then")), ["full"]);
        let rack = [both("then", "now"), vec![figure("rack", "then")]].concat();
        assert_eq!(kept(rack), ["quick", "rack"]);
    }

    #[test]
    fn the_page_is_that_of_the_records() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let mut figures = recorded(&docs.join("reproduction")).unwrap();
        assert!(figures.len() > 20);
        let then = figures.clone();
        declare(&Library::BuiltIn, &mut figures).unwrap();
        let now: Vec<Figure> = figures.iter().cloned().map(record).collect();
        assert!(
            now == then,
            "docs/reproduction/ has other claims or verdicts; run: onramp reproduce --table"
        );
        assert_eq!(
            fullest(&figures).count(),
            figures.len(),
            "a figure at scale quick beside full"
        );
        let written = std::fs::read_to_string(docs.join("reproduction.md")).unwrap();
        let current = markdown(&figures, &made_by) == written;
        assert!(
            current,
            "docs/reproduction.md is stale; run: onramp reproduce --table"
        );
        let lost = lost_headlines(&figures);
        assert!(lost.is_empty(), "no figure has the rows {lost:?}");
        let readme = std::fs::read_to_string(docs.join("../README.md")).unwrap();
        assert!(readme.contains(&counts(&figures)) && readme.contains(&headlines(&figures)));
        assert!(
            with_results(&readme, &figures) == readme,
            "README.md has other results; run: onramp reproduce --table"
        );
    }
}
