//! How wide text is at most, whichever common sans-serif font it is set in, and how it is cut into lines; and
//! figures as short text, the same on axes, in words and in tables.

use crate::observe::format::{human_size, time_text};

/// Size of small text: ticks, notes, legends.
pub const SMALL_PX: f64 = 12.0;
pub const SUBTITLE_PX: f64 = 13.0;
pub const TITLE_PX: f64 = 18.0;
/// Distance of two lines' feet, in sizes of the text.
pub const LINE_HEIGHT: f64 = 1.35;
/// Highest a letter rises above its foot, in sizes of the text.
pub const ASCENT: f64 = 0.93;
/// Lowest a letter hangs below its foot, in sizes of the text.
pub const DESCENT: f64 = 0.24;

/// The advance of ASCII 32 to 126 in thousandths of the size: the larger one of DejaVu Sans and of
/// Liberation Sans, which has the widths of Arial and Helvetica.
const REGULAR: [u16; 95] = [
    318, 401, 460, 838, 637, 951, 780, 275, 391, 391, 500, 838, 318, 361, 318, 337, 637, 637, 637,
    637, 637, 637, 637, 637, 637, 637, 337, 337, 838, 838, 838, 557, 1016, 685, 687, 723, 771, 667,
    611, 778, 752, 295, 500, 667, 558, 863, 749, 788, 667, 788, 723, 667, 611, 732, 685, 989, 686,
    667, 686, 391, 337, 391, 838, 557, 500, 613, 635, 550, 635, 616, 353, 635, 634, 278, 278, 580,
    278, 975, 634, 612, 635, 635, 412, 521, 393, 634, 592, 818, 592, 592, 525, 637, 337, 637, 838,
];
/// The same of their bold faces.
const BOLD: [u16; 95] = [
    349, 457, 521, 838, 696, 1002, 873, 307, 458, 458, 523, 838, 380, 416, 380, 366, 696, 696, 696,
    696, 696, 696, 696, 696, 696, 696, 400, 400, 838, 838, 838, 611, 1000, 774, 763, 734, 831, 684,
    684, 821, 837, 373, 557, 775, 638, 996, 837, 851, 733, 851, 771, 721, 683, 813, 774, 1104, 771,
    725, 726, 458, 366, 458, 838, 557, 500, 675, 716, 593, 716, 679, 436, 716, 712, 343, 343, 666,
    343, 1042, 712, 688, 716, 716, 494, 596, 479, 712, 652, 924, 646, 652, 583, 712, 366, 712, 838,
];

fn advance(letter: char, bold: bool) -> f64 {
    let table = if bold { &BOLD } else { &REGULAR };
    let ascii = u32::from(letter).checked_sub(32);
    if let Some(&width) = ascii.and_then(|index| table.get(index as usize)) {
        return f64::from(width) / 1000.0;
    }
    match letter {
        '\u{a0}' => advance(' ', bold),
        '\u{b7}' => 0.38,
        '\u{b5}' | '\u{3bc}' | '\u{2013}' => 0.74,
        '\u{d7}' | '\u{2212}' | '\u{2264}' | '\u{2265}' | '\u{b1}' | '\u{f7}' => 0.84,
        '\u{2014}' | '\u{2026}' | '\u{2192}' => 1.0,
        // Ideographs are a size wide; nothing in Latin, Greek or Cyrillic is wider than this.
        _ => 1.56,
    }
}

/// The most that `text` is wide, in pixels, at a size of `size_px`.
pub fn width_px(text: &str, size_px: f64, bold: bool) -> f64 {
    text.chars().map(|letter| advance(letter, bold)).sum::<f64>() * size_px
}

/// `text` with what XML cannot hold replaced, and line ends and tabs as blanks.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            '\n' | '\r' | '\t' => ' ',
            '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
            letter if letter.is_control() => '\u{fffd}',
            letter => letter,
        })
        .collect()
}

/// `text`, or as much of its beginning as fits with `…` behind it.
pub fn shortened(text: &str, size_px: f64, bold: bool, width: f64) -> String {
    if width_px(text, size_px, bold) <= width {
        return text.to_owned();
    }
    let room = width - width_px("…", size_px, bold);
    let mut used = 0.0;
    let short: String = text
        .chars()
        .take_while(|letter| {
            used += advance(*letter, bold) * size_px;
            used <= room
        })
        .collect();
    format!("{}…", short.trim_end())
}

/// `text` in lines of at most `width` pixels, cut at blanks (not at those that do not break), and within
/// words that are longer.
pub fn wrapped(text: &str, size_px: f64, bold: bool, width: f64) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_ascii_whitespace() {
        let longer = format!("{line} {word}").trim_start_matches(' ').to_owned();
        if width_px(&longer, size_px, bold) <= width {
            line = longer;
            continue;
        }
        lines.push(std::mem::take(&mut line));
        for letter in word.chars() {
            if !line.is_empty() && width_px(&format!("{line}{letter}"), size_px, bold) > width {
                lines.push(std::mem::take(&mut line));
            }
            line.push(letter);
        }
    }
    lines.push(line);
    lines.retain(|part| !part.is_empty());
    lines
}

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
    digits(value, 3)
}

