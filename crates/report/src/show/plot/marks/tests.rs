//! Charts of every kind of figures, long names and few pixels: text stays in the frame and apart.

use proptest::prelude::*;

use super::*;
use crate::show::plot::draw::{
    GROUND, INK, Scale, SeriesStyle, Sheet, Tick, Unit, Width, tests::faults,
};

fn axis(kind: u8, values: &[f64], title: &str) -> Axis {
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (scale, unit) = match kind {
        0 => (Scale::linear(min, max), Unit::Plain),
        1 => (Scale::log2(min, max), Unit::Bytes),
        2 => (Scale::log10(min, max), Unit::Nanoseconds),
        3 => (Scale::log10(1.0, max), Unit::Tail),
        4 => (Scale::from_zero(max), Unit::Nanoseconds),
        _ => (Scale::linear(0.0, 1.0), Unit::Plain),
    };
    Axis::new(title, scale.widened(0.02), unit)
}

fn drawn(
    series: Vec<Series>,
    (x, y): (Axis, Axis),
    texts: &[String],
    heights: &[f64],
    width: Width,
) -> String {
    let text = |index: usize| texts.get(index).cloned().unwrap_or_default();
    let mut sheet = Sheet::new(&text(0), &text(1), width);
    let rule = Mark::Rule(Rule {
        name: text(3),
        style: SeriesStyle::of_rule(0),
        at: 5.0,
        label: text(3).chars().take(20).collect(),
        ..Rule::default()
    });
    let lines = series.into_iter().map(Mark::Line);
    let chart = Chart::new(x, y, std::iter::once(rule).chain(lines).collect());
    sheet.legend(&chart.keys());
    for &height in heights {
        let area = sheet.take(height);
        chart.draw(&mut sheet.canvas, area);
    }
    sheet.note(&text(4));
    sheet.finish("figure", &text(0), &text(2))
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => 0.0..1000.0f64,
        1 => Just(0.0),
        2 => (-30..30i32).prop_map(|exponent| 10f64.powi(exponent)),
        1 => Just(-4.5),
        1 => Just(f64::NAN),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_label_leaves_the_frame_or_lies_over_another(
        values in proptest::collection::vec((value(), proptest::option::of(value())), 0..30),
        (x_kind, y_kind) in (0..6u8, 0..6u8),
        texts in proptest::collection::vec("[ -~µ≤世\u{7}]{0,300}", 5),
        names in proptest::collection::vec("[ -~]{0,150}", 0..9),
        heights in proptest::collection::vec(110.0..400.0f64, 1..3),
        is_narrow in any::<bool>(),
    ) {
        let width = Width::ALL[usize::from(is_narrow)];
        let point = |&(x, y): &(f64, Option<f64>)| Point {
            x,
            y,
            interval: y.map(|y| (y * 0.9, y * 1.5)),
            may_be_beyond: x > 500.0,
        };
        let points: Vec<Point> = values.iter().map(point).collect();
        let of = |(index, name): (usize, &String)| Series {
            name: name.clone(),
            style: style(index),
            points: points.iter().skip(index).copied().collect(),
            hollow: points.iter().filter_map(|it| Some((it.x, it.y? * 9.0))).collect(),
            markers: index % 2 == 0,
            labels: if index == 2 { names.clone() } else { Vec::new() },
            area: (index == 3).then(SeriesStyle::default),
        };
        let series = names.iter().enumerate().map(of).collect();
        let xs: Vec<f64> = values.iter().map(|value| value.0).collect();
        let ys: Vec<f64> = values.iter().filter_map(|value| value.1).collect();
        let axes = (axis(x_kind, &xs, &texts[3]), axis(y_kind, &ys, &texts[4]));
        let svg = drawn(series, axes, &texts, &heights, width);
        prop_assert_eq!(faults(&svg), Vec::<String>::new());
    }

    #[test]
    fn named_places_lose_their_names_rather_than_overlap(
        places in proptest::collection::vec((0.0..1.0f64, "[a-z0-9-]{1,40}"), 1..60),
    ) {
        let mut ticks: Vec<_> = places.into_iter().map(|(value, label)| Tick { value, label }).collect();
        ticks.sort_by(|a, b| a.value.total_cmp(&b.value));
        let x = Axis::named("revision", Scale::linear(0.0, 1.0), ticks);
        let svg = drawn(Vec::new(), (x, axis(0, &[1.0, 2.0], "y")), &[], &[200.0], Width::Column);
        prop_assert_eq!(faults(&svg), Vec::<String>::new());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn maps_keep_their_words_in_their_cells_and_frame(
        rows in proptest::collection::vec("[ -~]{0,60}", 1..40),
        columns in proptest::collection::vec("[a-z0-9]{0,30}", 1..40),
        parts in proptest::collection::vec("[a-z]{0,30}", 0..4),
        row_px in 4.0..30.0f64,
        is_narrow in any::<bool>(),
    ) {
        let marked: std::collections::BTreeSet<usize> = (0..rows.len()).step_by(3).collect();
        // A part has a row and a column at least.
        let parts = parts.into_iter().take(rows.len().min(columns.len()));
        let parts = (0..).zip(parts).map(|(at, name)| (f64::from(at) - 0.5, f64::from(at) + 0.5, name));
        let parts: Vec<_> = parts.collect();
        let tiles = (0..rows.len()).flat_map(|row| (0..columns.len()).map(move |column| {
            let (x, fill) = (column as f64, [Fill::Hatched, Fill::Plain(INK)][column % 2]);
            Tile {
                within: Some((vec!["12.3".to_owned(), "12".to_owned()], GROUND)),
                ..Tile::new(-(row as f64), (x - 0.5, x + 0.5), fill, "hint")
            }
        }));
        let flipped = parts.iter().map(|(from, to, name)| (-from, -to, name.clone())).collect();
        let marks = vec![Mark::Tiles(tiles.collect())];
        let y = Axis { marked: marked.clone(), parts: flipped, ..Axis::rows("from", rows) };
        let x = Axis { marked, parts, ..Axis::columns("to", columns) };
        let chart = Chart::of_cells((0.0, 64.0), row_px, (x, y), marks);
        let mut sheet = Sheet::new("", "", Width::ALL[usize::from(is_narrow)]);
        draw_charts(&mut sheet, &[chart]);
        prop_assert_eq!(faults(&sheet.finish("", "", "")), Vec::<String>::new());
    }
}

#[test]
fn a_missing_figure_is_a_gap() {
    let values = [Some(1.0), Some(2.0), None, Some(4.0), Some(5.0)];
    let points = (1..)
        .zip(values)
        .map(|(index, y)| Point { x: f64::from(index), y, ..Point::default() })
        .collect();
    let series = Series {
        name: "one".to_owned(),
        points,
        hollow: vec![(3.0, 3.0)],
        markers: true,
        ..Series::default()
    };
    let x = Axis::new("x", Scale::linear(0.0, 6.0), Unit::Plain);
    let y = Axis::new("y", Scale::from_zero(5.0), Unit::Plain);
    let svg = drawn(vec![series], (x, y), &[], &[200.0], Width::Column);
    let is_line = |line: &&str| line.contains("s-1") && line.contains("stroke-width=\"2\"");
    // Two stretches and the legend's sample.
    assert_eq!(svg.lines().filter(is_line).count(), 3, "{svg}");
    assert_eq!(svg.matches("<title>one: ").count(), 4 + 1);
    assert_eq!(svg.matches("3.00, does not count").count(), 1);
}

#[test]
fn the_check_finds_what_is_wrong() {
    let mut sheet = Sheet::new("", "", Width::Page);
    sheet.canvas.text(100.0, 100.0, "here", Style::default());
    sheet.canvas.text(110.0, 104.0, "there", Style::default());
    sheet.canvas.text(710.0, 30.0, "outside", Style::default());
    sheet.take(200.0);
    assert_eq!(faults(&sheet.finish("", "", "")).len(), 2);
}

#[test]
fn charts_stand_beside_each_other_where_there_is_room() {
    let rows = |width, count: usize, least_px| {
        let mut sheet = Sheet::new("", "", width);
        let axis = |title| Axis::new(title, Scale::linear(0.0, 1.0), Unit::Plain);
        let chart = Chart {
            width_px: (least_px, f64::INFINITY),
            ..Chart::new(axis("below"), axis("left"), Vec::new())
        };
        draw_charts(&mut sheet, &vec![chart; count]);
        let svg = sheet.finish("", "", "");
        // Titles are at the left, and where nothing is below.
        [">left<", ">below<"].map(|title| svg.matches(title).count())
    };
    assert_eq!(rows(Width::Page, 4, 0.0), [2, 2]);
    assert_eq!(rows(Width::Page, 5, 0.0), [2, 3]);
    assert_eq!(rows(Width::Page, 9, 0.0), [3, 3]);
    assert_eq!(rows(Width::Column, 4, 0.0), [4, 1]);
    assert_eq!(rows(Width::Column, 4, 100.0), [2, 2]);
    assert_eq!(rows(Width::Page, 5, 300.0), [3, 2]);
    assert_eq!(rows(Width::Page, 2, f64::INFINITY), [2, 1]);
}
