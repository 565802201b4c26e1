// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The page in headless Chromium: it opens without network, is quiet, and does what it promises.
//! ONRAMP_SHOTS=DIR keeps pictures and a print of it there, in base64.

#[path = "../fixture.rs"]
mod fixture;
#[path = "../../../../tests/machine.rs"]
mod machine;

mod devtools;

use std::path::Path;

use devtools::Browser;
use onramp_report::{page, Section};
use onramp_results::figure::MadeBy;
use serde_json::{json, Value};

/// First plot of the fixture's figure of that kind.
const LINE: &str = ".chart[data-plot='0']";
const BARS: &str = ".chart[data-plot='3']";
const POINTS: &str = ".chart[data-plot='4']";

/// A page on disk: a figure of every kind of plot, and one that is partial and has one plot.
fn written(directory: &Path) -> String {
    let section = |(id, partial): (&str, bool)| {
        let mut figure = fixture::figure(id);
        figure.partial = partial;
        figure.plots.truncate(if partial { 1 } else { usize::MAX });
        Section::of_figure(figure, "results/reproduce", &MadeBy::default()).unwrap()
    };
    let sections = [("f9", false), ("f15", true)].map(section);
    let path = directory.join("report.html");
    std::fs::write(&path, page(&sections)).unwrap();
    format!("file://{}", path.display())
}

/// Keeps a picture of the whole page if asked to.
fn shot(browser: &mut Browser, name: &str) {
    let Some(directory) = std::env::var_os("ONRAMP_SHOTS") else {
        return;
    };
    let height = browser.evaluate("document.documentElement.scrollHeight");
    let width = browser.evaluate("innerWidth");
    let clip = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
    draw_all(browser);
    let picture = json!({"captureBeyondViewport": true, "clip": clip});
    let picture = browser.call("Page.captureScreenshot", picture);
    let file = Path::new(&directory).join(format!("{name}.png.base64"));
    std::fs::write(file, picture["data"].as_str().unwrap()).unwrap();
}

/// Scrolls through the page: plots are drawn when they come into view.
fn draw_all(browser: &mut Browser) {
    browser.evaluate(
        "(async () => { for (const c of document.querySelectorAll('.chart')) { \
         c.scrollIntoView({behavior: 'instant'}); \
         while (!c.querySelector('.main-svg')) await new Promise(requestAnimationFrame); } \
         scrollTo({top: 0, behavior: 'instant'}); })()",
    );
}

fn is_overflowing(browser: &mut Browser) -> Value {
    browser.evaluate("document.documentElement.scrollWidth > innerWidth")
}

/// Everything that went wrong, or went out.
fn complaints(browser: &Browser) -> Vec<&Value> {
    let url = |event: &Value| {
        event["params"]["request"]["url"]
            .as_str()
            .map(str::to_owned)
    };
    let is_bad = |event: &&Value| match event["method"].as_str().unwrap_or_default() {
        "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded" => true,
        "Network.requestWillBeSent" => !url(event).is_some_and(|url| {
            url.starts_with("file:") && url.ends_with("/report.html") || url.starts_with("data:")
        }),
        _ => false,
    };
    browser.events.iter().filter(is_bad).collect()
}

/// A page is loaded again so often until it has what was stored.
const RELOADS: usize = 20;

#[test]
fn a_reader_can_use_the_page() {
    let directory = tempfile::tempdir().unwrap();
    let mut browser = Browser::start();
    browser.prefer("light");
    browser.resize(1280, 900, false);
    browser.open(&written(directory.path()));
    assert_eq!(browser.evaluate("document.title"), "onramp report");
    assert_eq!(
        browser.evaluate("document.querySelectorAll('.figure > .partial').length"),
        1
    );

    every_kind_is_drawn(&mut browser);
    assert_eq!(is_overflowing(&mut browser), false);
    shot(&mut browser, "desktop-light");
    a_series_can_be_hidden(&mut browser);
    hovering_tells_values(&mut browser);
    dragging_zooms(&mut browser);
    the_theme_can_be_switched(&mut browser);
    shot(&mut browser, "desktop-dark");
    a_phone_scrolls_only_tables(&mut browser);
    it_prints_everything(&mut browser);
    assert_eq!(complaints(&browser), Vec::<&Value>::new());
}

fn every_kind_is_drawn(browser: &mut Browser) {
    draw_all(browser);
    let drawn = |selector: &str| format!("document.querySelectorAll(\"{selector}\").length");
    for (plot, marks) in [
        (0, ".scatterlayer .js-line"),
        (1, ".scatterlayer .js-fill"),
        (2, ".scatterlayer .js-line"),
        (3, ".barlayer .point"),
        (4, ".scatterlayer .point"),
        (5, ".heatmaplayer image"),
    ] {
        let count = browser.evaluate(&drawn(&format!(".chart[data-plot='{plot}'] {marks}")));
        assert!(count.as_u64() > Some(0), "plot {plot} has no {marks}");
    }
    let whiskers = browser.evaluate(&drawn(&format!("{BARS} .errorbar")));
    assert!(whiskers.as_u64() > Some(0), "bars have no intervals");
    // What looks like HTML is shown as it is.
    let legend = browser.evaluate("document.querySelectorAll('.legend')[0].textContent");
    assert!(
        legend.as_str().unwrap().contains(fixture::HOSTILE),
        "{legend}"
    );
}

