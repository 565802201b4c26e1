//! docs/reproduction/, which keeps what was reproduced, a file a figure; and docs/reproduction.md, which shows it.
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use onramp_reproduce::{annotate, made_by, markdown, record, Library, ScaleName};
use onramp_results::{figure::fullest, figure::Figure, read_json, write_json};

/// Digests of the model, beside the records.
pub const MODELS: &str = "models.json";

/// Adds what `results` has to the records in `docs`/reproduction, and writes `docs`/reproduction.md.
/// A figure's results at scale quick give way to those at scale full.
pub fn write_table(library: &Library, results: &Path, docs: &Path) -> Result<()> {
    let records = docs.join("reproduction");
    std::fs::create_dir_all(&records)
        .with_context(|| format!("cannot make {}", records.display()))?;
    let mut figures = recorded(&records)?;
    for figure in found(results)? {
        if figure.partial {
            eprintln!("{} ({}) is partial: left out", figure.id, figure.scale);
            continue;
        }
        figures.retain(|old| (&old.id, &old.scale) != (&figure.id, &figure.scale));
        figures.push(record(figure));
    }
    let mut figures: Vec<Figure> = fullest(&figures).cloned().collect();
    figures.sort_by_key(|figure| (figure.id.clone(), figure.scale.clone()));
    for same in figures.chunk_by(|a, b| a.id == b.id) {
        write_json(&records.join(format!("{}.json", same[0].id)), &same)?;
    }
    let path = docs.join("reproduction.md");
    std::fs::write(&path, page(library, figures)?).with_context(|| path.display().to_string())?;
    eprintln!("wrote {} and {}", path.display(), records.display());
    Ok(())
}

/// docs/reproduction.md of recorded `figures`.
pub fn page(library: &Library, mut figures: Vec<Figure>) -> Result<String> {
    for figure in &mut figures {
        if !annotate(library, figure)? {
            let (id, scale) = (&figure.id, &figure.scale);
            bail!(
                "docs/reproduction/{id}.json ({scale}) has other rows than figures/{id}.toml declares: \
                 run `onramp reproduce {id} --{scale} --table`"
            );
        }
    }
    Ok(markdown(&figures, &made_by))
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

    #[test]
    fn the_page_is_that_of_the_records() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let figures = recorded(&docs.join("reproduction")).unwrap();
        assert!(figures.len() > 20);
        assert_eq!(
            fullest(&figures).count(),
            figures.len(),
            "a figure at scale quick beside full"
        );
        let written = std::fs::read_to_string(docs.join("reproduction.md")).unwrap();
        let current = page(&Library::BuiltIn, figures).unwrap() == written;
        assert!(
            current,
            "docs/reproduction.md is stale; run: onramp reproduce --table"
        );
    }
}
