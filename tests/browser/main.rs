//! The page of `rocebench plot` in a real browser, from disk, without network. Fails where there is no Chromium.
#![allow(clippy::unwrap_used, clippy::panic)]

mod chromium;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use chromium::{Browser, Tab};
use results::json;
use results::sample::diagnosis;
use results::sample::mesh::{Mesh, Slow};
use results::sample::sweep::Synthetic;
use serde_json::{Value, json};
use testing::program::call;

/// The page of results that have something for every kind of figure, drawn once.
fn page() -> &'static Path {
    static PAGE: OnceLock<PathBuf> = OnceLock::new();
    // Nothing on it may be so wide as the path of its files.
    let folder =
        "browser/a_folder_with_a_name_as_long_as_those_that_programs_make_0123456789abcdef";
    PAGE.get_or_init(|| draw(&Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder)))
}

fn draw(folder: &Path) -> PathBuf {
    let results = folder.join("results");
    std::fs::create_dir_all(&results).unwrap();
    let first = Synthetic { ops: vec!["send", "read"], ..Synthetic::default() };
    let later = Synthetic {
        factor: 0.93,
        git: "abcdef012345",
        started_at: "2026-11-21T12:00:00Z",
        seed: 8,
        ..first.clone()
    };
    let software = Synthetic {
        ops: vec!["send"],
        cqs: vec!["shared"],
        sizes: vec![4096],
        workers: vec![1],
        set_up: vec![1, 16],
        link_gbit_per_s: None,
        ..Synthetic::default()
    };
    let loads = Synthetic {
        ops: vec!["send"],
        qps: vec![1, 16],
        sizes: vec![64],
        workers: vec![1],
        rates: vec!["10%", "30%", "50%", "70%", "90%", "95%", "100%"],
        ..Synthetic::default()
    };
    let searched =
        Synthetic { search: true, rates: Vec::new(), link_gbit_per_s: None, ..loads.clone() };
    let mesh = Mesh::new(16).with(Slow::Receives(6, 0.6)).with(Slow::Pair(2, 8, 0.5));
    let mut nodes = mesh.pairs();
    nodes.cases.extend(mesh.incast(&[1, 4, 15]).cases);
    json::write(&nodes, &results.join("6.json")).unwrap();
    let racks = folder.join("racks");
    std::fs::write(&racks, "node[1-9] left # the old one\nnode[10-16] right\n").unwrap();
    let mut explained = software.result();
    explained.cases[0].diagnosis = Some(diagnosis());
    json::write(&explained, &results.join("3.json")).unwrap();
    for (number, synthetic) in [(1, first), (2, later), (4, loads), (5, searched)] {
        json::write(&synthetic.result(), &results.join(format!("{number}.json"))).unwrap();
    }
    let plots = folder.join("plots");
    let plot = call("plot").arg(&results).arg("-o").arg(&plots);
    plot.arg("--base").arg(results.join("1.json")).arg("--racks").arg(&racks).passes();
    plots.join("index.html")
}

/// The page in a wide light window.
fn at_a_desk() -> Tab {
    let mut browser = Tab::open();
    browser.show(1280, "screen", "light");
    browser.open(page());
    browser
}

/// Errors of scripts, messages on the console, and requests for anything but the page.
fn trouble(browser: &Browser) -> Vec<String> {
    browser
        .events
        .iter()
        .filter(|event| match event["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded") => true,
            Some("Network.requestWillBeSent") => event["params"]["type"] != "Document",
            Some("Network.loadingFailed") => true,
            _ => false,
        })
        .map(ToString::to_string)
        .collect()
}

fn wrong(browser: &mut Browser) -> Vec<Value> {
    let found = browser.evaluate(include_str!("check.js"));
    found.as_array().unwrap().clone()
}

const BACKGROUND: &str = "getComputedStyle(document.body).backgroundColor";
/// Colours of every shape and word in the pictures.
const PAINT: &str = "[...document.querySelectorAll('figure svg *')].map((e) => { \
    const s = getComputedStyle(e); return s.fill + s.stroke; }).join()";

