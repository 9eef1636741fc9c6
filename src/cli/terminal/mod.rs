//! What a person sees while the program runs, and how it reaches the terminal; and what stands behind a stream: a terminal
//! of some width, which takes colours or not, or a file.

pub mod errors;
pub mod progress;
pub mod stdout;

use std::io::IsTerminal;
use std::os::fd::AsFd;

use results::text::{Screen, printable_lines, wrapped};

/// The width of a terminal that does not tell it.
const USUAL_COLUMNS: usize = 80;

/// The screen behind a stream. Where there is no terminal lines have any width, or that of the variable `COLUMNS`.
pub(in crate::cli) fn screen(stream: &(impl AsFd + IsTerminal)) -> Screen {
    let columns = if stream.is_terminal() {
        rustix::termios::tcgetwinsize(stream)
            .ok()
            .map(|size| usize::from(size.ws_col))
            .filter(|columns| *columns > 0)
            .or_else(columns_of_variable)
            .unwrap_or(USUAL_COLUMNS)
    } else {
        columns_of_variable().unwrap_or(Screen::ENDLESS.columns)
    };
    Screen { columns, is_coloured: stream.is_terminal() && takes_colours() }
}

fn columns_of_variable() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0)
}

/// The text as a terminal may have it, whoever chose the names in it, and in lines that fit the one behind stderr.
pub(in crate::cli) fn fit_for_stderr(text: &str) -> String {
    let text = &*printable_lines(text, usize::MAX);
    let stderr = std::io::stderr();
    if !stderr.is_terminal() {
        return text.to_owned();
    }
    let columns = screen(&stderr).columns.saturating_add(1);
    text.lines().flat_map(|line| wrapped(line, columns)).collect::<Vec<_>>().join("\n")
}

/// Whether nobody refuses colours (<https://no-color.org>).
fn takes_colours() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|value| value == "dumb");
    !refused && !dumb
}
