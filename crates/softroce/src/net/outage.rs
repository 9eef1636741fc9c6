//! A port that is down on purpose for a time. It must not know who is told.

use super::fault_values::Period;

/// When the port is down.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    period: Period,
    opened_ns: u64,
}

impl Outage {
    /// An outage of a port that is opened now.
    pub(super) fn new(period: Period, now_ns: u64) -> Outage {
        Outage { period, opened_ns: now_ns }
    }

    /// Whether the port is down.
    pub fn is_down(&self, now_ns: u64) -> bool {
        self.period.has(now_ns.saturating_sub(self.opened_ns))
    }

    /// When it goes down or comes up next; `u64::MAX` for never.
    pub fn next_change_ns(&self, now_ns: u64) -> u64 {
        let begin_ns = self.opened_ns.saturating_add(self.period.after_ns);
        let end_ns = begin_ns.saturating_add(self.period.lasts_ns);
        let coming = [begin_ns, end_ns].into_iter().find(|ns| *ns > now_ns);
        coming.unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_down_and_comes_up() {
        let period = Period { after_ns: 20, lasts_ns: 5 };
        let outage = Outage::new(period, 100);
        let look = |ns| (outage.is_down(ns), outage.next_change_ns(ns));
        assert_eq!([99, 119].map(look), [(false, 120); 2]);
        assert_eq!([120, 124].map(look), [(true, 125); 2]);
        assert_eq!([125, 900].map(look), [(false, u64::MAX); 2]);
    }
}