#[test]
fn every_figure_shows_in_every_dress() {
    let mut browser = Tab::open();
    let mut paints = Vec::new();
    for (width, medium, scheme) in [
        (1280, "screen", "light"),
        (1280, "screen", "dark"),
        (360, "screen", "light"),
        (360, "screen", "dark"),
        (794, "print", "dark"),
    ] {
        browser.show(width, medium, scheme);
        browser.open(page());
        let dress = format!("{width} px, {medium}, {scheme}");
        assert_eq!(trouble(&browser), [""; 0], "{dress}");
        let wrong = wrong(&mut browser);
        assert!(wrong.is_empty(), "{dress}: {wrong:#?}");
        paints.push((dress, browser.evaluate(BACKGROUND), browser.evaluate(PAINT)));
    }
    let [light, dark, _, _, print] = paints.as_slice() else {
        panic!("{paints:?}");
    };
    assert_ne!(light.1, dark.1, "the dark page is as the light one");
    assert_ne!(light.2, dark.2, "the pictures are no darker");
    let [light, print] = [light, print].map(|(_, ground, paint)| (ground, paint));
    assert_eq!(light, print, "paper is not light");
}

#[test]
fn the_page_has_every_part_and_every_file_beside_it() {
    let mut browser = at_a_desk();
    let count = |tab: &mut Browser, selector: &str| {
        tab.count(&format!("document.querySelectorAll({selector:?}).length"))
    };
    let figures = count(&mut browser, "figure .whole svg");
    assert!(figures >= 10, "{figures}");
    for section in report::show::plot::section_ids() {
        let selector = format!("section[aria-labelledby={section}] figure");
        assert!(count(&mut browser, &selector) > 0, "no figure in {section}");
    }
    let tables = count(&mut browser, "table");
    assert!(tables > figures, "a figure has no table");
    // 2 × 72 of the sweeps, 5 of the software device, 4 × 8 with loads, 4 that were searched, 3 incasts; rounds of pairs have
    // tables of nodes.
    assert_eq!(count(&mut browser, "#cases-table tbody tr"), 188);
    let pictures = browser.evaluate(
        "[...document.querySelectorAll('figcaption a')].map((a) => a.getAttribute('href'))",
    );
    let pictures = pictures.as_array().unwrap();
    assert_eq!(pictures.len() as u64, figures);
    for picture in pictures {
        let file = page().parent().unwrap().join(picture.as_str().unwrap());
        browser.open(&file);
        assert_eq!(trouble(&browser), [""; 0], "{}", file.display());
        let tag = browser.evaluate("document.documentElement.tagName");
        assert_eq!(tag, "svg", "{}", file.display());
    }
}

#[test]
fn a_picture_alone_is_as_dark_as_its_reader() {
    let mut browser = Tab::open();
    let ground = "getComputedStyle(document.querySelector('rect')).fill";
    let mut grounds = Vec::new();
    for (medium, scheme) in [("screen", "light"), ("screen", "dark"), ("print", "dark")] {
        browser.show(800, medium, scheme);
        browser.open(&page().with_file_name("latency-by-load.svg"));
        grounds.push(browser.evaluate(ground));
    }
    let (light, dark) = ("rgb(255, 255, 255)", "rgb(22, 24, 29)");
    assert_eq!(grounds, [light, dark, light]);
}

/// The answer is seen without scrolling, with the figure; the table comes next, what was measured first.
#[test]
fn the_first_screen_answers() {
    let mut browser = at_a_desk();
    let answers = "[...document.querySelectorAll('.answer')].filter((it) => \
        it.textContent && it.getBoundingClientRect().bottom <= 800).length";
    assert_eq!(browser.count(answers), 1);
    let figure = "document.querySelector('figure').getBoundingClientRect().top <= 300";
    assert_eq!(browser.evaluate(figure), true);
    let third = "document.querySelectorAll('#cases-table th')[2].textContent";
    assert_eq!(browser.evaluate(third), "Gb/s");
    // The figure is whole, however tall.
    let boxes = "[...document.querySelectorAll('main *')].filter((it) => it.scrollHeight > it.clientHeight + 1 && \
        getComputedStyle(it).overflowY === 'auto').map((it) => it.className).filter((it) => it !== 'scroll').join()";
    assert_eq!(browser.evaluate(boxes), "");
    browser.show(400, "screen", "light");
    assert_eq!(browser.count(answers), 1);
}

