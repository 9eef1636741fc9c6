//! Figures as short text, the same on axes, in words and in tables. It must not know what they are of.

use crate::observe::format::human_size;

/// `value` with `digits` behind the point and blanks between thousands; powers of ten where it is very
/// large or very small.
pub fn fixed(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value.abs() >= 1e12 {
        return scientific(value, 2);
    }
    let text = format!("{:.digits$}", value.abs());
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
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
    if !part.is_empty() {
        out.push('.');
        out.push_str(part);
    }
    out
}

fn scientific(value: f64, digits: usize) -> String {
    format!("{value:.digits$e}")
        .replace('e', "×10^")
        .replace('-', "−")
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

/// What a time is told in: its name and its length in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeUnit {
    /// `ns`, `µs`, `ms` or `s`.
    pub name: &'static str,
    /// Nanoseconds in it.
    pub ns: f64,
}

/// The unit in which `ns` nanoseconds are a figure of at least 1.
pub fn time_unit(ns: f64) -> TimeUnit {
    const UNITS: [TimeUnit; 4] = [
        TimeUnit { name: "s", ns: 1e9 },
        TimeUnit {
            name: "ms",
            ns: 1e6,
        },
        TimeUnit {
            name: "µs",
            ns: 1e3,
        },
        TimeUnit {
            name: "ns",
            ns: 1.0,
        },
    ];
    let fits = |unit: &TimeUnit| ns.abs() >= unit.ns * (1.0 - 1e-9);
    UNITS.into_iter().find(fits).unwrap_or(UNITS[3])
}

/// A time in its own unit: `1.23 µs`.
pub fn time(ns: f64) -> String {
    let unit = time_unit(ns);
    format!("{}\u{a0}{}", short(ns / unit.ns), unit.name)
}

/// A part of a whole with as many nines as it has: `99.9 %` for 0.999.
pub fn percentile(quantile: f64) -> String {
    let mut digits = 0;
    let percent = quantile * 100.0;
    while digits < 8
        && (percent - format!("{percent:.digits$}").parse().unwrap_or(percent)).abs() > 1e-9
    {
        digits += 1;
    }
    format!("{percent:.digits$}\u{a0}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        let figures = [
            0.0, 0.00329, 1.0, 12.345, 123.4, 1234.4, 54321.0, 1.0e-7, -2.5, 1e300,
        ];
        let told = "0; 0.00329; 1.00; 12.3; 123; 1234; 54 321; 1.00×10^−7; −2.50; 1.00×10^300";
        assert_eq!(figures.map(short).join("; ").replace('\u{a0}', " "), told);
        assert_eq!(fixed(f64::NAN, 1), "–");
        assert_eq!(fixed(-0.001, 1), "0.0");
    }

    #[test]
    fn times_have_their_unit_and_percentiles_their_nines() {
        let times = [0.0, 12.0, 1000.0, 1_234_567.0, 2e9].map(time).join("; ");
        let percentiles = [0.5, 0.9, 0.99, 0.9999].map(percentile).join("; ");
        let told = [times, percentiles].map(|text| text.replace('\u{a0}', " "));
        let times = "0 ns; 12.0 ns; 1.00 µs; 1.23 ms; 2.00 s";
        assert_eq!(told, [times, "50 %; 90 %; 99 %; 99.99 %"]);
    }
}
