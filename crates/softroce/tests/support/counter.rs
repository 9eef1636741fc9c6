//! What a device has counted, by name.

use softroce::transport::Nic;

/// The counter of this name.
#[track_caller]
pub fn counter(nic: &Nic, name: &str) -> u64 {
    let all = nic.counters();
    let found = all.iter().find(|(known, _)| *known == name);
    found.unwrap().1
}
