//! Diagnostics on stderr, as loud as `-v` asks for.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

/// The environment variable that sets a filter, such as `rocebench::control=trace`, over `-v`.
pub const LOG_VARIABLE: &str = "ROCEBENCH_LOG";

/// Starts them: warnings, with `-v` what is done, with `-vv` every step; errors only when quiet.
/// Colours and time stamps are left out: lines are few, and often end in a file.
pub fn start(verbose: u8, quiet: bool) {
    let level = match (quiet, verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, 2) => LevelFilter::DEBUG,
        (false, _) => LevelFilter::TRACE,
    };
    let given = std::env::var(LOG_VARIABLE).ok();
    let filter: Option<Targets> = given.and_then(|text| text.parse().ok());
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time()
        .with_target(false)
        .with_filter(filter.unwrap_or_else(|| Targets::new().with_default(level)));
    // A second start (in tests) keeps the first.
    let _ = tracing_subscriber::registry().with(lines).try_init();
}
