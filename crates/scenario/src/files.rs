// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Files that a scenario names. The caller of the parser supplies the function that reads them; each
//! file is read once.

use crate::flow_list::{self, ListedFlow};
use crate::graph::Graph;
use crate::workload::{BuiltIn, Distribution};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// Reads a file by the path that the scenario gives.
pub(crate) type Read<'a> = &'a dyn Fn(&str) -> io::Result<Vec<u8>>;

/// For scenarios that name no files.
pub const NO_FILES: Read<'static> = &|_| Err(io::ErrorKind::NotFound.into());

/// Parsed files by path, or the error.
type Kept<T> = RefCell<BTreeMap<String, Result<Arc<T>, String>>>;

/// The files of one scenario.
pub(crate) struct Files<'a> {
    read: Read<'a>,
    graphs: Kept<Graph>,
    flows: Kept<Vec<ListedFlow>>,
    distributions: Kept<Distribution>,
}

impl<'a> Files<'a> {
    pub fn new(read: Read<'a>) -> Files<'a> {
        Files {
            read,
            graphs: Kept::default(),
            flows: Kept::default(),
            distributions: Kept::default(),
        }
    }

    /// A network, its hosts first.
    pub fn graph(&self, path: &str) -> Result<Arc<Graph>, String> {
        self.keep(&self.graphs, path, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            let graph = match path.ends_with(".toml") {
                true => Graph::parse_toml(&text),
                false => Graph::parse(&text),
            };
            graph.map(Graph::hosts_first).map_err(|e| e.to_string())
        })
    }

    pub fn flows(&self, path: &str) -> Result<Arc<Vec<ListedFlow>>, String> {
        self.keep(&self.flows, path, |bytes| {
            flow_list::read(path, bytes).map_err(|error| error.to_string())
        })
    }

    /// A file of workloads/ by its name, else a file.
    pub fn workload(&self, name: &str) -> Result<Arc<Distribution>, String> {
        if let Ok(built_in) = name.parse::<BuiltIn>() {
            return Ok(built_in.distribution());
        }
        self.keep(&self.distributions, name, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            Distribution::parse(&text).map_err(|error| error.to_string())
        })
    }

    fn keep<T>(
        &self,
        kept: &Kept<T>,
        path: &str,
        parse: impl Fn(&[u8]) -> Result<T, String>,
    ) -> Result<Arc<T>, String> {
        if let Some(known) = kept.borrow().get(path) {
            return known.clone();
        }
        let bytes = (self.read)(path).map_err(|error| format!("cannot be read: {error}"));
        let value = bytes.and_then(|bytes| parse(&bytes)).map(Arc::new);
        kept.borrow_mut().insert(path.to_owned(), value.clone());
        value
    }
}
