//! Ctrl-C, `kill`, a lost terminal and a reader that goes: the first asks the run to end, drain and keep its results; the
//! second ends the process at once. A limit on the size of files is an error of writing, not an end.

use std::{
    fs, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGXFSZ},
    iterator::Signals,
    low_level,
};

use machine::threads;

/// Exit code after the second signal, as shells give it for SIGINT.
const EXIT_INTERRUPTED: i32 = 130;

/// Launchers send several signals for one wish, such as SIGINT, which a terminal sends too, and then SIGTERM: those that
/// come so soon after the first count as one.
const LAUNCHERS_SIGNALS: Duration = Duration::from_secs(1);

/// Has writing fail where a file may not grow further (`ulimit -f`), for all of the process: without it the system ends the
/// process without a word.
pub(super) fn files_may_not_grow() -> io::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(drop)
}

/// Those by which a person, a launcher or a lost terminal asks for the end. `nohup` has SIGHUP ignored, and it stays so.
const WISHES: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

fn caught(signals: &[i32]) -> io::Result<Signals> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    Signals::new(signals.iter().filter(|signal| **signal != SIGHUP || !is_ignored(&status, SIGHUP)))
}

/// Whether a process with this `/proc/PID/status` ignores a signal: proc(5), `SigIgn`, a mask in hex.
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Catches SIGINT, SIGTERM and SIGHUP from now on. The flag becomes true at the first of either.
///
/// # Errors
/// When the system refuses a handler or the thread.
pub fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    flag_of(&WISHES)
}

/// As [`stop_flag`], and also when nobody reads any more what is printed, as after `| head`. Lines that were on their way
/// count as no second wish.
pub fn stop_flag_or_unread() -> io::Result<Arc<AtomicBool>> {
    flag_of(&[&WISHES[..], &[SIGPIPE]].concat())
}

/// One thread takes all signals: handlers of two may run at once, and then neither would know itself to be the second.
fn flag_of(signals: &[i32]) -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let for_thread = Arc::clone(&stop);
    let mut incoming = caught(signals)?;
    threads::spawn("signals", move || {
        for signal in incoming.forever() {
            if for_thread.swap(true, Ordering::SeqCst) && signal != SIGPIPE {
                low_level::exit(EXIT_INTERRUPTED);
            }
        }
    })?;
    Ok(stop)
}

/// The signals of a process that a launcher has started.
pub struct RankSignals {
    pub requested: Arc<AtomicBool>,
    /// It has come long enough ago.
    pub stop: Arc<AtomicBool>,
}

/// As [`stop_flag`] for a process that a launcher has started: it is to stop `delay` after the first signal, and more
/// signals at that time are the same wish.
pub fn signals_of_rank(delay: Duration) -> io::Result<RankSignals> {
    let [requested, stop] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let flags = RankSignals { requested: Arc::clone(&requested), stop: Arc::clone(&stop) };
    let mut signals = caught(&WISHES)?;
    threads::spawn("signals", move || {
        signals.wait().for_each(drop);
        requested.store(true, Ordering::SeqCst);
        thread::sleep(delay);
        stop.store(true, Ordering::SeqCst);
        thread::sleep(LAUNCHERS_SIGNALS);
        signals.pending().for_each(drop);
        signals.wait().for_each(drop);
        low_level::exit(EXIT_INTERRUPTED);
    })?;
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_bits_of_a_mask() {
        let status = |mask: &str| format!("Name:\trocebench\nSigBlk:\tffff\nSigIgn:\t{mask}\n");
        assert!(is_ignored(&status("0000000000000001"), SIGHUP));
        assert!(!is_ignored(&status("0000000000001000"), SIGHUP));
        assert!(is_ignored(&status("0000000001000000"), SIGXFSZ));
        assert!(!is_ignored("", SIGHUP));
    }
}
