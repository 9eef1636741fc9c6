//! The nodes' clocks: how far each is from the coordinator's, when windows are to open by each, and how much of their
//! windows the nodes had together.

use std::time::{Duration, Instant};

use crate::coordinator::links::{Links, StepFailure};
use metrics::Clock;
use protocol::clock_offset::ClockOffset;
use protocol::error::LinkError;
use protocol::message::Message;
use protocol::time_limits::ANSWER_LIMIT;
use results::model::NodeClock;

use super::members::Member;

/// Each node is asked so often; the shortest way there and back tells most.
const QUESTIONS: usize = 4;

/// Time from the word to the opening, in which all workers of all nodes learn of it.
const LEAD: Duration = Duration::from_millis(20);

/// More for each node, which the word goes to one after the other.
const LEAD_OF_A_NODE: Duration = Duration::from_micros(50);

/// How often the wish to stop is looked at.
const TICK: Duration = Duration::from_millis(10);

/// The clocks of a run's nodes.
#[derive(Default)]
pub(crate) struct Clocks {
    /// From when offsets and windows are told.
    epoch: Option<Instant>,
    /// What the coordinator's clock, of the same kind as the nodes', read at the epoch.
    own: Option<ClockOffset>,
    /// The nodes' clocks against the epoch, by the nodes' numbers.
    offsets: Vec<(u32, ClockOffset)>,
}

impl Clocks {
    /// Asks all nodes.
    ///
    /// # Errors
    /// A node failed or does not answer, or the user's wish to stop.
    pub(crate) fn ask(links: Links<'_>) -> Result<Clocks, StepFailure> {
        // The first clock of a process takes time to make.
        let clock = Clock::new();
        let epoch = Instant::now();
        let ns = |at: Instant| u64::try_from((at - epoch).as_nanos()).unwrap_or(u64::MAX);
        let own = (0..QUESTIONS)
            .map(|_| {
                let asked = Instant::now();
                let own_ns = clock.ns(clock.raw());
                ClockOffset::between(ns(asked), own_ns, ns(Instant::now()))
            })
            .min_by_key(|offset| offset.uncertainty_ns);
        let mut best: Vec<Option<ClockOffset>> = vec![None; links.members.len()];
        for _ in 0..QUESTIONS {
            let mut asked = Vec::with_capacity(links.members.len());
            for member in links.members {
                asked.push(Instant::now());
                member.node.send(&Message::AskClock)?;
            }
            for ((member, asked), best) in links.members.iter().zip(asked).zip(&mut best) {
                let (theirs_ns, arrived) = answer(links, member)?;
                let offset = ClockOffset::between(ns(asked), theirs_ns, ns(arrived));
                if best.is_none_or(|best| offset.uncertainty_ns < best.uncertainty_ns) {
                    *best = Some(offset);
                }
            }
        }
        let numbers = links.members.iter().map(|member| member.number);
        Ok(Clocks {
            epoch: Some(epoch),
            own,
            offsets: numbers.zip(best.into_iter().flatten()).collect(),
        })
    }

    /// When windows are to open, by the clock of each node in the order of the members.
    pub(crate) fn opening(&self) -> Vec<u64> {
        let elapsed = self.epoch.map(|epoch| epoch.elapsed()).unwrap_or_default();
        let nodes = u32::try_from(self.offsets.len()).unwrap_or(u32::MAX);
        let at = elapsed + LEAD + LEAD_OF_A_NODE.saturating_mul(nodes);
        let at_ns = i128::try_from(at.as_nanos()).unwrap_or(i128::MAX);
        self.offsets
            .iter()
            .map(|(_, offset)| at_ns.saturating_add(offset.offset_ns))
            .map(|ns| u64::try_from(ns).unwrap_or(0))
            .collect()
    }

    fn offset(&self, node: u32) -> Option<&ClockOffset> {
        let known = self.offsets.iter().find(|(number, _)| *number == node);
        known.map(|(_, offset)| offset)
    }

    /// A node's clock against the coordinator's, as results have it.
    pub(crate) fn node_clock(&self, node: u32) -> Option<NodeClock> {
        let (offset, own) = (self.offset(node)?, self.own?);
        Some(NodeClock {
            offset_ns: i64::try_from(offset.offset_ns - own.offset_ns).ok()?,
            uncertainty_ns: offset.uncertainty_ns.saturating_add(own.uncertainty_ns),
        })
    }

    /// A window of a node by the coordinator's clock.
    pub(crate) fn own_time(&self, node: u32, (opened_ns, closed_ns): (u64, u64)) -> Option<Span> {
        let offset_ns = self.offset(node)?.offset_ns;
        Some(Span {
            opened_ns: i128::from(opened_ns) - offset_ns,
            closed_ns: i128::from(closed_ns) - offset_ns,
        })
    }
}

