//! How text stands on a terminal: its width and lines, indentation, and colours.
//! Chinese characters take two columns, and lines may break between them. The text must be complete without colours.

use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::text::Language;
use node::lesson::{Call, Part};

/// Columns of a line, unless the terminal has fewer.
pub const PAGE: usize = 92;

/// Characters that must not start a line.
const CLOSING: &str = "，。；：、）！？」』”》…";
/// Characters that must not end a line.
const OPENING: &str = "（「『“《";

/// Columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Pads a text with spaces to this many columns.
pub fn padded(text: &str, columns: usize) -> String {
    let spaces = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(spaces))
}

/// A duration for people: in microseconds, or in milliseconds if long.
pub(super) fn duration(ns: u64) -> String {
    match ns {
        0..10_000_000 => format!("{} µs", ns / 1000),
        _ => format!("{:.1} ms", ns as f64 / 1e6),
    }
}

/// Breaks a text into lines of at most `columns`, at spaces and between wide characters; a longer word gets its own
/// line.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for unit in units(text) {
        let Some(line) = lines.last_mut() else { break };
        let space = usize::from(unit.after_space && !line.is_empty());
        if !line.is_empty() && width(line) + space + width(&unit.text) > columns {
            lines.push(unit.text);
        } else {
            line.push_str(&" ".repeat(space));
            line.push_str(&unit.text);
        }
    }
    lines
}

/// Breaks a line of columns, which two spaces separate, between columns; what does not fit goes below `indent` spaces.
pub(super) fn folded(line: &str, columns: usize, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for column in line.split_inclusive("  ") {
        match lines.last_mut() {
            Some(last) if width(last) + width(column.trim_end()) <= columns => {
                last.push_str(column);
            }
            Some(_) => lines.push(format!("{:indent$}{column}", "")),
            None => lines.push(column.to_owned()),
        }
    }
    lines
}

/// A part of a text that is not broken.
struct Unit {
    text: String,
    after_space: bool,
    /// Whether the next character belongs to it.
    open: bool,
    wide: bool,
}

fn units(text: &str) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut after_space = false;
    for char in text.chars() {
        if char == ' ' {
            after_space = true;
            continue;
        }
        let wide = char.width().unwrap_or(0) > 1;
        let joins = units.last().is_some_and(|last| {
            !after_space && (last.open || CLOSING.contains(char) || !wide && !last.wide)
        });
        let open = OPENING.contains(char);
        match units.last_mut() {
            Some(last) if joins => {
                last.text.push(char);
                last.open = open;
                last.wide = wide;
            }
            _ => units.push(Unit {
                text: char.into(),
                after_space: std::mem::take(&mut after_space),
                open,
                wide,
            }),
        }
    }
    units
}

/// Indentation of a step's contents.
pub(super) const INDENT: usize = 4;
pub(super) const CALL: usize = 6;

/// Calls longer than this take several lines.
const WIDEST_SHORT: usize = 64;

/// Whether a call fits one line: it is short and has no structs.
pub(super) fn is_short(call: &Call) -> bool {
    call.given.is_empty() && call.came.is_empty() && width(&call.code) <= WIDEST_SHORT
}

/// Whether to put an empty line before this part of a step.
pub(super) fn stands_apart(part: &Part, previous: Option<&Part>) -> bool {
    match (part, previous) {
        (Part::Call(call), Some(Part::Call(before))) => !(is_short(call) && is_short(before)),
        (Part::States(..), Some(Part::Memory { .. }) | None) => true,
        (Part::States(..) | Part::Waited { .. } | Part::Theirs(_) | Part::Unseen { .. }, _) => {
            false
        }
        _ => true,
    }
}

/// Adds an indented line without trailing spaces.
pub(super) fn line_at(out: &mut String, indent: usize, line: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}{}", " ".repeat(indent), line.trim_end());
}

#[derive(Clone, Copy, Debug)]
pub struct Style {
    coloured: bool,
}

impl Style {
    pub fn plain() -> Style {
        Style { coloured: false }
    }

    /// Escape sequences for a terminal.
    pub fn coloured() -> Style {
        Style { coloured: true }
    }

    fn marked(self, code: &str, text: &str) -> String {
        if self.coloured && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub(super) fn heading(self, text: &str) -> String {
        self.marked("1", text)
    }

    pub(super) fn code(self, text: &str) -> String {
        self.marked("36", text)
    }

    pub(super) fn state(self, text: &str) -> String {
        self.marked("32", text)
    }

    pub(super) fn careful(self, text: &str) -> String {
        self.marked("33", text)
    }

    pub(super) fn error(self, text: &str) -> String {
        self.marked("1;31", text)
    }

    pub(super) fn faint(self, text: &str) -> String {
        self.marked("2", text)
    }
}

/// How a lesson is shown.
#[derive(Clone, Copy, Debug)]
pub struct Presentation {
    /// The language of its texts.
    pub language: Language,
    pub style: Style,
    /// Columns of a line; names, numbers and code that do not fit are longer.
    pub columns: usize,
    /// With a mistake: all steps, and not only those in which the lesson differs from one without it.
    pub has_all_steps: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(duration(1_234_567), "1234 µs");
        assert_eq!(duration(134_710_000), "134.7 ms");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(width("QP 号"), 5);
        assert_eq!(padded("号", 4), "号  ");
        assert_eq!(padded("long", 2), "long");
    }

    #[test]
    fn lines_break_at_spaces_and_between_wide_characters() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("much-too-long a", 4), ["much-too-long", "a"]);
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("内存必须注册", 8), ["内存必须", "注册"]);
        assert_eq!(wrapped("把 QP 置为 RTR", 6), ["把 QP", "置为", "RTR"]);
    }

    #[test]
    fn lines_of_columns_break_between_columns() {
        let line = "    BTH     opcode 0x0a  dest QPN 0x02  PSN 0x03";
        assert_eq!(folded(line, 80, 12), [line]);
        let halves = ["    BTH     opcode 0x0a  dest QPN 0x02  ", "            PSN 0x03"];
        assert_eq!(folded(line, 40, 12), halves);
    }

    #[test]
    fn punctuation_keeps_to_its_side() {
        assert_eq!(wrapped("内存，注册", 4), ["内", "存，", "注册"]);
        assert_eq!(wrapped("内存（注册）", 6), ["内存", "（注", "册）"]);
        assert_eq!(wrapped("（QP）", 2), ["（QP）"]);
    }

    #[test]
    fn only_terminals_get_marks() {
        assert_eq!(Style::plain().error("x"), "x");
        assert_eq!(Style::coloured().heading("x"), "\x1b[1mx\x1b[0m");
        assert_eq!(Style::coloured().code(""), "");
    }
}
