// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! How large files, functions and types are.

/// Lines that are neither blank nor only a comment.
pub fn lines_of_code(text: &str) -> usize {
    let mut in_comment = false;
    let mut lines = 0;
    for line in text.lines().map(str::trim) {
        let opens = !in_comment && line.starts_with("/*");
        if in_comment || opens {
            in_comment = !line.contains("*/");
        } else if !line.is_empty() && !line.starts_with("//") {
            lines += 1;
        }
    }
    lines
}

/// The functions of a file, each with the functions in it, and their lines of code.
pub fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let function = |(at, line): (usize, &&str)| {
        // rustfmt closes a function where it opened it, clang-format at the left.
        let indent = line.len() - line.trim_start().len();
        let (name, end) = match rust_function(line) {
            Some(name) => (name, format!("{}}}", &line[..indent])),
            None => (c_function(line, lines.get(at + 1))?, "}".to_owned()),
        };
        let body = lines[at..].iter().take_while(|line| **line != end);
        let body: Vec<&str> = body.copied().collect();
        // One without a body, or on one line, is not long.
        let head = body.iter().find(|line| line.ends_with(['{', ';', '}']))?;
        let has_body = head.ends_with('{');
        has_body.then(|| (name.to_owned(), lines_of_code(&body.join("\n")) + 1))
    };
    lines.iter().enumerate().filter_map(function).collect()
}

/// The name of a function of Rust that begins in this line.
fn rust_function(line: &str) -> Option<&str> {
    let (before, name) = line.split_once("fn ")?;
    let is_word = |word: &str| {
        ["const", "async", "unsafe", "extern", "\"C\""].contains(&word) || word.starts_with("pub")
    };
    let end = name.find(['(', '<'])?;
    let is_definition = before.split_whitespace().all(is_word);
    (is_definition && !name[..end].contains(' ')).then_some(&name[..end])
}

/// The name of a function of C whose head ends in this line, before the brace.
fn c_function<'a>(line: &'a str, next: Option<&&str>) -> Option<&'a str> {
    let is_head = next == Some(&"{") && !line.starts_with(['#', '/', ' ']);
    is_head.then(|| line.trim())
}

/// The structs of a Rust file, and how many public fields each has.
pub fn public_fields(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(name) = struct_name(line) else {
            continue;
        };
        // rustfmt closes a struct where it opened it.
        let indent = line.len() - line.trim_start().len();
        let end = format!("{}}}", &line[..indent]);
        let fields = lines.by_ref().take_while(|line| *line != end);
        let public = fields.filter(|line| is_public_field(line)).count();
        found.push((name.to_owned(), public));
    }
    found
}

/// The name of a struct with named fields that begins in this line.
fn struct_name(line: &str) -> Option<&str> {
    let (before, name) = line.split_once("struct ")?;
    let is_definition = before.trim().is_empty() || before.trim().starts_with("pub");
    let is_open = line.ends_with('{');
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (is_definition && is_open).then_some(&name[..end])
}

fn is_public_field(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("pub ") || line.starts_with("pub(")
}

#[test]
fn comments_and_blank_lines_are_no_code() {
    let text = "//! What.\n\n/* one\n * two\n */\nlet a = 1; // why\n/* three */\nlet b = 2;\n";
    assert_eq!(lines_of_code(text), 2);
}

#[test]
fn public_fields_are_those_with_any_pub() {
    let text = "pub struct A<T> {\n    /// One.\n    pub one: T,\n    pub(crate) two: u8,\n    three: u8,\n}\n\
                struct B;\npub struct C {\n    pub four: u8,\n}\n";
    let expected = [("A".to_owned(), 2), ("C".to_owned(), 1)];
    assert_eq!(public_fields(text), expected);
}

#[test]
fn functions_are_found_with_their_bodies() {
    let text = "fn one() {}\n\nimpl A {\n    pub(crate) const fn two<T>(\n        a: T,\n    ) -> T {\n        // why\n        \
                a\n    }\n}\ntrait B {\n    fn three();\n    fn four() {\n        four()\n    }\n}\n";
    let expected = [("two".to_owned(), 5), ("four".to_owned(), 3)];
    assert_eq!(functions(text), expected);
    let c = "static int five(int a,\n\t\tint b)\n{\n\treturn a;\n}\n";
    assert_eq!(functions(c), [("int b)".to_owned(), 4)]);
}
