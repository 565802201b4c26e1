//! Lists what is built in: figures, and the scenarios with the files that they name.

use std::fmt::Write;
use std::path::Path;

const DIRECTORIES: [&str; 5] = [
    "figures",
    "scenarios",
    "scenarios/paper",
    "scenarios/beyond",
    "scenarios/topologies",
];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the repository is there");
    let mut list = String::from("&[\n");
    for directory in DIRECTORIES {
        println!("cargo::rerun-if-changed={}", root.join(directory).display());
        for name in toml_files(&root.join(directory)) {
            let path = root.join(directory).join(&name);
            let path = path.display();
            writeln!(
                list,
                "({:?}, include_str!({:?})),",
                format!("{directory}/{name}"),
                path.to_string()
            )
            .expect("a string takes all");
        }
    }
    list.push_str("]\n");
    let out = std::env::var("OUT_DIR").expect("cargo says where to");
    std::fs::write(Path::new(&out).join("built_in.rs"), list)
        .expect("cargo's directory takes files");
}

fn toml_files(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".toml")).collect();
    names.sort();
    names
}
