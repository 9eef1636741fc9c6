//! Diagnostics on stderr, as loud as `-v` asks for.

use tracing_subscriber::EnvFilter;

/// The environment variable that sets a filter, such as `rocebench::control=trace`, over `-v`.
pub const LOG_VARIABLE: &str = "ROCEBENCH_LOG";

/// Starts them: warnings, with `-v` what is done, with `-vv` every step; errors only when quiet.
/// Colours and time stamps are left out: lines are few, and often end in a file.
pub fn start(verbose: u8, quiet: bool) {
    let level = match (quiet, verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "info",
        (false, 2) => "debug",
        (false, _) => "trace",
    };
    let filter = EnvFilter::try_from_env(LOG_VARIABLE).unwrap_or_else(|_| EnvFilter::new(level));
    // A second start (in tests) keeps the first.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time()
        .with_target(false)
        .try_init();
}