/// The clock of a node, and when its answer came.
fn answer(links: Links<'_>, member: &Member<'_>) -> Result<(u64, Instant), StepFailure> {
    let asked = Instant::now();
    while !links.stops() {
        match member.node.next_stamped(TICK)? {
            Some((Message::Clock { ns }, arrived)) => return Ok((ns, arrived)),
            Some((Message::Progress(_), _)) => {}
            Some((other, _)) => return Err(member.node.unexpected("clock", &other)),
            None if asked.elapsed() >= ANSWER_LIMIT => {
                let (peer, seconds) = (member.node.link.peer(), ANSWER_LIMIT.as_secs_f64());
                return Err(member.node.failed(LinkError::Overdue { peer, seconds }));
            }
            None => {}
        }
    }
    Err(StepFailure::Interrupted)
}

/// When a window was open, by the coordinator's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    opened_ns: i128,
    closed_ns: i128,
}

/// How much of their windows the flows had together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Together {
    /// The part of the longest window in which all were open, 0 to 1.
    pub(crate) overlap: f64,
    /// Why it is not all of it: the window that was furthest from the others.
    pub(crate) furthest: Furthest,
}

/// The window that was furthest from the others, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Furthest {
    /// It opened so long after the first, in nanoseconds.
    Opened(usize, u64),
    /// It closed so long before the last, in nanoseconds.
    Closed(usize, u64),
}

/// The overlap of windows; `None` where there are not two.
pub(crate) fn together(windows: &[Span]) -> Option<Together> {
    let opened = || windows.iter().map(|it| it.opened_ns);
    let closed = || windows.iter().map(|it| it.closed_ns);
    let (first_open, last_open) = (opened().min()?, opened().max()?);
    let (first_closed, last_closed) = (closed().min()?, closed().max()?);
    let longest = windows.iter().map(|it| it.closed_ns - it.opened_ns).max()?;
    if windows.len() < 2 || longest <= 0 {
        return None;
    }
    let common = (first_closed - last_open).clamp(0, longest);
    let ns = |span: i128| u64::try_from(span).unwrap_or(u64::MAX);
    let (late, early) = (last_open - first_open, last_closed - first_closed);
    let furthest = if late >= early {
        Furthest::Opened(opened().position(|it| it == last_open)?, ns(late))
    } else {
        Furthest::Closed(closed().position(|it| it == first_closed)?, ns(early))
    };
    Some(Together { overlap: common as f64 / longest as f64, furthest })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(spans: &[(i128, i128)]) -> Vec<Span> {
        spans
            .iter()
            .map(|(opened_ns, closed_ns)| Span { opened_ns: *opened_ns, closed_ns: *closed_ns })
            .collect()
    }

    #[test]
    fn windows_have_together_what_all_were_open() {
        let of = |windows: &[(i128, i128)]| {
            together(&spans(windows)).map(|it| (it.overlap, it.furthest))
        };
        assert_eq!(of(&[(0, 100)]), None);
        assert_eq!(of(&[]), None);
        for (windows, overlap, furthest) in [
            ([(-5, 95), (-5, 95)], 1.0, Furthest::Opened(0, 0)),
            ([(0, 100), (10, 110)], 0.9, Furthest::Opened(1, 10)),
            ([(0, 100), (30, 80)], 0.5, Furthest::Opened(1, 30)),
            ([(0, 100), (0, 60)], 0.6, Furthest::Closed(1, 40)),
            ([(0, 100), (200, 300)], 0.0, Furthest::Opened(1, 200)),
        ] {
            assert_eq!(of(&windows), Some((overlap, furthest)), "{windows:?}");
        }
    }

    #[test]
    fn a_nodes_time_is_the_coordinators_and_its_offset() {
        let clocks = Clocks {
            epoch: Some(Instant::now()),
            own: Some(ClockOffset::between(0, 2_000, 6)),
            offsets: vec![
                (0, ClockOffset::between(0, 5_000, 0)),
                (3, ClockOffset::between(1_000, 0, 1_000)),
            ],
        };
        let span = clocks.own_time(3, (0, 10)).unwrap();
        assert_eq!((span.opened_ns, span.closed_ns), (1_000, 1_010));
        assert_eq!(clocks.own_time(1, (0, 10)), None);
        let opening = clocks.opening();
        assert_eq!(opening[0] - opening[1], 6_000);
        assert!(opening[1] >= LEAD.as_nanos() as u64);
        let told = clocks.node_clock(0).unwrap();
        assert_eq!((told.offset_ns, told.uncertainty_ns), (5_000 - 1_997, 3));
    }
}
