//! Figures, comparisons and lists as sentences write them. It must not know matrices.

use settings::listed;

use crate::observe::Metric;
use crate::observe::format::{self, exact};

/// `9.410 Gb/s`, `p50 12.30 µs`.
pub(super) fn figure(quantity: Metric, value: f64) -> String {
    format!(
        "{}{} {}",
        name(quantity),
        number(quantity, value),
        unit(quantity)
    )
}

/// How a figure begins: latencies tell of which percentile they are.
fn name(quantity: Metric) -> String {
    match quantity.higher_is_better() {
        true => String::new(),
        false => format!("{} ", quantity.short_name()),
    }
}

fn unit(quantity: Metric) -> &'static str {
    match quantity.unit() {
        "ns" => "µs",
        unit => unit,
    }
}

/// `9.410`; latency in microseconds.
pub(crate) fn number(quantity: Metric, value: f64) -> String {
    exact(quantity.in_column(value))
}

/// `p50 12.30 of 10.10 µs`: figures beside the usual one; several are joined by `and`.
pub(super) fn beside(quantity: Metric, values: &[f64], usual: f64) -> String {
    let values: Vec<String> = values.iter().map(|it| number(quantity, *it)).collect();
    let (values, usual) = (values.join(" and "), number(quantity, usual));
    format!("{}{values} of {usual} {}", name(quantity), unit(quantity))
}

/// A share in percent: two digits that count.
pub(super) fn percent(share: f64) -> String {
    let percent = share.abs() * 100.0;
    let digits = usize::from(percent < 9.95);
    format!("{percent:.digits$} %")
}

/// How a figure compares with the usual one, by their ratio: `41 % less than`, `3.1 times as long as`.
pub(super) fn than(quantity: Metric, ratio: f64) -> String {
    match quantity.higher_is_better() {
        true => format!("{} less than", percent(1.0 - ratio)),
        false if ratio < 2.0 => format!("{} longer than", percent(ratio - 1.0)),
        false => format!("{ratio:.1} times as long as"),
    }
}

/// `a, b and 3 more`: so many at most by their names.
pub(super) fn some_of(names: &[String], most: usize) -> String {
    match names.len().saturating_sub(most) {
        0 => listed(names),
        _ => format::some_of(names, most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_told_with_their_units() {
        let told = beside(Metric::GbitPerS, &[5.55], 9.41);
        assert_eq!(told, "5.550 of 9.410 Gb/s");
        let told = beside(Metric::P99Ns, &[31_200.0, 12_000.0], 10_100.0);
        assert_eq!(told, "p99 31.200 and 12.000 of 10.100 µs");
        assert_eq!(than(Metric::GbitPerS, 0.59), "41 % less than");
        assert_eq!(than(Metric::GbitPerS, 0.934), "6.6 % less than");
        assert_eq!(than(Metric::P50Ns, 1.41), "41 % longer than");
        assert_eq!(than(Metric::P50Ns, 3.09), "3.1 times as long as");
    }

    #[test]
    fn lists_end_well() {
        let names = |count: usize| -> Vec<String> {
            (1..=count).map(|number| format!("n{number}")).collect()
        };
        assert_eq!(some_of(&names(1), 2), "n1");
        assert_eq!(some_of(&names(2), 2), "n1 and n2");
        assert_eq!(some_of(&names(5), 2), "n1, n2 and 3 more");
    }
}
