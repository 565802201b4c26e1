// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Finds sources without the line that names their licence. `tools/spdx` adds it.

use super::sources::Source;

const LICENCE: &str = "SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later";
/// The line is among so many first ones, because a script names its interpreter first.
const HEAD: usize = 3;

/// The paths of those that lack it.
pub fn lacking(files: &[Source]) -> Vec<&str> {
    let has_it = |text: &str| text.lines().take(HEAD).any(|line| line.contains(LICENCE));
    let lacking = files.iter().filter(|file| !has_it(&file.text));
    lacking.map(|file| file.path.as_str()).collect()
}

#[test]
fn the_line_counts_at_the_top_only() {
    let file = |path: &str, text: &str| Source {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let late = format!("1\n2\n3\n// {LICENCE}\n");
    let files = [
        file("a.rs", &format!("// {LICENCE}\n//! What.\n")),
        file("b", &format!("#!/bin/bash\n# {LICENCE}\n")),
        file("c.rs", &late),
        file("d.rs", ""),
    ];
    assert_eq!(lacking(&files), ["c.rs", "d.rs"]);
}
