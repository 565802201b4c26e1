// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What the page says, as text; tests/browser opens it.

mod fixture;

use onramp_report::{page, OneWayDelay, Section};
use onramp_results::figure::{By, MadeBy};

fn section(partial: bool) -> Section {
    let mut figure = fixture::figure("f9");
    figure.partial = partial;
    figure.rows[0].note = fixture::HOSTILE.into();
    figure.title = fixture::HOSTILE.into();
    Section::of_figure(figure, fixture::HOSTILE, &MadeBy::default()).unwrap()
}

/// The page without the scripts and styles that are ours.
fn text(sections: &[Section]) -> String {
    let html = page(sections);
    let end = html.find("<script id=\"data\"").unwrap();
    let begin = html.find("<body>").unwrap();
    html[begin..end].to_owned()
}

#[test]
fn the_same_results_give_the_same_bytes() {
    assert_eq!(page(&[section(true)]), page(&[section(true)]));
}

#[test]
fn text_of_results_is_escaped() {
    let html = page(&[section(false)]);
    assert!(!html.contains(fixture::HOSTILE));
    assert!(!html.contains("<script>document.title"));
    // As text, and in the data of the plots.
    assert!(html.contains("&lt;/script&gt;&lt;script&gt;document.title"));
    assert!(html.contains("\\u003c/script\\u003e"));
}

#[test]
fn nothing_comes_from_outside() {
    let html = text(&[section(false)]);
    for outside in ["http:", "https:", "src=", "url(", "@import", "<link"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(page(&[]).contains("default-src 'none'"));
}

#[test]
fn paper_and_measured_stand_beside_each_other() {
    let html = text(&[section(false)]);
    assert!(html.contains("<span class=\"value\">2.6\u{d7}</span>"));
    assert!(html.contains("<span class=\"value\" title=\"2.7123\">2.71\u{d7}</span>"));
    assert!(html.contains("[2.41, 3.00]"));
    assert!(html.contains("<span class=\"value\">1.04</span>")); // 2.7123 / 2.6
    assert!(html.contains("picture only"));
    assert!(html.contains("not reproduced"));
    assert!(html.contains("real kernel</th>"), "three columns");
    assert_eq!(html.matches("class=\"verdict-line\"").count(), 7);
    assert!(html.contains("20 ms instead of 1 s; 32 of 320 servers."));
    assert!(html.contains("time_dilation"));
}

#[test]
fn verdicts_are_counted() {
    let html = text(&[section(false), section(false)]);
    let overview = &html[..html.find("<h2>").unwrap()];
    // Of each kind and each world its own.
    let kinds = ["Numbers:", "Pictures:", "Beyond the paper:"];
    let ends = kinds.map(|kind| overview.find(kind).unwrap_or_else(|| panic!("{kind}")));
    let (numbers, pictures) = (&overview[ends[0]..ends[1]], &overview[ends[1]..ends[2]]);
    for count in ["4 reproduced", "2 not reproduced", "2 not measured"] {
        assert!(numbers.contains(count), "{numbers}");
    }
    assert!(pictures.contains("2 reproduced"), "{pictures}");
    assert!(!pictures.contains("not reproduced"), "{pictures}");
    // Two of one name have an address each.
    assert!(html.contains("id=\"figure-f9\"") && html.contains("id=\"figure-f9--1\""));
}

#[test]
fn a_row_counts_once_at_the_fuller_scale() {
    let at = |scale: &str| Section {
        scale: scale.to_owned(),
        ..section(false)
    };
    let html = text(&[at("quick"), at("full")]);
    let overview = &html[..html.find("<h2>").unwrap()];
    let numbers = &overview[overview.find("Numbers:").unwrap()..];
    assert!(numbers.contains("2 reproduced"), "{overview}");
    assert!(overview.contains("counted at scale full"), "{overview}");
}

#[test]
fn a_result_of_another_version_says_so() {
    let mut figure = fixture::figure("f9");
    figure.made_by.model = Some("then".to_owned());
    let now = MadeBy {
        model: Some("now".to_owned()),
        data_path: None,
    };
    let stale = Section::of_figure(figure, "", &now).unwrap();
    assert!(text(&[stale]).contains("the simulator's model changed"));
    assert!(!text(&[section(false)]).contains("Stale"));
}

#[test]
fn falls_in_per_cent_are_compared_by_what_they_leave() {
    let mut figure = fixture::figure("f9");
    let row = &mut figure.rows[0];
    (row.by, row.unit, row.paper) = (By::Change, "%".to_owned(), Some(-19.0));
    row.measured[0].value = Some(-39.2);
    let section = Section::of_figure(figure, "", &MadeBy::default()).unwrap();
    let html = text(&[section]);
    assert!(
        html.contains("<span class=\"value\">0.751</span>"),
        "{html}"
    );
    assert!(!html.contains(">2.06<"));
}

#[test]
fn a_partial_result_says_so() {
    let says = |partial| text(&[section(partial)]).contains("Partial");
    assert!(says(true));
    assert!(!says(false));
}

#[test]
fn what_a_logarithmic_axis_loses_is_told() {
    let html = text(&[section(false)]);
    assert_eq!(html.matches("Not shown: 1 of 10 values").count(), 1);
}

#[test]
fn delays_are_heat_maps() {
    let way = |from: &str, to: &str, min_ns| OneWayDelay {
        from: from.into(),
        to: to.into(),
        min_ns,
        now_ns: min_ns + 500,
    };
    let ways = [
        way("10.0.0.2", "10.0.0.1", 21_000),
        way("10.0.0.1", "10.0.0.2", 19_500),
    ];
    let section = Section::of_delays("matrix", vec![], &ways);
    assert_eq!(section.title, "One-way delays between 2 hosts");
    let cells = &section.plots[0].series[0];
    assert_eq!(section.plots[0].x.categories, ["10.0.0.1", "10.0.0.2"]);
    assert_eq!(
        (&cells.x[..], &cells.z[..]),
        (&[0.0, 1.0][..], &[Some(21.0), Some(19.5)][..])
    );
    assert_eq!(section.plots[1].series[0].z, [Some(21.5), Some(20.0)]);
    assert!(text(&[section]).contains("19.5"));
}
