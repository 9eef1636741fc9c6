//! Forged input by the thousand, the same in each run. `SOFTROCE_FUZZ=1000000` forges that many, of which the first are the
//! usual ones.

/// Between two checks.
const A_ROUND: u64 = 1000;

/// Calls `one` with the numbers from 1, as many as asked, and `check` after each round and at the end. What fails tells how
/// to run it again; `test` are the arguments of `cargo test`.
pub fn rounds<T>(
    test: &str,
    usual: u64,
    of: &mut T,
    one: impl Fn(&mut T, u64),
    check: impl Fn(&mut T, u64),
) {
    let rounds = std::env::var("SOFTROCE_FUZZ").ok();
    let count = rounds.map_or(usual, |it| it.parse().unwrap());
    for number in 1..=count {
        let _again = Again(test, number);
        one(of, number);
        if number % A_ROUND == 0 || number == count {
            check(of, number);
        }
    }
}

struct Again<'a>(&'a str, u64);

impl Drop for Again<'_> {
    #[allow(clippy::print_stderr)] // for who reads why a test failed
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Again(test, number) = self;
            eprintln!("Again: SOFTROCE_FUZZ={number} cargo test {test}");
        }
    }
}
