//! How long the device takes for a WR: a delay of its own for each, or servers that take one WR after the other.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// How the device takes its time.
#[derive(Clone, Debug, PartialEq)]
pub enum Serving {
    /// Each WR takes a random time up to this many nanoseconds, beside the others; those of one QP end in their order.
    Delays {
        /// The longest delay, in nanoseconds.
        most_ns: u64,
    },
    /// WRs wait for a server that takes one after the other.
    Servers {
        times: ServiceTimes,
        /// Each QP has a server of its own; otherwise all have one.
        is_of_qp: bool,
        /// A WR that finds so many others at its server is dropped; its QP sends it again after 50 ms.
        queue_limit: Option<usize>,
    },
}

/// Times of the WRs that a server takes.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceTimes {
    /// Always the same, in nanoseconds.
    Constant(u64),
    /// Exponential with this mean, in nanoseconds.
    Exponential(f64),
    /// These one after the other, again from the first at their end, in nanoseconds.
    List(Vec<u64>),
}

impl ServiceTimes {
    /// The time of the WR number `index` at its server; `draw` is a random number.
    fn length_ns(&self, index: u64, draw: u64) -> u64 {
        match self {
            ServiceTimes::Constant(ns) => *ns,
            ServiceTimes::Exponential(mean_ns) => {
                // Above 0 and up to 1, of 53 bits.
                let uniform = ((draw >> 11) + 1) as f64 / (1_u64 << 53) as f64;
                // A WR takes some time: its completion comes after its post.
                (-uniform.ln() * mean_ns).round().max(1.0) as u64
            }
            ServiceTimes::List(list) => {
                let length = list.len().max(1) as u64;
                list.get((index % length) as usize).copied().unwrap_or(0)
            }
        }
    }
}

/// A server, or a QP of [`Serving::Delays`].
#[derive(Default)]
struct Server {
    /// When the last WR that has come is done.
    free_ns: u64,
    taken: u64,
    waiting: usize,
}

pub(super) struct Service {
    serving: Serving,
    /// QPs whose times are their own.
    times_of: Numbered<u32, ServiceTimes>,
    /// When no server works: from, and until.
    still_ns: Vec<(u64, u64)>,
    /// By QP; 0 where all have one.
    servers: Numbered<u32, Server>,
}

impl Default for Service {
    fn default() -> Self {
        Service::new(Serving::Delays { most_ns: 5_000 })
    }
}

impl Service {
    pub(super) fn new(serving: Serving) -> Service {
        Service {
            serving,
            times_of: Numbered::default(),
            still_ns: Vec::new(),
            servers: Numbered::default(),
        }
    }

    /// The WRs of this QP take these times.
    pub(super) fn set_times_of(&mut self, qpn: u32, times: ServiceTimes) {
        self.times_of.insert(qpn, times);
    }

    /// No server works for so long. Call it before WRs come that it delays, in the order of time.
    pub(super) fn stand_still(&mut self, from_ns: u64, length_ns: u64) {
        self.still_ns.push((from_ns, from_ns + length_ns));
    }

    /// Whether WRs of different QPs have an order.
    pub(super) fn is_in_order(&self) -> bool {
        matches!(self.serving, Serving::Servers { .. })
    }

    /// A WR of this QP comes. Returns when it is done; `None` if it is dropped.
    pub(super) fn arrive(&mut self, qpn: u32, at_ns: u64, draw: u64) -> Option<u64> {
        let place = self.place(qpn);
        let server = self.servers.entry(place).or_default();
        let (times, queue_limit) = match &self.serving {
            Serving::Delays { most_ns } => {
                let delay_ns = draw % most_ns.saturating_add(1).max(1);
                server.free_ns = server.free_ns.max(at_ns + delay_ns);
                return Some(server.free_ns);
            }
            Serving::Servers { times, queue_limit, .. } => (times, queue_limit),
        };
        if queue_limit.is_some_and(|limit| server.waiting >= limit) {
            return None;
        }
        let times = self.times_of.get(&qpn).unwrap_or(times);
        let length_ns = times.length_ns(server.taken, draw);
        server.taken += 1;
        server.waiting += 1;
        let mut begins_ns = server.free_ns.max(at_ns);
        for &(from_ns, until_ns) in &self.still_ns {
            if (from_ns..until_ns).contains(&begins_ns) {
                begins_ns = until_ns;
            }
            // It goes on afterwards where it was.
            if begins_ns < from_ns && begins_ns + length_ns > from_ns {
                begins_ns += until_ns - from_ns;
            }
        }
        server.free_ns = begins_ns + length_ns;
        Some(server.free_ns)
    }