#[test]
fn a_keyboard_is_enough() {
    let mut browser = at_a_desk();
    let focused = "document.activeElement.id || document.activeElement.className";
    browser.press("Tab");
    assert_eq!(browser.evaluate(focused), "skip");
    let outline = "getComputedStyle(document.activeElement).outlineStyle";
    assert_ne!(browser.evaluate(outline), "none");
    let light = browser.evaluate(BACKGROUND);
    browser.press("Tab");
    browser.press("Enter");
    assert_eq!(browser.evaluate("document.querySelector('.menu').open"), true);
    browser.press("Tab");
    assert_eq!(browser.evaluate(focused), "colours-system");
    browser.press("ArrowRight");
    browser.press("ArrowRight");
    assert_eq!(browser.evaluate(focused), "colours-dark");
    let dark = browser.evaluate(BACKGROUND);
    assert_ne!(light, dark);
    // Against the system as well.
    browser.show(1280, "screen", "dark");
    browser.press("ArrowRight");
    assert_eq!(browser.evaluate(BACKGROUND), dark);
    browser.press("ArrowRight");
    assert_eq!(browser.evaluate(BACKGROUND), light);

    browser.evaluate("document.querySelector('figcaption details summary').focus()");
    browser.press("Enter");
    let is_open = "document.activeElement.closest('details').open";
    assert_eq!(browser.evaluate(is_open), true);
    let column = browser.count(
        "[...document.querySelectorAll('#cases-table th button')].findIndex((b) => b.textContent === 'Gb/s')",
    );
    browser.evaluate(&format!(
        "document.querySelectorAll('#cases-table th button')[{column}].focus()"
    ));
    browser.press("Enter");
    let rates = browser.evaluate(&format!(
        "[...document.querySelectorAll('#cases-table tbody tr')].map((row) => parseFloat(row.cells[{column}].textContent)).filter(Number.isFinite)"
    ));
    let sorted: Vec<f64> = serde_json::from_value(rates).unwrap();
    let is_sorted = sorted.is_sorted() && sorted.first() != sorted.last();
    assert!(is_sorted, "{sorted:?}");
    let filter = "const input = document.querySelector('.choose input'); input.value = 'read per-qp'; \
        input.dispatchEvent(new Event('input')); \
        document.querySelectorAll('#cases-table tbody tr:not([hidden])').length";
    // 2 files × 3 sizes × 3 QPs × 2 workers.
    assert_eq!(browser.evaluate(filter), 36);
    assert_eq!(trouble(&browser), [""; 0]);
}

#[test]
fn paper_shows_what_is_folded() {
    let mut browser = Tab::open();
    // All but long tables of figures, whose cases are in the one of all cases.
    let shown = "[...document.querySelectorAll('table')].filter((t) => t.checkVisibility({contentVisibilityAuto: false}) \
        && t.getBoundingClientRect().height > 0).length";
    for script in [true, false] {
        let value = json!({"value": !script});
        browser.call("Emulation.setScriptExecutionDisabled", &value);
        browser.show(794, "screen", "light");
        browser.open(page());
        let on_screen = browser.count(shown);
        browser.show(794, "print", "light");
        let on_paper = browser.count(shown);
        let table_count = browser.count(
            "[...document.querySelectorAll('table')].filter((t) => !t.closest('.long')).length",
        );
        assert!(on_screen < table_count, "{on_screen} of {table_count}");
        assert_eq!(on_paper, table_count, "script {script}");
    }
}

/// Two hundred cases are a page that somebody reads.
#[test]
fn two_hundred_cases_are_twenty_figures_and_twenty_sheets() {
    let mut browser = Tab::open();
    browser.open(page());
    let figures = browser.count("document.querySelectorAll('figure').length");
    let most = report::show::plot::MOST_FIGURES as u64;
    assert!(figures <= most, "{figures}");
    let sheets = browser.sheets_of_paper();
    assert!((2..=20).contains(&sheets), "{sheets}");
}

