//! Parses arbitrary bytes as a packet. A test of `softroce::wire::check` writes the seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(why) = softroce::wire::check::parses_back(bytes) {
        panic!("{why}");
    }
});
