//! One case that is measured window after window on the same QPs, for hours or days.

use protocol::failure::RunFailure;
use results::model::ResultFile;

/// What came next.
#[derive(Debug)]
pub enum Taken {
    /// A window is over. The result has all nodes as they are now, and the one case with this run alone; a run that failed has
    /// its `failure` and `complete: false`.
    Sample(Box<ResultFile>),
    /// The nodes cannot be reached, or do not take the case any more. The next call tries again.
    Away(RunFailure),
    /// The user's wish to stop.
    Stopped,
}

/// Where samples come from: nodes, or a test's made-up ones.
pub trait Samples {
    /// Waits for the next window, or tries to reach nodes that are away, with a pause.
    fn take(&mut self) -> Taken;
}
