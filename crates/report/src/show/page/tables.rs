//! Tables as HTML.

use maud::{Markup, html};

use crate::observe::format::{NOT_MEASURED, plural};
use crate::show::plot::figure::{Cell, Table};

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
mod tests {
    use super::*;
    use results::sample::has;

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
