// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The graph of imports between the modules of a folder: of the rooms of a crate, and of what is in each.

use crate::sources::{files_in, read};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A module by the names on its way from the crate's root.
type Module = Vec<String>;
/// By module of a folder: the others of the folder that it imports.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Import cycles of the crate with this `src` folder: the folder, and the modules of each.
pub fn cycles(src: &Path) -> Vec<String> {
    let graphs = graphs(&modules(src));
    let describe = |(folder, graph): (&Module, &Graph)| -> Vec<String> {
        let folder = [src.display().to_string(), folder.join("/")].join("/");
        let folder = folder.trim_end_matches('/');
        let circles = circles(graph).into_iter();
        circles
            .map(|circle| format!("{folder}: {}", circle.join(", ")))
            .collect()
    };
    graphs.iter().flat_map(describe).collect()
}

/// The modules of each circle.
fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut found = Vec::new();
    for module in graph.keys() {
        if seen.contains(module) {
            continue;
        }
        let there = reachable(graph, module);
        let is_in_circle =
            |other: &&String| there.contains(*other) && reachable(graph, other).contains(module);
        let circle: Vec<String> = graph.keys().filter(is_in_circle).cloned().collect();
        seen.extend(circle.iter().cloned());
        if circle.len() > 1 {
            found.push(circle);
        }
    }
    found
}

fn reachable(graph: &Graph, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(module) = open.pop() {
        for next in graph.get(&module).into_iter().flatten() {
            if found.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    found
}

/// The files of a crate as modules, with their texts.
fn modules(src: &Path) -> Vec<(Module, String)> {
    let files = files_in(src, &["rs"]);
    let module = |file: &std::path::PathBuf| {
        let path = file.strip_prefix(src).expect("it is in the folder");
        (module_of(path), read(file))
    };
    files.iter().map(module).collect()
}

/// By folder: its graph. Unit tests may use everything.
fn graphs(modules: &[(Module, String)]) -> BTreeMap<Module, Graph> {
    let prefixes = |(module, _): &(Module, String)| -> Vec<Module> {
        (1..=module.len()).map(|n| module[..n].to_vec()).collect()
    };
    let names: BTreeSet<Module> = modules.iter().flat_map(prefixes).collect();
    let mut graphs: BTreeMap<Module, Graph> = BTreeMap::new();
    for (module, text) in modules {
        if module.iter().any(|name| name == "tests") {
            continue;
        }
        for import in imports(text, module) {
            // They part in this folder, if the import does not lead to the module itself or to what is in it.
            let pairs = module.iter().zip(&import);
            let depth = pairs.take_while(|(own, other)| own == other).count();
            if depth < module.len().min(import.len()) && names.contains(&import[..=depth]) {
                let graph = graphs.entry(module[..depth].to_vec()).or_default();
                let other = import[depth].clone();
                graph.entry(other.clone()).or_default();
                graph
                    .entry(module[depth].clone())
                    .or_default()
                    .insert(other);
            }
        }
    }
    graphs
}

/// The module that a file is: none for the crate's root.
fn module_of(path: &Path) -> Module {
    let mut names: Module = path
        .with_extension("")
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    if names
        .last()
        .is_some_and(|name| ["mod", "lib", "main"].contains(&name.as_str()))
    {
        names.pop();
    }
    names
}

/// The paths in this crate that a module names, unit tests not counted.
fn imports(text: &str, module: &[String]) -> BTreeSet<Module> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
    let lines = code.lines().filter(|line| !line.trim().starts_with("//"));
    let code: String = lines.collect::<Vec<_>>().join("\n");
    let mut found = BTreeSet::new();
    for begin in ["crate", "super", "self"] {
        for (at, _) in code.match_indices(&format!("{begin}::")) {
            let continues = |c: char| c.is_alphanumeric() || "_:$".contains(c);
            if code[..at].chars().next_back().is_some_and(continues) {
                continue;
            }
            let from = match begin {
                "crate" => vec![],
                _ => module.to_vec(),
            };
            let path = match begin {
                "super" => &code[at..],
                _ => &code[at + begin.len() + 2..],
            };
            found.extend(expanded(from, path));
        }
    }
    found
}

/// The paths that begin with `from` and continue as this text: one, or those in braces.
fn expanded(mut from: Module, text: &str) -> Vec<Module> {
    let text = text.trim_start();
    if let Some(group) = text.strip_prefix('{') {
        let parts = parts(group).into_iter();
        return parts
            .flat_map(|part| expanded(from.clone(), part))
            .collect();
    }
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    match &text[..end] {
        "super" => drop(from.pop()),
        "self" | "" => {}
        name => from.push(name.to_owned()),
    }
    match text[end..].strip_prefix("::") {
        Some(rest) => expanded(from, rest),
        None => vec![from],
    }
}

/// What commas separate, up to the brace that closes the group.
fn parts(group: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut parts) = (0, 0, vec![]);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                parts.push(&group[begin..at]);
                begin = at + 1;
                if c == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

#[test]
fn imports_are_found_in_every_spelling() {
    let text = "use crate::a::B;\nuse crate::{c, d::{e, f}, g};\n// use crate::h;\nuse super::super::i::J;\n\
                use self::k::L;\nfn m() { crate::n::o() }\n#[cfg(test)]\nmod tests {\n    use crate::p::Q;\n}\n";
    let module = ["x".to_owned(), "y".to_owned()];
    let found: Vec<String> = imports(text, &module)
        .iter()
        .map(|path| path.join("::"))
        .collect();
    let expected = [
        "a::B",
        "c",
        "d::e",
        "d::f",
        "g",
        "i::J",
        "n::o",
        "x::y::k::L",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_circle_is_found_whatever_its_length() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let mut graph: Graph = [
        ("a", names(&["b"])),
        ("b", names(&["c"])),
        ("c", names(&["a", "d"])),
        ("d", names(&[])),
    ]
    .map(|(module, imports)| (module.to_owned(), imports))
    .into();
    assert_eq!(circles(&graph), [["a", "b", "c"]]);
    graph.insert("c".to_owned(), names(&["d"]));
    assert!(circles(&graph).is_empty());
}

#[test]
fn a_folder_has_a_graph_of_its_own() {
    let file = |path: &str, text: &str| (module_of(Path::new(path)), text.to_owned());
    let graphs = graphs(&[
        file("lib.rs", "mod a; mod c;"),
        file("a/mod.rs", "use self::x::X;"),
        file("a/x.rs", "use super::y::Y; use crate::c::C;"),
        file("a/y.rs", "use crate::a::x::X; use super::Own;"),
        file("c.rs", ""),
    ]);
    let edges = |folder: &[&str]| -> Vec<String> {
        let folder: Module = folder.iter().map(|name| (*name).to_owned()).collect();
        let of = |(from, to): (&String, &BTreeSet<String>)| {
            to.iter()
                .map(|to| format!("{from} {to}"))
                .collect::<Vec<_>>()
        };
        graphs[&folder].iter().flat_map(of).collect()
    };
    assert_eq!(edges(&[]), ["a c"]);
    assert_eq!(edges(&["a"]), ["x y", "y x"]);
}
