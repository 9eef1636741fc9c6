//! What `docs/statistics.md` promises, and whether it held.

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

    /// Tells what was broken, and by the exit code whether anything was.
    pub fn tell(self) -> ExitCode {
        for text in &self.broken {
            eprintln!("not as promised: {text}");
        }
        match self.broken.is_empty() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        }
    }
}
