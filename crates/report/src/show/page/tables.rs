//! Tables of the page: all flows of all cases in one, why runs do not count, and tables as HTML.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use maud::{Markup, html};
use results::{
    load::Loaded,
    model::{LoadVerdict, NodesComparison, PlaceComparison, saturating_sum},
};
use settings::{ROWS, Row, Settings, Takes};

use crate::observe::{
    Metric, Observed,
    format::{NOT_MEASURED, plural},
    standing::{LeftOut, Reason},
};
use crate::show::compare::{HEAD, place_cells};
use crate::show::plot::{
    figure::{Cell, Table},
    rows::joined,
};

/// All flows of all cases in one table: what was measured, what to know about it, and the settings in which they
/// differ.
pub(crate) struct Cases {
    pub(crate) table: Table,
    /// Rows without a run that counts.
    pub(super) uncounted: Vec<bool>,
    /// Columns of settings, which are not printed: names of cases contain most of them.
    pub(super) settings: Range<usize>,
}

fn setting_cell(row: &Row, config: &Settings) -> Cell {
    if !row.has_effect(config) {
        return Cell::Missing;
    }
    match (row.number(config), row.text(config)) {
        (Some(number), _) => Cell::Number(number, 0),
        (None, text) if text.is_empty() => Cell::Missing,
        (None, text) if row.takes == Takes::Switch => {
            Cell::Text(if text == "true" { "yes" } else { "no" }.to_owned())
        }
        (None, text) => Cell::Text(text),
    }
}

/// Every case of every file, in their order.
pub(crate) fn of_results(results: &[Loaded]) -> Cases {
    let flows: Vec<(usize, Observed<'_>)> = results
        .iter()
        .enumerate()
        .flat_map(|(file, loaded)| {
            Observed::of_file(&loaded.result).map(move |observed| (file + 1, observed))
        })
        .collect();
    let mut columns =
        Columns { flows: &flows, names: Vec::new(), rows: vec![Vec::new(); flows.len()] };
    columns.add("case", |_| true, |_, it| Cell::Text(name_of(it)));
    let mut files_of_names: HashMap<String, usize> = HashMap::new();
    let mut named = flows.iter().map(|(file, it)| (*file, it.flow.subject()));
    if named.any(|(file, name)| *files_of_names.entry(name).or_insert(file) != file) {
        columns.add("file", differs, |file, _| Cell::Number(file as f64, 0));
    }
    // Of closed loops the message rate says it.
    let has_loads = flows.iter().any(|(_, it)| it.median(Metric::OfferedPerS).is_some());
    for metric in Metric::ALL
        .iter()
        .filter(|metric| !metric.is_on_request() && (has_loads || **metric != Metric::AchievedPerS))
    {
        columns.add(
            metric.column().0,
            |cells: &[Cell]| cells.iter().any(|cell| *cell != Cell::Missing),
            |_, it| {
                let [median, ..] = Cell::of_spread(*metric, it.spread(*metric));
                median
            },
        );
    }
    let first = columns.add(
        "remarks",
        |cells: &[Cell]| cells.iter().any(|cell| *cell != Cell::Text(String::new())),
        |_, it| Cell::Text(remarks(it)),
    );
    for row in ROWS.iter().filter(|row| !row.title.is_empty()) {
        columns.add(row.title, differs, |_, it| setting_cell(row, &it.flow.settings));
    }
    columns.add("MTU", differs, |_, it| {
        let mtu = it.flow.config.and_then(|flow| flow.path_mtu);
        mtu.map_or(Cell::Missing, |mtu| Cell::Number(mtu.into(), 0))
    });
    columns.add("wire", differs, |_, it| {
        let wire = it.flow.config.and_then(|flow| flow.wire);
        wire.map_or(Cell::Missing, |wire| Cell::Text(wire.name().to_owned()))
    });
    let end = columns.add("device", differs, |_, it| {
        let device = it.flow.config.and_then(|flow| flow.from_device.clone());
        device.map_or(Cell::Missing, Cell::Text)
    });
    let Columns { names, rows, .. } = columns;
    Cases {
        uncounted: flows.iter().map(|(_, it)| is_uncounted(it)).collect(),
        settings: first..end,
        table: Table::new("Medians of the runs that count; - was not measured", names, rows),
    }
}

/// Each node, rail and path beside the base, the worst first.
pub(super) fn of_nodes(nodes: &NodesComparison) -> Table {
    let mut places: Vec<&PlaceComparison> = nodes.places.iter().collect();
    places.sort_by_key(|place| Reverse(place.verdict));
    let rows = places.iter().map(|place| {
        let facts = place.nodes.iter().filter_map(|node| nodes.changed.get(node)).flatten();
        let cells = place_cells(nodes.metric, place).into_iter();
        cells.chain([joined(facts.cloned())]).map(Cell::Text).collect()
    });
    let caption = format!("{}: flows of each node beside those of all others", nodes.title);
    let [_, heads @ ..] = HEAD;
    Table::new(caption, ["node"].into_iter().chain(heads).chain(["what else changed"]), rows)
}

/// The table as it grows, a column at a time.
struct Columns<'f, 'a> {
    flows: &'f [(usize, Observed<'a>)],
    names: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl<'a> Columns<'_, 'a> {
    /// Adds a column if it is worth showing; returns how many columns there are.
    fn add(
        &mut self,
        name: &str,
        is_shown: fn(&[Cell]) -> bool,
        cell: impl Fn(usize, &Observed<'a>) -> Cell,
    ) -> usize {
        let cells: Vec<Cell> = self.flows.iter().map(|(file, it)| cell(*file, it)).collect();
        if is_shown(&cells) {
            self.names.push(name.to_owned());
            self.rows.iter_mut().zip(cells).for_each(|(row, own)| row.push(own));
        }
        self.names.len()
    }
}

