//! Shows how far the traffic of all nodes is.

use std::time::Duration;

use crate::coordinator::observer::Observer;
use plan::Case;
use protocol::message::Progress;

/// A drain that takes longer is remarked on.
const LONG_DRAIN: Duration = Duration::from_secs(10);

/// Shows the rate of all nodes together.
pub(crate) struct Meter {
    of_nodes: Vec<Pace>,
}

/// What a node told last, and its rates then.
#[derive(Clone, Copy, Default)]
struct Pace {
    last: Progress,
    gbit_per_s: f64,
    mmsg_per_s: f64,
    /// Not shown yet.
    p99_ns: Option<u64>,
    tells_p99: bool,
}

impl Meter {
    pub(crate) fn new(nodes: usize) -> Meter {
        Meter { of_nodes: vec![Pace::default(); nodes] }
    }

    /// Shows the sum of the rates when the first node that sends has told its own.
    pub(crate) fn show(&mut self, node: usize, progress: &Progress, observer: &mut dyn Observer) {
        let Some(pace) = self.of_nodes.get_mut(node) else {
            return;
        };
        if progress.messages > 0 {
            tracing::trace!("node {node} has completed {} messages", progress.messages);
        }
        let ns = progress.elapsed_ns.saturating_sub(pace.last.elapsed_ns);
        if ns > 0 {
            let bytes = progress.bytes.saturating_sub(pace.last.bytes);
            let messages = progress.messages.saturating_sub(pace.last.messages);
            pace.gbit_per_s = bytes as f64 * 8.0 / ns as f64;
            pace.mmsg_per_s = messages as f64 * 1e3 / ns as f64;
        }
        pace.last = *progress;
        if let Some(p99_ns) = self.p99_ns(node, progress.p99_ns) {
            observer.latency(p99_ns);
        }
        let is_first = self.of_nodes[..node].iter().all(|pace| pace.last.elapsed_ns == 0);
        if is_first {
            let elapsed = Duration::from_nanos(progress.elapsed_ns);
            let gbit_per_s = self.of_nodes.iter().map(|it| it.gbit_per_s).sum();
            let mmsg_per_s = self.of_nodes.iter().map(|it| it.mmsg_per_s).sum();
            observer.sample(elapsed, gbit_per_s, mmsg_per_s);
        }
    }

    /// The highest p99 of all nodes, once a round: when the first node that tells its own has told it, or another one the
    /// second since.
    fn p99_ns(&mut self, node: usize, reported_ns: Option<u64>) -> Option<u64> {
        let pace = self.of_nodes.get_mut(node)?;
        let before_ns = pace.p99_ns;
        pace.p99_ns = before_ns.max(Some(reported_ns?));
        pace.tells_p99 = true;
        let is_first = self.of_nodes.iter().position(|pace| pace.tells_p99) == Some(node);
        if !is_first && before_ns.is_none() {
            return None;
        }
        self.of_nodes.iter_mut().filter_map(|pace| pace.p99_ns.take()).max()
    }
}

/// Says once that a drain takes long.
pub(crate) struct LongDrain {
    of_nodes: Vec<Progress>,
    is_remarked: bool,
}

impl LongDrain {
    pub(crate) fn new(nodes: usize) -> LongDrain {
        LongDrain { of_nodes: vec![Progress::default(); nodes], is_remarked: false }
    }

    pub(crate) fn remark(
        &mut self,
        node: usize,
        progress: &Progress,
        case: &Case,
        observer: &mut dyn Observer,
    ) {
        if let Some(text) = self.text(node, progress, case) {
            observer.note(&text);
        }
    }

    fn text(&mut self, node: usize, progress: &Progress, case: &Case) -> Option<String> {
        if let Some(last) = self.of_nodes.get_mut(node) {
            *last = *progress;
        }
        let elapsed = Duration::from_nanos(progress.elapsed_ns);
        if elapsed < LONG_DRAIN || self.is_remarked {
            return None;
        }
        self.is_remarked = true;
        let left: u64 = self.of_nodes.iter().map(|it| it.outstanding).sum();
        let rest = match self.of_nodes.iter().map(|it| it.messages).sum::<u64>() {
            0 => String::new(),
            done => {
                let seconds = elapsed.as_secs_f64() * left as f64 / done as f64;
                format!(", about {seconds:.0} s at this rate")
            }
        };
        let largest = case.flows.iter().max_by_key(|flow| flow.size_bytes);
        let sizes = largest.map_or(case.sizes_text(), |flow| flow.sizes_text());
        Some(format!(
            "the window is over; {left} messages of {sizes} are still in the send queues{rest}; a smaller \
             --tx-depth or --size shortens this"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::sample::case;
    use results::sample::has;

    #[test]
    fn a_long_drain_is_remarked_on_once_with_what_all_nodes_still_send() {
        let mut case = case();
        case.flows[0].size_bytes = 1 << 20;
        let mut drain = LongDrain::new(2);
        let at = |seconds: u64, messages, outstanding| Progress {
            elapsed_ns: seconds * 1_000_000_000,
            messages,
            outstanding,
            ..Progress::default()
        };
        assert_eq!(drain.text(0, &at(9, 10, 40), &case), None);
        assert_eq!(drain.text(1, &at(9, 10, 20), &case), None);
        let text = drain.text(0, &at(10, 20, 30), &case).unwrap();
        // 30 messages in 10 s, and 50 are left.
        let left = "50 messages of 1MiB are still in the send queues, about 17 s";
        has(text, [left]);
        assert_eq!(drain.text(1, &at(20, 0, 1), &case), None, "said once");
    }

    #[test]
    fn the_highest_p99_of_all_nodes_is_shown_once_a_round() {
        let mut meter = Meter::new(3);
        assert_eq!(meter.p99_ns(0, None), None);
        assert_eq!(meter.p99_ns(1, Some(10)), Some(10));
        assert_eq!(meter.p99_ns(2, Some(30)), None);
        assert_eq!(meter.p99_ns(1, None), None);
        assert_eq!(meter.p99_ns(1, Some(20)), Some(30));
        // The other node has had no messages since.
        assert_eq!(meter.p99_ns(1, Some(20)), Some(20));
        // The first one has none any more.
        assert_eq!(meter.p99_ns(2, Some(40)), None);
        assert_eq!(meter.p99_ns(2, Some(35)), Some(40));
        assert_eq!(meter.p99_ns(9, Some(20)), None);
    }
}
