//! What is wrong with a text of faults.

/// An invalid text of [`super::Faults`]. Each error names the part and the right form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultsError {
    /// There is no `=`.
    #[error("`{0}` has no value: write it as in `drop=5%`")]
    NoValue(String),
    /// Unknown name.
    #[error(
        "`{0}` is not a fault: faults are seed, peer, down, drop, duplicate, reorder, corrupt, mark, delay, rate, \
         queue, lose and blackhole, all but seed, peer and down also for one direction, as in `tx.drop=5%` or `rx.drop=5%`"
    )]
    Name(String),
    /// Not a number from 0 to 1.
    #[error("`{0}` is not a probability: give one from 0% to 100%, or from 0 to 1")]
    Probability(String),
    /// Not bursts that can lose so much.
    #[error(
        "`{0}` is not a length of bursts: give their mean length in packets, from 1, as in `drop=1%/8`; at least one packet \
         arrives after each, so bursts of 8 lose at most 8 of 9"
    )]
    Burst(String),
    /// Neither a probability nor a time.
    #[error(
        "`{0}` marks nothing: give a probability, as in `mark=1%`, or how long packets wait for the link's rate before \
         they are marked, as in `mark=100us`"
    )]
    Mark(String),
    /// A jitter that is longer than the delay.
    #[error(
        "`{0}` varies by more than its delay: give a shorter time after `~`, as in `delay=10us~5us`"
    )]
    Jitter(String),
    /// Not a time and a length.
    #[error(
        "`{0}` is not a period: give when it begins and how long it lasts, as in `blackhole=2s+500ms`"
    )]
    Period(String),
    /// Not the number of a packet of a kind.
    #[error(
        "`{0}` names no packet: give a kind and a number from 1, as in `lose=ack#3`; kinds are packet, send, write, \
         read-request, read-response, atomic, atomic-ack and ack"
    )]
    Nth(String),
    /// Too many of them.
    #[error("`{0}` is one packet too many: `lose` names up to four in a direction; leave one out")]
    MostNamed(String),
    /// Not a time.
    #[error("`{0}` is not a time: give a number and its unit, ns, us, ms or s, as in `delay=10us`")]
    Time(String),
    /// Not a rate.
    #[error("`{0}` is not a rate: give bits a second above 0, as in `rate=10G` or `rate=250M`")]
    Rate(String),
    /// Not a whole number.
    #[error("`{0}` is not a seed: give a whole number from 0 to 2^64 - 1")]
    Seed(String),
    /// Not an IP address.
    #[error(
        "`{0}` is not an address: give the IP address of the other device, as in `peer=10.0.0.7`"
    )]
    Peer(String),
}