    /// A WR of this QP is done.
    pub(super) fn left(&mut self, qpn: u32) {
        let place = self.place(qpn);
        if let Some(server) = self.servers.get_mut(&place) {
            server.waiting = server.waiting.saturating_sub(1);
        }
    }

    pub(super) fn forget(&mut self, qpn: u32) {
        self.times_of.remove(&qpn);
        self.servers.remove(&qpn);
    }

    fn place(&self, qpn: u32) -> u32 {
        match self.serving {
            Serving::Servers { is_of_qp, .. } if !is_of_qp => 0,
            _ => qpn,
        }
    }
}

/// A table by QP numbers, keys or pointers.
pub(super) type Numbered<K, V> = HashMap<K, V, BuildHasherDefault<Multiplied>>;

/// Multiplies the number, whose high bits then depend on all of it.
#[derive(Default)]
pub(super) struct Multiplied(u64);

impl Hasher for Multiplied {
    fn finish(&self) -> u64 {
        self.0.rotate_left(32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(times: ServiceTimes, is_of_qp: bool, queue_limit: Option<usize>) -> Service {
        Service::new(Serving::Servers { times, is_of_qp, queue_limit })
    }

    #[test]
    fn one_server_takes_one_after_the_other_and_those_of_qps_work_beside_each_other() {
        let arrivals = [(1, 0), (2, 0), (1, 5), (2, 100)];
        for (is_of_qp, expected) in [(false, [10, 20, 30, 110]), (true, [10, 10, 20, 110])] {
            let mut service = servers(ServiceTimes::Constant(10), is_of_qp, None);
            let done_ns = arrivals.map(|(qpn, at_ns)| service.arrive(qpn, at_ns, 0));
            assert_eq!(done_ns, expected.map(Some));
        }
    }

    #[test]
    fn a_full_queue_drops_until_a_wr_has_left() {
        let mut service = servers(ServiceTimes::List(vec![1, 2]), false, Some(2));
        let done_ns = [0; 3].map(|at_ns| service.arrive(7, at_ns, 0));
        assert_eq!(done_ns, [Some(1), Some(3), None]);
        service.left(7);
        assert_eq!(service.arrive(7, 1, 0), Some(4));
    }

    #[test]
    fn a_server_that_stands_still_goes_on_where_it_was() {
        let mut service = servers(ServiceTimes::Constant(10), true, None);
        service.stand_still(25, 100);
        let done_ns = [0, 20, 30, 200].map(|at_ns| service.arrive(1, at_ns, 0));
        assert_eq!(done_ns, [10, 130, 140, 210].map(Some));
        // One that begins while it stands still.
        assert_eq!(service.arrive(2, 30, 0), Some(135));
    }

    #[test]
    fn a_qp_has_its_own_times_and_exponential_ones_have_their_mean() {
        let mut service = servers(ServiceTimes::Exponential(1_000.0), true, None);
        service.set_times_of(2, ServiceTimes::Constant(7));
        assert_eq!(service.arrive(2, 0, 1), Some(7));
        let times = ServiceTimes::Exponential(1_000.0);
        // The median is the mean times the logarithm of 2.
        assert_eq!(times.length_ns(0, u64::MAX / 2), 693);
        assert_eq!(times.length_ns(0, u64::MAX), 1);
    }
}
