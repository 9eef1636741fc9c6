//! What `docs/dev/statistics.md` promises, and whether it held.

use std::process::ExitCode;

/// Promises that did not hold.
#[derive(Debug, Default)]
pub struct Promises {
    broken: Vec<String>,
}

impl Promises {
    pub fn at_most(&mut self, what: &str, count: usize, of: usize, part: f64) {
        self.hold(what, count, of, count as f64 <= part * of as f64);
    }

    pub fn at_least(&mut self, what: &str, count: usize, of: usize, part: f64) {
        self.hold(what, count, of, count as f64 >= part * of as f64);
    }

    fn hold(&mut self, what: &str, count: usize, of: usize, holds: bool) {
        if !holds {
            self.broken.push(format!("{what}: {count} of {of}"));
        }
    }
}

/// Draws tables of as many tries as the first argument says. Prints what was broken; the exit code is 1 then.
pub fn check(what: &str, usual: usize, tables: impl FnOnce(usize, &mut Promises)) -> ExitCode {
    let tries = match std::env::args().nth(1).map(|word| word.parse()) {
        None => usual,
        Some(Ok(tries)) => tries,
        Some(Err(error)) => {
            eprintln!("{what} is a number: {error}");
            return ExitCode::from(2);
        }
    };
    let mut promises = Promises::default();
    tables(tries, &mut promises);
    for text in &promises.broken {
        eprintln!("not as promised: {text}");
    }
    if promises.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints the head of a table, whose first column has words and the others figures.
pub fn head(cells: &str) {
    let columns = cells.matches('|').count() - 2;
    println!("{cells}\n|---|{}", "--:|".repeat(columns));
}