/// Leaves out what no case has, and what all cases share.
fn differs(cells: &[Cell]) -> bool {
    cells.windows(2).any(|pair| pair[0] != pair[1])
}

fn is_uncounted(observed: &Observed<'_>) -> bool {
    observed.counted().next().is_none()
}

/// The case and its flow, and why it has no figures.
fn name_of(observed: &Observed<'_>) -> String {
    let reason = left_out_remark(&observed.left_out());
    if is_uncounted(observed) && !reason.is_empty() {
        format!("{}: {reason}", observed.flow.subject())
    } else {
        observed.flow.subject()
    }
}

fn remarks(observed: &Observed<'_>) -> String {
    let all_moved = observed.runs.iter().filter_map(|it| it.moved);
    let counted: Vec<_> = observed.counted().filter_map(|it| it.moved).collect();
    let mut remarks = Vec::new();
    if !is_uncounted(observed) {
        remarks.push(left_out_remark(&observed.left_out()));
    }
    if observed.runs.is_empty() {
        remarks.push("not run".to_owned());
    }
    let counts = [
        (
            counted.iter().filter(|moved| moved.verdict() == Some(LoadVerdict::Overloaded)).count()
                as u64,
            "overloaded",
        ),
        (saturating_sum(all_moved.map(|moved| moved.totals.errors)), "errors"),
        (
            counted.iter().filter(|moved| moved.window.warmup_steady == Some(false)).count() as u64,
            "unsteady",
        ),
    ];
    let some = counts.into_iter().filter(|(count, _)| *count > 0);
    remarks.extend(some.map(|(count, what)| format!("{count} {what}")));
    joined(remarks)
}

/// `1 of 5 runs: CPU too busy`; empty where all count.
fn left_out_remark(left_out: &LeftOut) -> String {
    let mut reasons: Vec<&str> = left_out.by_reason().map(|(_, reason)| reason.short).collect();
    reasons.dedup();
    match (left_out.runs - left_out.count(), left_out.runs) {
        (counted, runs) if counted == runs => String::new(),
        (0, _) => reasons.join(", "),
        (counted, runs) => format!("{counted} of {runs} runs: {}", reasons.join(", ")),
    }
}

