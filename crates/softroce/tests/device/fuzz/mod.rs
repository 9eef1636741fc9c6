//! Forged packets and messages by the thousand: nothing breaks, and who is real is served as if they were not there.
//!
//! Each run forges the same ones. `SOFTROCE_FUZZ=1000000` forges that many, of which the first are the usual ones.

mod device;
mod forge;
mod managers;
mod parser;

use fastrand::Rng;

/// Between two checks.
const A_ROUND: u64 = 1000;

/// Calls `one` as often as asked, and `check` after each round and at the end. What fails tells how to run it again.
fn rounds<T>(
    name: &'static str,
    usual: u64,
    of: &mut T,
    one: impl Fn(&mut T, &mut Rng),
    check: impl Fn(&mut T, &mut Rng),
) {
    let asked = std::env::var("SOFTROCE_FUZZ").ok();
    let count = asked.map_or(usual, |it| it.parse().unwrap());
    let mut numbers = Rng::with_seed(4791);
    for number in 1..=count {
        let _again = Again(name, number);
        one(of, &mut numbers);
        if number % A_ROUND == 0 || number == count {
            // It draws nothing of what the next rounds do.
            check(of, &mut Rng::with_seed(number));
        }
    }
}

struct Again(&'static str, u64);

impl Drop for Again {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Again(name, number) = self;
            eprintln!(
                "Again: SOFTROCE_FUZZ={number} cargo test -p softroce --test device fuzz::{name}"
            );
        }
    }
}
