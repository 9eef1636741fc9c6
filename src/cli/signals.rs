//! Ctrl-C and `kill`: the first asks the run to end, drain and keep its results; the second ends the
//! process at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

/// Exit code after the second signal, as shells give it for SIGINT.
const EXIT_INTERRUPTED: i32 = 130;

/// Catches SIGINT and SIGTERM from now on. The flag becomes true at the first of either.
///
/// # Errors
/// When the system refuses a handler.
pub fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Handlers run in the order of registration: the flag that the first signal sets is seen
        // here only by the second.
        register_conditional_shutdown(signal, EXIT_INTERRUPTED, Arc::clone(&stop))?;
        register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn the_first_signal_sets_the_flag() {
        let stop = stop_flag().unwrap();
        assert!(!stop.load(Ordering::SeqCst));
        signal_hook::low_level::raise(SIGTERM).unwrap();
        assert!(stop.load(Ordering::SeqCst));
    }
}