/// `The CPU was too busy (2 edge missed). Measure longer (-D).`; empty where all count.
pub(super) fn left_out_sentence(left_out: &LeftOut) -> String {
    let mut groups: Vec<(Reason, Vec<String>)> = Vec::new();
    for (count, reason) in left_out.by_reason() {
        let counted = format!("{count} {}", reason.name);
        let is_like = |known: &Reason| (known.cause, known.remedy) == (reason.cause, reason.remedy);
        match groups.iter_mut().find(|(known, _)| is_like(known)) {
            Some((_, counts)) => counts.push(counted),
            None => groups.push((reason, vec![counted])),
        }
    }
    groups
        .iter()
        .map(|(reason, counted)| {
            let (cause, remedy) = (reason.cause, reason.remedy);
            format!("{cause} ({}). {remedy}.", counted.join(", "))
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Rows of a table up to which it is printed.
const PRINTED_UP_TO: usize = 8;

/// The table, scrolling by itself where it is wide or long. The first column names the rows. `id` is its place on the page;
/// `faint` says which rows have no figure that counts, and may be shorter.
pub fn table(id: &str, table: &Table, faint: &[bool]) -> Markup {
    let caption_id = format!("{id}-caption");
    html! {
        div.scroll role="region" aria-labelledby=(caption_id) tabindex="0" {
            table.sortable #(id) {
                caption #(caption_id) { (table.caption) }
                thead { tr {
                    @for column in &table.columns {
                        th class=[class(column.numeric)] scope="col" { (column.name) }
                    }
                } }
                tbody {
                    @for (number, row) in table.rows.iter().enumerate() { tr class=[(faint.get(number) == Some(&true)).then_some("faint")] {
                        @for (index, cell) in row.iter().enumerate() {
                            @if index == 0 { th class=[class(is_numeric(cell))] scope="row" { (text(cell)) } }
                            @else { td class=[class(is_numeric(cell))] { (text(cell)) } }
                        }
                    } }
                }
            }
        }
    }
}

/// The table behind a line that opens it and begins with `name`; a long one is not printed.
pub fn folded(id: &str, name: &str, content: &Table) -> Markup {
    let rows = content.rows.len();
    html! {
        details.long[rows > PRINTED_UP_TO] {
            summary { (name) " (" (rows) " " (plural(rows, "row")) ")" }
            (table(id, content, &[]))
        }
    }
}

/// Figures stand at the right.
fn class(numeric: bool) -> Option<&'static str> {
    numeric.then_some("n")
}

fn is_numeric(cell: &Cell) -> bool {
    matches!(cell, Cell::Number(..) | Cell::Missing)
}

fn text(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Number(value, digits) if value.is_finite() => format!("{value:.digits$}"),
        Cell::Number(..) | Cell::Missing => NOT_MEASURED.to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use results::{
        model::{CaseResult, DoubtKind},
        sample::{self, has},
    };

    use super::*;
    use crate::observe::standing::Standing;

    pub(crate) fn case(op: &str, qps: u32, gbit_per_s: f64, complete: bool) -> CaseResult {
        let settings = Settings { qps, ..Settings::from([("op", op)]) };
        let mut case = sample::moved(settings, Some(gbit_per_s));
        case.id = format!("{op}-{qps}");
        case.runs[0].complete = complete;
        case
    }

    fn value(table: &Table, row: usize, name: &str) -> Cell {
        let mut names = table.columns.iter().map(|column| &*column.name);
        table.rows[row][names.position(|it| it == name).unwrap()].clone()
    }

    #[test]
    fn what_was_measured_comes_first_and_settings_have_a_column_where_they_differ() {
        let mut cases = vec![case("send", 1, 1.0, true), case("send", 4, 2.0, false)];
        cases[1].config.tx_depth = 64;
        let cases = of_results(&[sample::file(cases)]);
        let names: Vec<&str> = cases.table.columns.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["case", "Gb/s", "QPs", "send depth"]);
        assert_eq!((cases.settings, cases.uncounted), (2..4, vec![false, true]));
        let table = cases.table;
        assert_eq!(value(&table, 0, "Gb/s"), Cell::Number(1.0, 3));
        assert_eq!(value(&table, 1, "Gb/s"), Cell::Missing);
        let name = Cell::Text("send-4: the run failed".to_owned());
        assert_eq!(value(&table, 1, "case"), name);
        let mut rows = table.rows.iter();
        assert!(rows.all(|row| row.len() == table.columns.len()));
    }

    #[test]
    fn each_flow_has_a_row() {
        let table = of_results(&[sample::loaded(sample::mixed())]).table;
        let flows = [
            ("mixed, flow small", "write", 3.0),
            ("mixed, flow large", "read", 2.0),
            ("mixed, flow back", "send", 1.0),
        ];
        for (row, (name, op, qps)) in flows.into_iter().enumerate() {
            let cells = ["case", "operation", "QPs"].map(|it| value(&table, row, it));
            assert_eq!(cells, [Cell::text(name), Cell::text(op), Cell::Number(qps, 0)]);
        }
    }

    #[test]
    fn a_row_has_three_words_and_the_page_a_remedy() {
        let mut standings = vec![
            Standing::Counts,
            Standing::Doubtful(DoubtKind::EdgeMissed),
            Standing::Doubtful(DoubtKind::WindowLength),
        ];
        let left_out = LeftOut::new(&standings);
        assert_eq!(left_out_remark(&left_out), "1 of 3 runs: CPU too busy");
        let expected = "The CPU was too busy (1 window length, 1 edge missed). Measure longer (-D), or use fewer workers than cores.";
        assert_eq!(left_out_sentence(&left_out), expected);
        standings.remove(0);
        assert_eq!(left_out_remark(&LeftOut::new(&standings)), "CPU too busy");
        assert_eq!(left_out_remark(&LeftOut::new([Standing::Counts])), "");
        assert_eq!(left_out_sentence(&LeftOut::new([Standing::Counts])), "");
    }

    #[test]
    fn cells_are_escaped_rounded_and_missing_is_no_zero() {
        let rows = [
            vec![Cell::text("a & b"), Cell::Number(1.005_1, 2)],
            vec![Cell::text("c"), Cell::Missing],
            vec![Cell::text("d"), Cell::Number(f64::NAN, 2)],
        ];
        let content = Table::new("By <case>", ["case", "Gb/s"], rows);
        let html = table("t", &content, &[false, true]).into_string();
        let row = r#"<th scope="row">a &amp; b</th><td class="n">1.01</td>"#;
        has(&html, ["By &lt;case&gt;", row]);
        assert_eq!(html.matches(r#"<td class="n">-</td>"#).count(), 2, "{html}");
        assert_eq!(html.matches(r#"<tr class="faint">"#).count(), 1);
        assert_eq!(html.matches(r#"scope="col""#).count(), 2);
    }
}
