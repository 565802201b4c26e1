//! docs/reproduction.md and .json, out of the results that there are.
use std::path::Path;

use anyhow::{Context, Result};
use onramp_reproduce::{markdown, ScaleName};
use onramp_results::{figure::Figure, read_json, write_json};

/// Writes what `results` has, beside what the table had already, to `docs`/reproduction.md and .json.
pub fn write_table(results: &Path, docs: &Path) -> Result<()> {
    let record = docs.join("reproduction.json");
    let mut figures: Vec<Figure> = match record.exists() {
        true => read_json(&record)?,
        false => Vec::new(),
    };
    for figure in found(results)? {
        if figure.partial {
            eprintln!("{} ({}) is partial: left out", figure.id, figure.scale);
            continue;
        }
        figures.retain(|old| (&old.id, &old.scale) != (&figure.id, &figure.scale));
        figures.push(Figure {
            plots: Vec::new(),
            resolved: Vec::new(),
            ..figure
        });
    }
    figures.sort_by_key(|figure| (figure.id.clone(), figure.scale.clone()));
    write_json(&record, &figures)?;
    let path = docs.join("reproduction.md");
    std::fs::write(&path, markdown(&figures)).with_context(|| path.display().to_string())?;
    eprintln!("wrote {} and {}", path.display(), record.display());
    Ok(())
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
