// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Reads `[[case]]` entries: a named set of settings, or one case for each congestion control of a kind of hosts.

use super::{scalar, Entries, Given, Layer, Origin, Problem, Rank, Reader};
use crate::hosts::HostKind;
use onramp_cc::Cc;
use onramp_keys::Value;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

const MAX_CASE_NAME: usize = 40;
/// In place of `name`.
const EVERY_CC: &str = "every_cc";

/// An entry with `every_cc`.
pub(super) struct OfEvery {
    kind: HostKind,
    layer: Layer,
    place: Origin,
    /// Number of named cases before it.
    after: usize,
}

impl Reader {
    pub(super) fn cases(&mut self, place: Origin, value: &Spanned<DeValue<'_>>) {
        let Some(entries) = value.get_ref().as_array() else {
            return self.expected(place, "case", value.get_ref(), "[[case]] entries");
        };
        for entry in entries {
            let place = self.lines.place(entry.span().start);
            match entry.get_ref().as_table() {
                Some(table) => self.case(place, table),
                None => self.expected(place, "case", entry.get_ref(), "a table"),
            }
        }
    }

    fn case(&mut self, place: Origin, table: &DeTable<'_>) {
        let mut layer = Layer::new();
        let (mut name, mut every) = (None, None);
        for (key, value) in table {
            let place = self.lines.place(key.span().start);
            match key.get_ref().as_ref() {
                "name" => name = Some((place, value.get_ref())),
                EVERY_CC => every = Some((place, value.get_ref())),
                path => self.entry(path, place, value, Rank::Case, &mut layer),
            }
        }
        match (name, every) {
            (Some((place, _)), Some(_)) => {
                let (key, other) = ("case.name".to_owned(), format!("case.{EVERY_CC}"));
                self.report(place, Problem::Beside { key, other });
            }
            (None, Some((place, value))) => self.of_every(place, value, layer),
            (name, None) => self.named(place, name, layer),
        }
    }

    fn named(&mut self, place: Origin, name: Option<(Origin, &DeValue<'_>)>, layer: Layer) {
        let rule = format!("1 to {MAX_CASE_NAME} of a-z, A-Z, 0-9, \"-\", \"_\", \".\"");
        let Some((place, value)) = name else {
            let key = "case.name".to_owned();
            return self.report(
                place,
                Problem::Missing {
                    key,
                    expected: rule,
                },
            );
        };
        let Some(name) = value.as_str().filter(|n| is_case_name(n)) else {
            return self.expected(place, "case.name", value, &rule);
        };
        self.refuse_same(place, name);
        self.out.cases.push((name.to_owned(), layer));
    }

    fn refuse_same(&mut self, place: Origin, name: &str) {
        if self.out.cases.iter().any(|(other, _)| other == name) {
            let name = name.to_owned();
            self.report(place, Problem::SameName { name });
        }
    }

    fn of_every(&mut self, place: Origin, value: &DeValue<'_>, layer: Layer) {
        let kind = value
            .as_str()
            .and_then(|text| text.parse::<HostKind>().ok());
        let key = format!("case.{EVERY_CC}");
        let Some(kind) = kind else {
            let kinds = format!("one of {}", HostKind::names().join(", "));
            return self.expected(place, &key, value, &kinds);
        };
        for own in ["host.cc", "host.kind"] {
            if layer.contains_key(own) {
                let (key, other) = (own.to_owned(), key.clone());
                self.report(place, Problem::Beside { key, other });
            }
        }
        let after = self.out.cases.len();
        self.of_every.push(OfEvery {
            kind,
            layer,
            place,
            after,
        });
    }

    /// Inserts a case for each congestion control that no named case has. Needs all named cases and the base.
    pub(super) fn insert_of_every(&mut self) {
        let named: Vec<Cc> = self
            .out
            .cases
            .iter()
            .filter_map(|(_, case)| self.cc_of(case))
            .collect();
        for every in std::mem::take(&mut self.of_every).into_iter().rev() {
            let is_nic = every.kind == HostKind::Nic;
            let others = Cc::all().filter(|cc| cc.is_nic() == is_nic && !named.contains(cc));
            for (n, cc) in others.enumerate() {
                let name = case_name(cc);
                self.refuse_same(every.place, &name);
                let case = (name, every.case_of(cc));
                self.out.cases.insert(every.after + n, case);
            }
        }
    }

    /// The congestion control that the settings of `case`, else of the file, name.
    fn cc_of(&self, case: &Layer) -> Option<Cc> {
        let text = |key: &str| {
            let given = case.get(key).or_else(|| self.out.base.get(key))?;
            given.text().map(str::to_owned)
        };
        let is_nic = text("host.kind").is_some_and(|kind| kind == HostKind::Nic.name());
        Cc::named(&text("host.cc")?)?.on(is_nic)
    }
}

impl OfEvery {
    fn case_of(&self, cc: Cc) -> Layer {
        let mut layer = self.layer.clone();
        for (key, text) in [
            ("host.kind", self.kind.to_string()),
            ("host.cc", cc.to_string()),
        ] {
            let given = Given {
                setting: scalar(key, &text, &Entries::default()).ok(),
                place: self.place,
                rank: Rank::Case,
            };
            layer.insert(key.to_owned(), given);
        }
        layer
    }
}

/// Its name; with the kind of hosts if both kinds have one of that name.
fn case_name(cc: Cc) -> String {
    match (cc.on(!cc.is_nic()), cc.is_nic()) {
        (None, _) => cc.to_string(),
        (Some(_), true) => format!("{cc}-nic"),
        (Some(_), false) => format!("{cc}-kernel"),
    }
}

/// Case names become parts of file names.
fn is_case_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    (1..=MAX_CASE_NAME).contains(&name.len()) && name.bytes().all(allowed) && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;
    use onramp_cc::Cc;

