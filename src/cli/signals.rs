//! Ctrl-C and `kill`: the first asks the run to end, drain and keep its results; the second ends the
//! process at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

/// Exit code after the second signal, as shells give it for SIGINT.
const EXIT_INTERRUPTED: i32 = 130;

/// Launchers send several signals for one wish, such as SIGINT, which a terminal sends too, and then SIGTERM: those that
/// come so soon after the first count as one.
const LAUNCHERS_SIGNALS: Duration = Duration::from_secs(1);

/// Catches SIGINT and SIGTERM from now on. The flag becomes true at the first of either. One thread takes
/// them all: handlers of two signals may run at once, and then neither would know itself to be the second.
///
/// # Errors
/// When the system refuses a handler or the thread.
pub fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let for_thread = Arc::clone(&stop);
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for _ in signals.forever() {
                if for_thread.swap(true, Ordering::SeqCst) {
                    low_level::exit(EXIT_INTERRUPTED);
                }
            }
        })?;
    Ok(stop)
}

/// The signals of a process that a launcher has started.
pub struct RankSignals {
    /// The first has come.
    pub asked: Arc<AtomicBool>,
    /// It has come long enough ago.
    pub stop: Arc<AtomicBool>,
}

/// As [`stop_flag`] for a process that a launcher has started: it is to stop `delay` after the first signal, and more
/// signals at that time are the same wish.
///
/// # Errors
/// As [`stop_flag`].
pub fn signals_of_rank(delay: Duration) -> io::Result<RankSignals> {
    let flags = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let [asked, stop] = flags.clone();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            signals.wait().for_each(drop);
            asked.store(true, Ordering::SeqCst);
            thread::sleep(delay);
            stop.store(true, Ordering::SeqCst);
            thread::sleep(LAUNCHERS_SIGNALS);
            signals.pending().for_each(drop);
            signals.wait().for_each(drop);
            low_level::exit(EXIT_INTERRUPTED);
        })?;
    let [asked, stop] = flags;
    Ok(RankSignals { asked, stop })
}
