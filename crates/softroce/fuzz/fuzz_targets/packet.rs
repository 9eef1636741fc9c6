//! Any bytes as a packet. The seeds are made by a test of `softroce::wire::check`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(why) = softroce::wire::check::parses_back(bytes) {
        panic!("{why}");
    }
});
