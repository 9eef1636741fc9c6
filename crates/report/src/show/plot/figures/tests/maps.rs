//! Maps of what more QPs bring.

use crate::show::plot::figures::tests::*;

/// The map of these cases, and its cells as their words say them.
fn map_of(cases: &[CaseResult]) -> Option<(Figure, Vec<String>)> {
    let figure = fit(specs::MAP_OF_QPS.figures(&one_file(cases.to_vec()))).pop()?;
    let document = roxmltree::Document::parse(&figure.svg).unwrap();
    let titles = document.descendants().filter(|it| it.has_tag_name("title")).skip(1);
    let cells = titles.filter_map(|it| it.text()).map(|it| it.replace('\u{a0}', " ")).collect();
    Some((figure, cells))
}

#[test]
fn the_best_case_of_a_cell_is_kept_and_what_failed_is_a_gap() {
    let failed = Made { complete: false, ..plain(1.0) };
    let cases = [
        at("qps=1 size=64", 10.0),
        at("qps=1 size=64 workers=2", 20.0),
        at("qps=4 size=64 workers=2", 40.0),
        at("qps=4 size=64", 30.0),
        at("qps=4 size=4096", 80.0),
        case("qps=16 size=4096", &[failed]),
    ];
    let (figure, cells) = map_of(&cases).unwrap();
    let expected = [
        "16 QPs, 64 B: not measured",
        "16 QPs, 4 KiB: not measured",
        "4 QPs, 64 B: 100.0 %, 40.000 Gb/s",
        "4 QPs, 4 KiB: 100.0 %, 80.000 Gb/s",
        "1 QPs, 64 B: 50.0 %, 20.000 Gb/s",
        "1 QPs, 4 KiB: not measured",
    ];
    assert_eq!(cells, expected);
    let last = figure.tables[0].columns.len() - 1;
    assert_eq!(texts(&figure, 0, last), ["25.0", "50.0", "75.0", "100.0", "100.0", "–"]);
}

#[test]
fn the_legend_has_the_colours_of_the_cells() {
    let (figure, cells) = map_of(&[at("qps=1", 10.0), at("qps=4", 40.0)]).unwrap();
    assert_eq!((cells.len(), figure.svg.matches("class=\"rb-key\"").count()), (2, 2));
    has(&figure.svg, [">22 to 33 %<", ">89 to 100 %<"]);
}

#[test]
fn cases_that_differ_in_more_than_qps_are_in_no_row() {
    let others = [at("qps=2 size=64", 20.0), at("qps=4 size=64", 40.0)];
    let shallow = at("qps=1 size=64 tx-depth=1", 1.0);
    let (_, cells) = map_of(&[&[shallow][..], &others].concat()).unwrap();
    assert_eq!(cells, ["4 QPs, 64 B: 100.0 %, 40.000 Gb/s", "2 QPs, 64 B: 50.0 %, 20.000 Gb/s"]);
}

#[test]
fn a_mix_of_sizes_is_in_no_cell_and_sizes_alone_are_no_map() {
    let one = at("qps=1 size=64", 10.0);
    for other in ["qps=4 size-mix=64:9,64K:1", "qps=1 size=4096"] {
        assert!(map_of(&[one.clone(), at(other, 20.0)]).is_none(), "{other}");
    }
}