fn a_series_can_be_hidden(browser: &mut Browser) {
    let lines = format!("document.querySelectorAll(\"{LINE} .scatterlayer .trace\").length");
    let before = browser.evaluate(&lines).as_u64().unwrap();
    browser.point(".legend button", true);
    assert_eq!(browser.evaluate(&lines), before - 1);
    assert_eq!(
        browser.evaluate("document.querySelector('.legend button').ariaPressed"),
        "false"
    );
    browser.point(".legend button", true);
    assert_eq!(browser.evaluate(&lines), before);
}

fn hovering_tells_values(browser: &mut Browser) {
    let shown = format!("document.querySelector(\"{POINTS} .hoverlayer\").textContent");
    browser.point(&format!("{POINTS} .points path"), false);
    browser.wait_for(&format!("{shown} != ''"));
    let text = browser.evaluate(&shown);
    let text = text.as_str().unwrap();
    assert!(text.contains("load (%): 20"), "{text}");
    assert!(
        text.contains("RCT, off / final: 1.1 [0.88, 1.32]"),
        "{text}"
    );
}

fn dragging_zooms(browser: &mut Browser) {
    let range = format!("document.querySelector(\"{LINE}\").layout.xaxis.range.join()");
    browser.point(&format!("{LINE} .nsewdrag"), false);
    let before = browser.evaluate(&range);
    let before = before.as_str().unwrap();
    let at = browser.evaluate(&format!(
        "(() => {{ const r = document.querySelector(\"{LINE} .nsewdrag\").getBoundingClientRect(); \
         return [r.x + r.width * 0.3, r.y + r.height / 2, r.x + r.width * 0.6]; }})()"
    ));
    browser.mouse("mousePressed", &at[0], &at[1]);
    let held =
        json!({"type": "mouseMoved", "x": at[2], "y": at[1], "button": "left", "buttons": 1});
    browser.call("Input.dispatchMouseEvent", held);
    browser.mouse("mouseReleased", &at[2], &at[1]);
    browser.wait_for(&format!("{range} != {before:?}"));
    browser.point(&format!("{LINE} [data-title='Reset axes']"), true);
    browser.wait_for(&format!("{range} == {before:?}"));
}

fn the_theme_can_be_switched(browser: &mut Browser) {
    let back = "getComputedStyle(document.body).backgroundColor";
    let plot = format!(
        "document.querySelector(\"{LINE} .main-svg\").style.backgroundColor || \
                        document.querySelector(\"{LINE} .main-svg\").style.background"
    );
    let (light, light_plot) = (browser.evaluate(back), browser.evaluate(&plot));
    browser.point("#theme", true);
    assert_eq!(
        browser.evaluate("document.documentElement.dataset.theme"),
        "dark"
    );
    assert_ne!(browser.evaluate(back), light);
    assert_ne!(browser.evaluate(&plot), light_plot);
    // What was chosen is stronger than what the system prefers, and outlives the page.
    // Another process of the browser stores it, which may be late.
    let is_kept = (0..RELOADS).any(|_| {
        browser.reload();
        browser.evaluate("document.documentElement.dataset.theme") == "dark"
    });
    assert!(is_kept, "the theme that was chosen is lost");
    browser.evaluate("localStorage.clear()");
    browser.reload();
    for theme in ["light", "dark", "light", "dark"] {
        browser.prefer(theme);
        browser.wait_for(&format!(
            "document.documentElement.dataset.theme == '{theme}'"
        ));
    }
}

fn a_phone_scrolls_only_tables(browser: &mut Browser) {
    browser.resize(375, 800, true);
    browser.reload();
    draw_all(browser);
    assert_eq!(is_overflowing(browser), false);
    let label = "getComputedStyle(document.querySelector('.comparison td'), '::before').content";
    assert_eq!(browser.evaluate(label), "\"Paper\"");
    let table = "document.querySelector('.scroll:has(.comparison)')";
    let is_wide = format!("{table}.scrollWidth > {table}.clientWidth");
    assert_eq!(browser.evaluate(&is_wide), false);
    shot(browser, "phone");
}

fn it_prints_everything(browser: &mut Browser) {
    browser.resize(1280, 900, false);
    browser.reload();
    browser.evaluate(
        "addEventListener('beforeprint', () => { window.printed = { \
         theme: document.documentElement.dataset.theme, \
         drawn: document.querySelectorAll('.chart .main-svg:first-child').length, \
         folded: document.querySelectorAll('details:not([open])').length }; }); 0",
    );
    let pdf = browser.call("Page.printToPDF", json!({"printBackground": true, "preferCSSPageSize": true, "paperWidth": 8.27, "paperHeight": 11.69}));
    let pdf = pdf["data"].as_str().unwrap();
    assert!(pdf.starts_with("JVBERi0"), "not base64 of a PDF");
    if let Some(directory) = std::env::var_os("ONRAMP_SHOTS") {
        std::fs::write(Path::new(&directory).join("print.pdf.base64"), pdf).unwrap();
    }
    let printed = browser.evaluate("window.printed");
    assert_eq!(printed, json!({"theme": "light", "drawn": 7, "folded": 0}));
    browser.wait_for("document.documentElement.dataset.theme == 'dark'");
}