#[test]
fn a_picture_answers_a_pointer() {
    let mut browser = at_a_desk();
    let point = "var svg = document.querySelector('[aria-labelledby=bandwidth-by-size] .whole svg'); \
        svg.scrollIntoView({block: 'center'}); \
        const plot = svg.querySelector('.rb-plot').getBoundingClientRect(); \
        const event = (name) => svg.dispatchEvent(new PointerEvent(name, \
            {clientX: plot.left + plot.width / 2, clientY: plot.top + plot.height / 2}));";
    let tip = "svg.parentElement.querySelector('.tip')";
    let value = browser.evaluate(&format!("{point} event('pointermove'); {tip}.textContent"));
    let shown = value.as_str().unwrap();
    assert!(shown.contains("KiB") && shown.contains(": "), "{shown}");
    let lines = browser.evaluate(&format!(
        "event('pointerleave'); {tip}.hidden && svg.querySelectorAll('.rb-key[role=button]').length"
    ));
    assert!(lines.as_u64().is_some_and(|lines| lines > 1), "{lines}");
    let off = browser.evaluate(
        "svg.querySelector('.rb-key[role=button]').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'})); \
         [...svg.querySelectorAll('.rb-series')].filter((it) => getComputedStyle(it).display === 'none').length",
    );
    assert!(off.as_u64().is_some_and(|off| off > 0), "{off}");
    let dim = browser.evaluate(
        "const words = document.querySelector('.choose input'); words.value = 'read'; \
         words.dispatchEvent(new Event('input')); \
         [document.querySelectorAll('.rb-series.dim').length, \
          document.querySelectorAll('#cases-table tbody tr:not([hidden])').length]",
    );
    assert!(dim[0].as_u64().is_some_and(|dim| dim > 0), "{dim}");
    // 2 files × 2 layouts × 3 sizes × 3 QPs × 2 workers.
    assert_eq!(dim[1], 72, "{dim}");
    assert_eq!(trouble(&browser), [""; 0]);
}

/// What is dragged over becomes the whole chart, with round values at its axes.
#[test]
fn a_part_that_is_dragged_over_fills_the_chart() {
    let mut browser = at_a_desk();
    let ticks = "(() => { const svg = document.querySelector('[aria-labelledby=bandwidth-by-size] .whole svg'); \
        svg.scrollIntoView({block: 'center'}); const plot = svg.querySelector('.rb-plot').getBoundingClientRect(); \
        const send = (name, x, y) => svg.dispatchEvent(new PointerEvent(name, {bubbles: true, pointerType: 'mouse', \
            clientX: plot.left + plot.width * x, clientY: plot.top + plot.height * y})); \
        send('pointerdown', 0.25, 0.5); send('pointermove', 0.75, 0.9); send('pointerup', 0.75, 0.9); \
        const texts = [...svg.querySelectorAll('.rb-own text')]; \
        const inside = texts.map((it) => it.getBoundingClientRect()).every((it) => it.right >= plot.left - 60 \
            && it.left <= plot.right + 1 && it.bottom >= plot.top - 9 && it.top <= plot.bottom + 30); \
        return [texts.map((it) => it.textContent).filter((it) => it.endsWith('B')).length > 1, inside]; })()";
    assert_eq!(browser.evaluate(ticks), json!([true, true]));
    assert_eq!(trouble(&browser), [""; 0]);
}

