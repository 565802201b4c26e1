// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Tests that depend on the machine: lines that read a clock, wait for an instant, or take a port that another program
//! may have. Each needs a reason, `// machine: WHY` (in scripts `# machine: WHY`), on the line, or in the comment
//! above it. In the head of a file it counts for the whole file, in the head of mod.rs for all files of its folder.
//! `grep -rn ' machine: ' tests crates` lists the reasons.
//! machine: this file only names what it looks for.

use crate::sources::Source;

/// What reads a clock, or waits for an instant. Tests have scripts in strings, too.
const SIGNS: [&str; 16] = [
    "Instant::now",
    "SystemTime::now",
    "elapsed(",
    "sleep(",
    "sleep_until(",
    "now_mono_ns() - ",
    "sleep ",
    "time::timeout(",
    "recv_timeout(",
    "recv_deadline(",
    "wait_timeout",
    "park_timeout(",
    "set_read_timeout(",
    "set_write_timeout(",
    "connect_timeout(",
    "setTimeout(",
];
const REASON: &str = " machine: ";

/// The lines of tests that depend on the machine without a reason.
pub fn unexplained(files: &[Source]) -> Vec<String> {
    let explained = files.iter().filter(|file| is_explained(&file.text));
    let rooms: Vec<&str> = explained
        .map(|file| file.path.strip_suffix("mod.rs").unwrap_or(&file.path))
        .collect();
    let is_open = |file: &&Source| {
        let is_in = |room: &str| file.path.starts_with(room);
        !rooms.iter().any(|room| is_in(room))
    };
    files.iter().filter(is_open).flat_map(lines).collect()
}

/// Whether the head of a file has a reason. Its first line is the licence.
fn is_explained(text: &str) -> bool {
    let lines = text.lines().filter(|line| !line.contains("SPDX-License"));
    let head = lines.take_while(|line| line.starts_with("//!") || line.starts_with('#'));
    head.into_iter().any(is_reason)
}

fn lines(file: &Source) -> Vec<String> {
    let lines: Vec<&str> = file.text.lines().collect();
    let is_program = file.path.split('/').any(|name| name == "tests");
    let is_sign = |line: &str| has_sign(line) || is_program && names_port(line);
    let is_open = |at: &usize| {
        let line = lines[*at];
        !is_comment(line) && is_sign(line) && !has_reason(&lines, *at)
    };
    (first_of_tests(file, &lines)..lines.len())
        .filter(is_open)
        .map(|at| format!("{}:{}: {}", file.path, at + 1, lines[at].trim()))
        .collect()
}

/// Where the tests of a file begin: all of it, or the unit tests at its bottom.
fn first_of_tests(file: &Source, lines: &[&str]) -> usize {
    let mut names = file.path.split(['/', '.']);
    if names.any(|name| name == "tests") || file.path.ends_with("-test") {
        return 0;
    }
    let tests = lines
        .windows(2)
        .position(|pair| pair[0] == "#[cfg(test)]" && pair[1].ends_with("mod tests {"));
    tests.unwrap_or(lines.len())
}

/// Not in the middle of a word.
fn has_sign(line: &str) -> bool {
    let is_word = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    SIGNS
        .iter()
        .any(|sign| line.match_indices(sign).any(|(at, _)| is_word(at)))
}

/// A loopback address with a port that the kernel does not choose.
fn names_port(line: &str) -> bool {
    let loopback = ["127.", "localhost:"]
        .iter()
        .find_map(|name| line.find(name));
    let rest = loopback.map_or("", |at| &line[at..]);
    rest.split(':')
        .skip(1)
        .any(|port| port.starts_with(|c| ('1'..='9').contains(&c)))
}

/// On the line, or in the comment above it.
fn has_reason(lines: &[&str], at: usize) -> bool {
    let above = lines[..at].iter().rev().take_while(|line| is_comment(line));
    is_reason(lines[at]) || above.copied().any(is_reason)
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//") || line.starts_with("# ")
}

/// `// machine: `, `//! machine: ` or `# machine: ` with something behind it.
fn is_reason(line: &str) -> bool {
    line.split_once(REASON)
        .is_some_and(|(before, why)| before.ends_with(['/', '!', '#']) && !why.trim().is_empty())
}

fn found(path: &str, text: &str) -> Vec<String> {
    let (path, text) = (path.to_owned(), text.to_owned());
    unexplained(&[Source { path, text }])
}

#[test]
fn a_line_needs_a_reason_on_it_or_above_it() {
    let text = "thread::sleep(A);\n// machine: why\nthread::sleep(B);\nlet c = Instant::now(); // machine: why\n\
                // It waits.\n// machine:\nthread::sleep(D);\n// thread::sleep(E)\n";
    let expected = [
        "tests/a.rs:1: thread::sleep(A);",
        "tests/a.rs:7: thread::sleep(D);",
    ];
    assert_eq!(found("tests/a.rs", text), expected);
    let script = "sleep 1\n# machine: why\nsleep 2\n";
    assert_eq!(found("tools/a-test", script), ["tools/a-test:1: sleep 1"]);
    assert!(found("tools/a", script).is_empty());
}

#[test]
fn a_port_is_the_kernels_choice_or_has_a_reason() {
    let text = "bind(\"127.0.0.1:0\");\nbind(\"127.0.{n}.1:80\");\nbind(\"10.0.0.1:80\");\n";
    let expected = ["a/tests/b.rs:2: bind(\"127.0.{n}.1:80\");"];
    assert_eq!(found("a/tests/b.rs", text), expected);
}

#[test]
fn only_tests_are_looked_at() {
    let text =
        "Instant::now();\n#[cfg(test)]\nmod tests {\nInstant::now();\nstate.is_asleep();\n}\n";
    assert_eq!(found("a/src/b.rs", text), ["a/src/b.rs:4: Instant::now();"]);
    assert_eq!(found("a/src/b/tests.rs", text).len(), 2);
}

#[test]
fn a_reason_in_a_head_is_for_the_file_or_the_folder() {
    let file = |path: &str, text: &str| Source {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let explained = "// SPDX-License-Identifier: A\n//! What.\n//! machine: why\nInstant::now();\n";
    let files = [
        file("tests/a/mod.rs", explained),
        file("tests/a/b.rs", "Instant::now();\n"),
        file("tests/c.rs", explained),
        file("tests/d.rs", "Instant::now();\n"),
    ];
    assert_eq!(unexplained(&files), ["tests/d.rs:1: Instant::now();"]);
}
