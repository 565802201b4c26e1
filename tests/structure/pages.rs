// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Files that pages name.

use crate::sources::Source;

/// Endings of the files that are looked for.
pub const EXTENSIONS: [&str; 6] = ["rs", "h", "c", "toml", "py", "sh"];

/// Paths in backticks that end as no file does. A page may leave out the folders before. A name in capitals stands for any.
pub fn missing(pages: &[Source], files: &[String]) -> Vec<String> {
    let mut missing = Vec::new();
    for page in pages {
        for path in page
            .text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|path| is_path(path))
        {
            let ends = |file: &String| file == path || file.ends_with(&format!("/{path}"));
            if !files.iter().any(ends) {
                missing.push(format!("{}: {path}", page.path));
            }
        }
    }
    missing
}

fn is_path(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-./".contains(c);
    let extension = text.rsplit_once('.').map_or("", |(_, extension)| extension);
    text.contains('/')
        && !text.starts_with(['/', '.'])
        && text.chars().all(is_plain)
        && EXTENSIONS.contains(&extension)
}

#[test]
fn a_path_is_found_by_its_end() {
    let page = |text: &str| Source {
        path: "docs/a.md".to_owned(),
        text: text.to_owned(),
    };
    let files = ["crates/a/src/b/c.rs".to_owned()];
    let text = "`b/c.rs` and `crates/a/src/b/c.rs`, `crates/a/NAME.rs`, `/etc/c.toml`, `c.rs`, `a c/d.rs`, `cc.x/y`";
    assert!(missing(&[page(text)], &files).is_empty());
    assert_eq!(missing(&[page("`x/c.rs`")], &files), ["docs/a.md: x/c.rs"]);
}