/// The same, then shorter ones for places with less room.
pub fn shorter(value: f64) -> Vec<String> {
    let fewer = [3, 2, 1].map(|count| digits(value, count));
    fewer.into_iter().chain([format!("{value:.0e}")]).collect()
}

fn digits(value: f64, count: u8) -> String {
    if value == 0.0 || !value.is_finite() {
        return fixed(value, 0);
    }
    let (behind, magnitude) = (f64::from(count) - 1.0, value.abs().log10().floor());
    if magnitude < -4.0 {
        return scientific(value, usize::from(count) - 1);
    }
    fixed(value, (behind - magnitude).clamp(0.0, 6.0) as usize)
}

/// A number of bytes in the largest power of 1024 of which it is a multiple: `64 B`, `1 KiB`, `1536 B`.
pub fn bytes(size: u64) -> String {
    human_size(size).replace(' ', "\u{a0}")
}

/// The unit in which `ns` nanoseconds are a figure of at least 1, and its nanoseconds.
pub fn time_unit(ns: f64) -> (&'static str, f64) {
    let units = [("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)];
    units.into_iter().find(|(_, unit)| ns.abs() >= unit * (1.0 - 1e-9)).unwrap_or(("ns", 1.0))
}

/// Units of rates, the usual one first, and their sizes in it.
const RATES: [&[(&str, f64)]; 2] = [
    &[("Gb/s", 1.0), ("Mb/s", 1e-3), ("kb/s", 1e-6), ("b/s", 1e-9)],
    &[("Mmsg/s", 1.0), ("kmsg/s", 1e-3), ("msg/s", 1e-6)],
];

/// The unit in which a rate is a figure of at least 0.1, and its size in the usual one.
pub fn rate_unit(usual: &'static str, most: f64) -> (&'static str, f64) {
    let units = RATES.into_iter().find(|units| units[0].0 == usual).unwrap_or_default();
    let found = units.iter().find(|(_, size)| most.abs() >= size * 0.1);
    found.or(units.last()).copied().unwrap_or((usual, 1.0))
}

/// A time in its own unit: `1.23 µs`.
pub fn time(ns: f64) -> String {
    time_text(ns).replace(' ', "\u{a0}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn widths_are_the_fonts() {
        // DejaVu Sans: a digit is 0.6362 of the size, "W" 0.9888; Liberation Sans: "m" 0.833 against 0.9741.
        assert!((width_px("0123", 10.0, false) - 25.48).abs() < 0.01);
        assert!((width_px("Wm", 100.0, false) - 196.4).abs() < 0.01);
        assert!(width_px("Wm", 100.0, true) > width_px("Wm", 100.0, false));
        assert_eq!(width_px("", 12.0, false), 0.0);
    }

    #[test]
    fn what_xml_cannot_hold_is_replaced() {
        let text = printable("a\u{0}b\nc\u{1b}\u{ffff}");
        assert_eq!(text, "a\u{fffd}b c\u{fffd}\u{fffd}");
    }

    #[test]
    fn words_stay_whole_where_they_fit() {
        let width = width_px("two words", 12.0, false);
        let lines = wrapped("two words more", 12.0, false, width);
        assert_eq!(lines, ["two words", "more"]);
        assert!(wrapped("  ", 12.0, false, width).is_empty());
    }

    proptest! {
        #[test]
        fn lines_fit_and_lose_nothing(text in ".{0,80}", width in 30.0..400.0f64) {
            let lines = wrapped(&text, 12.0, false, width);
            for line in &lines {
                prop_assert!(width_px(line, 12.0, false) <= width, "{line}");
            }
            let dense = |words: &str| words.chars().filter(|letter| !letter.is_whitespace()).collect::<String>();
            prop_assert_eq!(dense(&lines.concat()), dense(&text));
        }

        #[test]
        fn shortened_fits(text in ".{0,60}", width in 20.0..300.0f64) {
            prop_assert!(width_px(&shortened(&text, 12.0, true, width), 12.0, true) <= width);
        }
    }

    #[test]
    fn figures_are_short() {
        let figures = [0.0, 0.00329, 1.0, 12.345, 123.4, 1234.4, 54321.0, 1.0e-7, -2.5, 1e300];
        let expected = "0; 0.00329; 1.00; 12.3; 123; 1234; 54 321; 1.00×10^−7; −2.50; 1.00×10^300";
        assert_eq!(figures.map(short).join("; ").replace('\u{a0}', " "), expected);
        assert_eq!(shorter(0.001_234), ["0.00123", "0.0012", "0.001", "1e-3"]);
        assert_eq!(fixed(f64::NAN, 1), "–");
        assert_eq!(fixed(-0.001, 1), "0.0");
    }

    #[test]
    fn times_have_their_unit() {
        let times = [0.0, 12.0, 1000.0, 1_234_567.0, 2e9].map(time).join("; ");
        let expected = "0 ns; 12 ns; 1.00 µs; 1.23 ms; 2.00 s";
        assert_eq!(times.replace('\u{a0}', " "), expected);
    }
}
