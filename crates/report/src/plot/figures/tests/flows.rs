//! Figures of cases with several flows.

use super::*;

#[test]
fn flows_of_a_case_have_lines_of_their_own_at_their_own_places() {
    let with = |id: &str, sizes: [u32; 2]| {
        let settings = sizes.map(|size| config(1, 0, 2, size, 1).settings);
        let [small, large] = settings.each_ref();
        let config = CaseConfig {
            settings: small.clone(),
            flows: vec![
                FlowConfig::of("small", CLIENT, SERVER, small, small),
                FlowConfig::of("large", SERVER, CLIENT, small, large),
            ],
        };
        CaseResult {
            id: id.to_owned(),
            perftest: None,
            ..case(config, &[plain(f64::from(sizes[0]))])
        }
    };
    let mut cases = vec![with("one", [64, 65_536]), with("two", [128, 1 << 20])];
    let qp = |index, bytes| QpResult {
        index,
        bytes,
        ..QpResult::default()
    };
    cases[0].runs[0].flows[1].qps = vec![qp(0, 10), qp(1, 30)];
    let results = [file(0, "host", "a", cases)];
    let figures = bandwidth_by_size::figures(&results);
    assert_eq!(figures.len(), 1);
    let places: Vec<String> = figures[0].tables[0]
        .rows
        .iter()
        .map(|row| match &row[..2] {
            [Cell::Text(line), Cell::Text(size)] => format!("{line}: {size}"),
            other => panic!("{other:?}"),
        })
        .collect();
    let wanted = [
        "flow large: 64\u{a0}KiB",
        "flow large: 1\u{a0}MiB",
        "flow small: 64\u{a0}B",
        "flow small: 128\u{a0}B",
    ];
    assert_eq!(places, wanted);
    assert!(
        figures[0].subtitle.ends_with("1 run a case"),
        "{}",
        figures[0].subtitle
    );
    let rows = |figure: &Figure| -> Vec<Cell> {
        let rows = figure.tables[0].rows.iter();
        rows.map(|row| row[0].clone()).collect()
    };
    let text = |text: &str| Cell::Text(text.to_owned());
    let over_time = rows(&timeline::figures(&results)[0]);
    assert_eq!(over_time.len(), 4);
    assert!(
        over_time.contains(&text("one, flow large")),
        "{over_time:?}"
    );
    let shares = rows(&shares::shares(&results).figures[0]);
    assert_eq!(shares, [text("one, flow large")]);
}

#[test]
fn qps_that_are_served_evenly_are_said() {
    let mut even = case(config(0, 0, 2, 64, 1), &[plain(1.0)]);
    even.runs[0].flows[0].qps = [10, 11]
        .into_iter()
        .enumerate()
        .map(|(index, bytes)| QpResult {
            index: index as u32,
            bytes,
            ..QpResult::default()
        })
        .collect();
    let shares = shares::shares(&[file(0, "host", "a", vec![even])]);
    assert!(shares.figures.is_empty());
    assert!(
        shares.sentences[0].ends_with("Jain’s index is 0.998 or more."),
        "{:?}",
        shares.sentences
    );
}
