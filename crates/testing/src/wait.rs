//! Waiting for an event: the one place of all tests that knows real time. What comes late on a busy machine is waited
//! for; only what never comes fails.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How many times the expected duration a wait lasts before it is a hang.
const PATIENCE: u32 = 10;

/// Looks without a pause: who polls a CQ does the device's work. They are few, because a poll that finds nothing yields:
/// on a busy machine the thread then comes behind all others that want its core.
const LOOKS_AT_ONCE: u32 = 50;
/// The time between two looks after these grows by this, up to two milliseconds.
const PAUSE_GROWS: Duration = Duration::from_micros(20);
const MOST_PAUSE: Duration = Duration::from_millis(2);

/// Waits until `look` gives something and returns it. `expected` is the most that it takes on an idle machine.
///
/// # Panics
/// After ten times `expected`, with `what` was waited for.
#[track_caller]
pub fn wait_for<T>(what: &str, expected: Duration, look: impl FnMut() -> Option<T>) -> T {
    wait_or_tell(expected, look, || what.to_owned())
}

/// The same where what was seen last says more: `report` is called when nothing came.
///
/// # Panics
/// After ten times `expected`, with what `report` says.
#[track_caller]
pub fn wait_or_tell<T>(
    expected: Duration,
    mut look: impl FnMut() -> Option<T>,
    report: impl FnOnce() -> String,
) -> T {
    let began = Instant::now();
    let mut looks = 0;
    let mut pause = Duration::ZERO;
    loop {
        if let Some(found) = look() {
            return found;
        }
        if began.elapsed() >= expected * PATIENCE {
            panic!("waited {:?} in vain for {}", expected * PATIENCE, report());
        }
        looks += 1;
        if looks > LOOKS_AT_ONCE {
            pause = MOST_PAUSE.min(pause + PAUSE_GROWS);
            thread::sleep(pause);
        }
    }
}

/// Waits until `is_so`.
///
/// # Panics
/// As [`wait_for`].
#[track_caller]
pub fn wait_until(what: &str, expected: Duration, mut is_so: impl FnMut() -> bool) {
    wait_for(what, expected, || is_so().then_some(()));
}

/// A thread that does this, once it waits in it or has ended.
pub fn waiting<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let (tell, number) = mpsc::channel();
    let thread = thread::spawn(move || {
        tell.send(fs::read_link("/proc/thread-self").unwrap()).unwrap();
        body()
    });
    let stat = Path::new("/proc").join(number.recv().unwrap()).join("stat");
    // The state stands after the name, which is in brackets.
    wait_until("a thread to wait", Duration::from_secs(10), || {
        fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") S "))
    });
    thread
}