    const BASE: &str = r#"title = "t"
duration = "10 ms"
[network]
topology = { kind = "star", hosts = 3 }
link = { rate = "10 Gbit/s", delay = "1 us" }
[network.ecn]
threshold = "65 kB"
[host]
gso = "16 kB"
[onramp]
law = "off"
[[traffic]]
kind = "long"
"#;

    fn parse(cases: &str) -> Result<Scenario, String> {
        Scenario::parse(&format!("{BASE}{cases}"), "t").map_err(|errors| errors.to_string())
    }

    #[test]
    fn every_cc_that_no_named_case_has_gets_one() {
        let cases = "[[case]]\nname = \"first\"\n\"host.cc\" = \"dctcp\"\n[[case]]\nevery_cc = \"kernel\"\n\
                     [[case]]\nname = \"last\"\n\"host.cc\" = \"cubic\"\n\"network.buffer\" = \"1 MB\"\n";
        let scenario = parse(cases).unwrap();
        let names: Vec<&str> = scenario.runs().iter().map(|r| &*r.params["case"]).collect();
        assert_eq!((names[0], names.last()), ("first", Some(&"last")));
        assert!(names.contains(&"bbr") && names.contains(&"timely-kernel"));
        assert!(!names.contains(&"cubic") && !names.contains(&"dctcp-kernel"));
        let kernel: Vec<Cc> = Cc::all().filter(|cc| !cc.is_nic()).collect();
        for &cc in &kernel {
            assert!(scenario.runs().iter().any(|run| run.host.cc == cc), "{cc}");
        }
        assert_eq!(names.len(), kernel.len());
    }

    #[test]
    fn entries_that_fit_no_form_are_refused() {
        for (case, expected) in [
            (
                "every_cc = \"nics\"",
                "t:15: case.every_cc is \"nics\", expected one of kernel, nic",
            ),
            (
                "every_cc = \"kernel\"\nname = \"a\"",
                "t:16: case.name and case.every_cc are both set: remove one of them",
            ),
            (
                "every_cc = \"kernel\"\n\"host.cc\" = \"cubic\"",
                "t:15: host.cc and case.every_cc are both set: remove one of them",
            ),
        ] {
            let error = parse(&format!("[[case]]\n{case}\n")).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
