//! What is wrong with a text of faults.

/// An invalid text of [`super::Faults`]: the part of it that is wrong, and the right form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{part}` {remedy}")]
pub struct FaultsError {
    part: String,
    remedy: &'static str,
}

impl FaultsError {
    pub(super) fn of(part: &str, remedy: &'static str) -> FaultsError {
        FaultsError { part: part.to_owned(), remedy }
    }
}

/// How to write what is wrong.
pub mod remedy {
    pub const NO_VALUE: &str = "has no value: write it as in `drop=5%`";
    pub const NAME: &str = "is not a fault: faults are seed, peer, down, drop, duplicate, reorder, corrupt, mark, delay, rate, \
     queue, lose and blackhole, all but seed, peer and down also for one direction, as in `tx.drop=5%` or `rx.drop=5%`";
    pub const PROBABILITY: &str = "is not a probability: give one from 0% to 100%, or from 0 to 1";
    pub const BURST: &str = "is not a length of bursts: give their mean length in packets, from 1, as in `drop=1%/8`; at least \
     one packet arrives after each, so bursts of 8 lose at most 8 of 9";
    pub const MARK: &str = "marks nothing: give a probability, as in `mark=1%`, or how long packets wait for the link's rate \
     before they are marked, as in `mark=100us`";
    pub const JITTER: &str =
        "varies by more than its delay: give a shorter time after `~`, as in `delay=10us~5us`";
    pub const PERIOD: &str =
        "is not a period: give when it begins and how long it lasts, as in `blackhole=2s+500ms`";
    pub const NTH: &str = "names no packet: give a kind and a number from 1, as in `lose=ack#3`; kinds are packet, send, write, \
     read-request, read-response, atomic, atomic-ack and ack";
    pub const MOST_NAMED: &str =
        "is one packet too many: `lose` names up to four in a direction; leave one out";
    pub const TIME: &str =
        "is not a time: give a number and its unit, ns, us, ms or s, as in `delay=10us`";
    pub const RATE: &str =
        "is not a rate: give bits a second above 0, as in `rate=10G` or `rate=250M`";
    pub const SEED: &str = "is not a seed: give a whole number from 0 to 2^64 - 1";
    pub const PEER: &str =
        "is not an address: give the IP address of the other device, as in `peer=10.0.0.7`";
}