#[test]
fn a_picture_answers_keys() {
    let mut browser = at_a_desk();
    let is_hidden = "document.querySelector('.how').hidden";
    assert_eq!(browser.evaluate(is_hidden), false);
    let tip = "svg.parentElement.querySelector('.tip')";
    let focus = "var svg = document.querySelector('[aria-labelledby=bandwidth-by-size] .whole svg'); svg.focus(); \
        document.activeElement === svg";
    assert_eq!(browser.evaluate(focus), true);
    browser.press("ArrowRight");
    let shown = format!("{tip}.hidden ? '' : {tip}.textContent");
    let first = browser.evaluate(&shown);
    browser.press("ArrowRight");
    let second = browser.evaluate(&shown);
    let are_shown = first != "" && second != "" && first != second;
    assert!(are_shown, "{first}, {second}");
    // It tells what was measured: the values that the lines carry, with their unit and the line's colour.
    let rows_are_measured = format!(
        "const measured = [...svg.querySelectorAll('[data-points]')].flatMap((line) => \
         line.dataset.points.split(',').map((point) => Number(point.split(' ')[1]))); \
         [...{tip}.querySelectorAll('div')].map((row) => [row.textContent.split(': ').pop().split('\\u00a0'), row.querySelector('i')]) \
         .map(([[told, unit], swatch]) => unit === 'Gb/s' && getComputedStyle(swatch).backgroundColor.startsWith('rgb(') \
         && measured.some((value) => Math.abs(Number(told) - value) <= 0.006 * value))"
    );
    let answer = browser.evaluate(&rows_are_measured);
    let rows = answer.as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row == true), "{rows:?}");
    // Of a part the axes have ticks of their own; titles and legend stay as they were.
    let others = "[...svg.querySelectorAll('text')].filter((it) => !it.closest('.rb-own, .rb-ticks, .rb-series')).map((it) => \
        it.textContent + JSON.stringify(it.getBoundingClientRect())).join()";
    let before = browser.evaluate(others);
    (0..5).for_each(|_| browser.press("+"));
    let seen = "[svg.querySelectorAll('.enlarged').length, svg.querySelectorAll('.rb-own text').length > 2, \
        [...svg.querySelectorAll('.rb-ticks')].some((it) => getComputedStyle(it).display === 'none'), \
        svg.parentElement.querySelector('.tip').hidden]";
    assert_eq!(browser.evaluate(seen), json!([1, true, true, false]));
    assert_eq!(browser.evaluate(others), before);
    // The cross-hair stays in sight.
    (0..3).for_each(|_| browser.press("ArrowRight"));
    let in_sight = "(() => { const of = (it) => it.getBoundingClientRect(); const hair = of(svg.querySelector('.rb-hover circle')); \
        const all = of(svg); return hair.left >= all.left && hair.right <= all.right && hair.top >= all.top && hair.bottom <= all.bottom; })()";
    assert_eq!(browser.evaluate(in_sight), true);
    browser.press("Escape");
    assert_eq!(browser.evaluate(seen), json!([0, false, false, true]));
    assert_eq!(trouble(&browser), [""; 0]);
}

/// A renderer that knows no style sheet draws the same.
#[test]
fn a_picture_needs_no_style_sheet() {
    let mut browser = Tab::open();
    browser.show(800, "screen", "light");
    let paint = "[...document.querySelectorAll('rect, path, text')].map((e) => { \
        const s = getComputedStyle(e); return s.fill + s.stroke + s.fontFamily; }).join()";
    for name in ["latency-by-load.svg", "heat-map.svg", "nodes-map-1.svg"] {
        browser.open(&page().with_file_name(name));
        let with = browser.evaluate(paint);
        let without = browser.evaluate(&format!(
            "document.querySelector('style').remove(); \
             document.querySelectorAll('[class]').forEach((e) => e.removeAttribute('class')); {paint}"
        ));
        assert_eq!(with, without, "{name}");
    }
}

/// Without this, the tests above could pass because they look at nothing.
#[test]
fn the_checks_find_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.html");
    std::fs::write(
        &bad,
        r##"<!DOCTYPE html><html><body><h1>A</h1><h3>B</h3><img src="http://127.0.0.1:9/x.png">
        <figure aria-labelledby="f"><div class="picture"><svg width="200" height="100" id="f">
        <text x="10" y="50">first</text><text x="12" y="52">second</text>
        <text x="180" y="90">beyond the frame</text><text x="10" y="20" fill="rgb(200 200 200)">faint</text></svg></div></figure>
        <figure aria-labelledby="g"><div class="picture"><svg width="0" height="0" id="f"></svg></div></figure>
        <table><thead><tr><th>x</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table><div style="width:3000px">wide</div>
        <a href="#nowhere">link</a><script>console.log("said"); missing();</script></body></html>"##,
    )
    .unwrap();
    let mut browser = Tab::open();
    browser.show(1280, "screen", "light");
    browser.open(&bad);
    let trouble = trouble(&browser).join("\n");
    for part in ["missing is not defined", "said", "x.png"] {
        assert!(trouble.contains(part), "{part} in {trouble}");
    }
    let wrong = Value::Array(wrong(&mut browser)).to_string();
    for part in [
        "“first” and “second” overlap",
        "“beyond the frame” runs out",
        "“faint” has a contrast of",
        "is 0 × 0 px",
        "is empty",
        "id f twice",
        "skips a level",
        "no language",
        "has no caption",
        "without scope",
        "px wide in a window",
        "not one nav",
        "leads nowhere",
    ] {
        assert!(wrong.contains(part), "{part} in {wrong}");
    }
}
