//! Figures as short text, the same on axes, in words and in tables.

use crate::observe::format::{human_size, time_text};

/// `value` with `digits` behind the point and blanks between thousands; powers of ten where it is very large.
pub fn fixed(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value.abs() >= 1e12 {
        return scientific(value, 2);
    }
    let text = format!("{:.digits$}", value.abs());
    let (whole, part) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    if value < 0.0 && text.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) {
        out.push('−');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) && whole.len() > 4 {
            out.push('\u{a0}');
        }
        out.push(digit);
    }
    out + part
}

fn scientific(value: f64, digits: usize) -> String {
    format!("{value:.digits$e}").replace('e', "×10^").replace('-', "−")
}

/// `value` to three digits that count.
pub fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return fixed(value, 0);
    }
    let magnitude = value.abs().log10().floor();
    if magnitude < -4.0 {
        return scientific(value, 2);
    }
    fixed(value, (2.0 - magnitude).clamp(0.0, 6.0) as usize)
}

/// A number of bytes in the largest power of 1024 of which it is a multiple: `64 B`, `1 KiB`, `1536 B`.
pub fn bytes(size: u64) -> String {
    human_size(size).replace(' ', "\u{a0}")
}

/// A unit of time: its name and its length in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeUnit {
    /// `ns`, `µs`, `ms` or `s`.
    pub name: &'static str,
    pub ns: f64,
}

/// The unit in which `ns` nanoseconds are a figure of at least 1.
pub fn time_unit(ns: f64) -> TimeUnit {
    let units = [("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)];
    let (name, ns) =
        units.into_iter().find(|(_, unit)| ns.abs() >= unit * (1.0 - 1e-9)).unwrap_or(("ns", 1.0));
    TimeUnit { name, ns }
}

/// A time in its own unit: `1.23 µs`.
pub fn time(ns: f64) -> String {
    time_text(ns).replace(' ', "\u{a0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        let figures = [0.0, 0.00329, 1.0, 12.345, 123.4, 1234.4, 54321.0, 1.0e-7, -2.5, 1e300];
        let told = "0; 0.00329; 1.00; 12.3; 123; 1234; 54 321; 1.00×10^−7; −2.50; 1.00×10^300";
        assert_eq!(figures.map(short).join("; ").replace('\u{a0}', " "), told);
        assert_eq!(fixed(f64::NAN, 1), "–");
        assert_eq!(fixed(-0.001, 1), "0.0");
    }

    #[test]
    fn times_have_their_unit() {
        let times = [0.0, 12.0, 1000.0, 1_234_567.0, 2e9].map(time).join("; ");
        let told = "0 ns; 12 ns; 1.00 µs; 1.23 ms; 2.00 s";
        assert_eq!(times.replace('\u{a0}', " "), told);
    }
}
