// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Marks on pages with recorded results: a page states if another version of the data path made its
//! numbers.
//!
//! Such a page has a line `<!-- data path DIGEST -->`; the line below it is the mark, or empty.
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

const BEGIN: &str = "<!-- data path ";
const END: &str = " -->";
const STALE: &str = "**Stale:** the data path has changed since these numbers were recorded.";

/// Marks all pages of the repository `root` that have a digest. Returns those that changed.
pub fn mark_pages(root: &Path, data_path: &str) -> Result<Vec<PathBuf>> {
    let mut changed = Vec::new();
    for page in pages(root)? {
        let shown = || page.display().to_string();
        let text = std::fs::read_to_string(&page).with_context(shown)?;
        let new = marked(&text, data_path);
        if new != text {
            std::fs::write(&page, new).with_context(shown)?;
            changed.push(page);
        }
    }
    Ok(changed)
}

/// README.md, docs/*.md and docs/results/*.md.
fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = vec![root.join("README.md")];
    for directory in ["docs", "docs/results"].map(|name| root.join(name)) {
        if !directory.exists() {
            continue;
        }
        let cannot = || format!("cannot read {}", directory.display());
        for entry in std::fs::read_dir(&directory).with_context(cannot)? {
            pages.push(entry.with_context(cannot)?.path());
        }
    }
    pages.retain(|page| {
        page.extension().is_some_and(|extension| extension == "md") && page.exists()
    });
    pages.sort();
    Ok(pages)
}

/// `text` with the mark that each of its digests needs.
fn marked(text: &str, data_path: &str) -> String {
    let mut marked = String::new();
    let lines = text.lines().filter(|line| *line != STALE);
    for line in lines {
        marked.push_str(line);
        marked.push('\n');
        let digest = line
            .strip_prefix(BEGIN)
            .and_then(|rest| rest.strip_suffix(END));
        if digest.is_some_and(|digest| digest != data_path) {
            marked.push_str(STALE);
            marked.push('\n');
        }
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_another_data_path_say_so_and_others_do_not() {
        let page = "# Results\n\n<!-- data path a1 -->\n\nText.\n";
        let stale = format!("# Results\n\n<!-- data path a1 -->\n{STALE}\n\nText.\n");
        assert_eq!(marked(page, "a1"), page);
        assert_eq!(marked(page, "b2"), stale);
        assert_eq!(marked(&stale, "b2"), stale);
        assert_eq!(marked(&stale, "a1"), page);
    }

    #[test]
    fn every_recorded_page_has_the_mark_it_needs() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let data_path = onramp_reproduce::made_by("").data_path.unwrap();
        for page in pages(&root).unwrap() {
            let text = std::fs::read_to_string(&page).unwrap();
            let shown = page.display();
            assert!(
                marked(&text, &data_path) == text,
                "{shown}: run `onramp reproduce --table`"
            );
        }
    }

    #[test]
    fn the_readme_shows_the_recorded_table() {
        let read = |path: &str| {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            std::fs::read_to_string(root.join(path)).unwrap()
        };
        let recorded = read("docs/results/incast.md");
        let table = recorded
            .split("```")
            .nth(1)
            .unwrap()
            .trim_start_matches("text\n");
        assert!(
            read("README.md").contains(table),
            "README.md: not the table of docs/results/incast.md"
        );
        let digest = |text: &str| {
            let line = text.lines().find(|line| line.starts_with(BEGIN));
            line.map(str::to_owned)
        };
        assert_eq!(digest(&read("README.md")), digest(&recorded));
    }
}
