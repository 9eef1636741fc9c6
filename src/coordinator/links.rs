//! The nodes that have a part in a run: the steps that they do together, a message to each and an answer from each; what the
//! part of each is; and how far their clocks are from each other.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use metrics::Clock;
use node::needs::EndRoles;
use plan::{Case, Side};
use protocol::error::LinkError;
use protocol::failure::RunFailure;
use protocol::handshake::ClockOffset;
use protocol::link::{ANSWER_LIMIT, Patience};
use protocol::message::{Message, NodeFailure, Progress, RunMessage};
use results::model::NodeClock;

use super::nodes::{Node, failure_of};

/// How long the wait for one node may keep the others' failures, or the wish to stop, unseen.
const TICK: Duration = Duration::from_millis(10);

/// Each node is asked so often; the shortest way there and back tells most.
const QUESTIONS: usize = 4;

/// Time from the word to the opening, in which all workers of all nodes learn of it.
const LEAD: Duration = Duration::from_millis(20);

/// More for each node, which the word goes to one after the other.
const LEAD_OF_A_NODE: Duration = Duration::from_micros(50);

/// Why a step was not done.
#[derive(Debug)]
pub(crate) enum StepFailure {
    Failed(RunFailure),
    /// It failed at a node, which said so and waits for the end of the run.
    AtNode(RunFailure),
    /// The user asked to stop.
    Interrupted,
}

impl StepFailure {
    pub(crate) fn failure(self) -> RunFailure {
        match self {
            StepFailure::Failed(failure) | StepFailure::AtNode(failure) => failure,
            StepFailure::Interrupted => RunFailure::interrupted(),
        }
    }
}

impl From<RunFailure> for StepFailure {
    fn from(failure: RunFailure) -> Self {
        StepFailure::Failed(failure)
    }
}

/// Called while a step is waited for, with the number of a node that told how far it is.
pub(crate) type OnProgress<'a> = &'a mut dyn FnMut(usize, &Progress);

/// The nodes of a run, for steps that all of them do together: the first failure of any ends the step.
#[derive(Clone, Copy)]
pub(crate) struct Links<'a> {
    pub(crate) members: &'a [Member<'a>],
    pub(crate) stop: &'a AtomicBool,
}

impl<'a> Links<'a> {
    /// The same nodes with another wish to stop.
    pub(crate) fn until<'b>(self, stop: &'b AtomicBool) -> Links<'b>
    where
        'a: 'b,
    {
        Links { members: self.members, stop }
    }

    pub(crate) fn only(self, member: &'a Member<'a>) -> Links<'a> {
        Links { members: std::slice::from_ref(member), ..self }
    }

    /// Whether the user wishes to stop.
    pub(crate) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn nodes(&self) -> impl Iterator<Item = &'a Node> {
        self.members.iter().map(|member| member.node)
    }

    /// Sends one message to all nodes.
    pub(crate) fn tell_all(&self, message: impl Into<Message>) -> Result<(), StepFailure> {
        let same: Message = message.into();
        self.nodes().try_for_each(|node| node.send(same.clone()))
    }

    /// Takes an answer from each node: the first message that `take` does not pass over.
    ///
    /// # Errors
    /// The first failure of a node or its link, an answer that `take` gives back, the user's wish to stop, or a node
    /// whose work does not move for `limit`.
    pub(crate) fn answers<T>(
        &self,
        limit: Duration,
        expected: &'static str,
        take: impl Fn(Message) -> Result<Option<T>, Message>,
        on_progress: OnProgress<'_>,
    ) -> Result<Vec<T>, StepFailure> {
        let mut answers: Vec<Option<T>> = self.nodes().map(|_| None).collect();
        let mut patience: Vec<Patience> = self
            .nodes()
            .map(|node| Patience::new(node.link.peer_progress(), Instant::now()))
            .collect();
        while let Some(first) = answers.iter().position(Option::is_none) {
            if self.stops() {
                return Err(StepFailure::Interrupted);
            }
            for (index, node) in self.nodes().enumerate() {
                let wait = if index == first { TICK } else { Duration::ZERO };
                match node.next(wait)? {
                    None if answers[index].is_none() => {
                        let progress = node.link.peer_progress();
                        if patience[index].is_over(progress, Instant::now(), limit) {
                            let (peer, seconds) = (node.link.peer(), limit.as_secs_f64());
                            return Err(node.failed(LinkError::Overdue { peer, seconds }));
                        }
                    }
                    None => {}
                    Some(Message::Run(RunMessage::Progress(progress))) => {
                        on_progress(index, &progress);
                    }
                    Some(message) if answers[index].is_none() => {
                        answers[index] =
                            take(message).map_err(|got| node.unexpected(expected, &got))?;
                    }
                    Some(message) => return Err(node.unexpected("nothing", &message)),
                }
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// One message to all nodes, and an answer from each, without progress.
    ///
    /// # Errors
    /// As [`Links::answers`].
    pub(crate) fn exchange<T>(
        &self,
        message: impl Into<Message>,
        limit: Duration,
        expected: &'static str,
        take: impl Fn(Message) -> Result<Option<T>, Message>,
    ) -> Result<Vec<T>, StepFailure> {
        self.tell_all(message)?;
        self.answers(limit, expected, take, &mut |_, _| {})
    }
}

impl Node {
    pub(crate) fn send(&self, message: impl Into<Message>) -> Result<(), StepFailure> {
        self.link.send(message).map_err(|error| self.failed(error))
    }

    /// The next message that comes within `wait`.
    ///
    /// # Errors
    /// The link is lost, or the node failed.
    pub(crate) fn next(&self, wait: Duration) -> Result<Option<Message>, StepFailure> {
        Ok(self.next_stamped(wait)?.map(|(message, _)| message))
    }

    /// As [`Node::next`], and when it had come.
    pub(crate) fn next_stamped(
        &self,
        wait: Duration,
    ) -> Result<Option<(Message, Instant)>, StepFailure> {
        // An answer that has come already is worth more than the wish to stop.
        static GO_ON: AtomicBool = AtomicBool::new(false);
        match self.link.recv_stamped(wait, &GO_ON) {
            Ok((Message::Run(RunMessage::Failed(failure)), _)) => Err(self.gave_up(*failure)),
            Ok(stamped) => Ok(Some(stamped)),
            Err(LinkError::Overdue { .. }) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The failure for a message that came where `expected` was due.
    pub(crate) fn unexpected(&self, expected: &'static str, got: &Message) -> StepFailure {
        self.failed(self.link.unexpected(expected, got))
    }

    fn gave_up(&self, why: NodeFailure) -> StepFailure {
        let peer = self.link.peer();
        let error = LinkError::Aborted { peer, why };
        StepFailure::AtNode(failure_of(&self.name, self.is_own, error))
    }

    /// The failure of its link.
    pub(crate) fn failed(&self, error: LinkError) -> StepFailure {
        StepFailure::Failed(failure_of(&self.name, self.is_own, error))
    }
}

/// A node that has a part in a run.
pub(crate) struct Member<'a> {
    /// Its number in the session.
    pub(crate) number: u32,
    pub(crate) node: &'a Node,
    /// The ends of flows there, each by its flow's number in the case, in the order of the flows.
    ends: Vec<(u32, Side)>,
}

/// The nodes that have ends of flows; where set-up is measured, all of them.
pub(crate) fn members<'a>(case: &Case, nodes: &'a [Node]) -> Vec<Member<'a>> {
    let mut members: Vec<Member<'_>> =
        (0..).zip(nodes).map(|(number, node)| Member { number, node, ends: Vec::new() }).collect();
    for (flow, number) in case.flows.iter().zip(0..) {
        for (node, side) in [(flow.from, Side::Initiator), (flow.to, Side::Target)] {
            if let Some(member) = members.get_mut(node as usize) {
                member.ends.push((number, side));
            }
        }
    }
    members.retain(|member| case.is_set_up() || !member.ends.is_empty());
    members
}

impl Member<'_> {
    /// What the node is told of a run: the case with its own flows alone, so that what is sent to a node does not grow
    /// with the nodes.
    pub(crate) fn prepare(&self, case: &Case, run: u32) -> Message {
        let mut numbers: Vec<u32> = self.ends.iter().map(|(flow, _)| *flow).collect();
        numbers.dedup();
        let flows = numbers.iter().filter_map(|flow| case.flows.get(*flow as usize));
        Message::Run(RunMessage::Prepare {
            case: Box::new(Case {
                id: case.id.clone(),
                settings: case.settings.clone(),
                flows: flows.cloned().collect(),
                check: case.check.clone(),
            }),
            flows: numbers,
            run,
            node: self.number,
        })
    }

    /// Whether something goes from this node.
    pub(crate) fn sends(&self, case: &Case) -> bool {
        self.ends.iter().any(|(flow, side)| {
            let flow = case.flows.get(*flow as usize);
            flow.is_some_and(|flow| EndRoles::new(flow, *side).initiates)
        })
    }
}

/// For each end at each member what was reported of its other end; `reports` has for each member what it reported of its
/// ends.
///
/// # Errors
/// A node reported more or fewer ends than it has.
pub(crate) fn peer_reports<T: Clone>(
    members: &[Member<'_>],
    reports: &[Vec<T>],
) -> Result<Vec<Vec<T>>, RunFailure> {
    let mut known = HashMap::new();
    for (member, reported) in members.iter().zip(reports) {
        if reported.len() != member.ends.len() {
            return Err(not_its_own());
        }
        known.extend(member.ends.iter().copied().zip(reported));
    }
    members
        .iter()
        .map(|member| {
            member
                .ends
                .iter()
                .map(|(flow, side)| {
                    let other = match side {
                        Side::Initiator => Side::Target,
                        Side::Target => Side::Initiator,
                    };
                    known.get(&(*flow, other)).map(|reported| (*reported).clone())
                })
                .collect()
        })
        .collect::<Option<_>>()
        .ok_or_else(not_its_own)
}

fn not_its_own() -> RunFailure {
    RunFailure::new("a node reported flows that are not its own", None)
}

/// Members that may be asked at once, one of each host: what nodes of one host do one after the other does not depend on
/// which of them is faster.
pub(crate) fn one_of_each_host<'m, 'a>(members: &'m [Member<'a>]) -> Vec<Vec<&'m Member<'a>>> {
    let mut waves: Vec<Vec<&Member<'_>>> = Vec::new();
    let mut wave_of_host: BTreeMap<Option<IpAddr>, usize> = BTreeMap::new();
    for member in members {
        let link = &member.node.link;
        let host = (!link.is_within_host()).then(|| link.peer().ip());
        let wave = wave_of_host.entry(host).or_default();
        match waves.get_mut(*wave) {
            Some(wave) => wave.push(member),
            None => waves.push(vec![member]),
        }
        *wave += 1;
    }
    waves
}

/// The clocks of a run's nodes: how far each is from the coordinator's, and when windows are to open by each.
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
        let since_epoch_ns =
            |at: Instant| u64::try_from((at - epoch).as_nanos()).unwrap_or(u64::MAX);
        let own = (0..QUESTIONS)
            .map(|_| {
                let before_ns = since_epoch_ns(Instant::now());
                let own_ns = clock.ns(clock.raw());
                ClockOffset::between(before_ns, own_ns, since_epoch_ns(Instant::now()))
            })
            .min_by_key(|offset| offset.uncertainty_ns);
        let mut best: Vec<Option<ClockOffset>> = vec![None; links.members.len()];
        for _ in 0..QUESTIONS {
            let mut sent_at = Vec::with_capacity(links.members.len());
            for member in links.members {
                sent_at.push(Instant::now());
                member.node.send(RunMessage::AskClock)?;
            }
            for ((member, sent), nearest) in links.members.iter().zip(sent_at).zip(&mut best) {
                let (theirs_ns, arrived) = clock_answer(links, member)?;
                let offset =
                    ClockOffset::between(since_epoch_ns(sent), theirs_ns, since_epoch_ns(arrived));
                if nearest.is_none_or(|known| offset.uncertainty_ns < known.uncertainty_ns) {
                    *nearest = Some(offset);
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
            .map(|(_, offset)| u64::try_from(at_ns.saturating_add(offset.offset_ns)).unwrap_or(0))
            .collect()
    }

    /// How far the clock of a node is from the common one.
    pub(crate) fn offset(&self, node: u32) -> Option<&ClockOffset> {
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
fn clock_answer(links: Links<'_>, member: &Member<'_>) -> Result<(u64, Instant), StepFailure> {
    let started = Instant::now();
    while !links.stops() {
        match member.node.next_stamped(TICK)? {
            Some((Message::Run(RunMessage::Clock { ns }), arrived)) => return Ok((ns, arrived)),
            Some((Message::Run(RunMessage::Progress(_)), _)) => {}
            Some((other, _)) => return Err(member.node.unexpected("clock", &other)),
            None if started.elapsed() >= ANSWER_LIMIT => {
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
    let (opened, closed): (Vec<i128>, Vec<i128>) =
        windows.iter().map(|it| (it.opened_ns, it.closed_ns)).unzip();
    let (first_open, last_open) = (*opened.iter().min()?, *opened.iter().max()?);
    let (first_closed, last_closed) = (*closed.iter().min()?, *closed.iter().max()?);
    let longest = windows.iter().map(|it| it.closed_ns - it.opened_ns).max()?;
    if windows.len() < 2 || longest <= 0 {
        return None;
    }
    let common = (first_closed - last_open).clamp(0, longest);
    let late_ns = u64::try_from(last_open - first_open).unwrap_or(u64::MAX);
    let early_ns = u64::try_from(last_closed - first_closed).unwrap_or(u64::MAX);
    let furthest = if late_ns >= early_ns {
        Furthest::Opened(opened.iter().position(|it| *it == last_open)?, late_ns)
    } else {
        Furthest::Closed(closed.iter().position(|it| *it == first_closed)?, early_ns)
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
        let overlap_of = |windows: &[(i128, i128)]| {
            together(&spans(windows)).map(|it| (it.overlap, it.furthest))
        };
        assert_eq!(overlap_of(&[(0, 100)]), None);
        assert_eq!(overlap_of(&[]), None);
        for (windows, overlap, furthest) in [
            ([(-5, 95), (-5, 95)], 1.0, Furthest::Opened(0, 0)),
            ([(0, 100), (10, 110)], 0.9, Furthest::Opened(1, 10)),
            ([(0, 100), (30, 80)], 0.5, Furthest::Opened(1, 30)),
            ([(0, 100), (0, 60)], 0.6, Furthest::Closed(1, 40)),
            ([(0, 100), (200, 300)], 0.0, Furthest::Opened(1, 200)),
        ] {
            assert_eq!(overlap_of(&windows), Some((overlap, furthest)), "{windows:?}");
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
        let node_clock = clocks.node_clock(0).unwrap();
        assert_eq!((node_clock.offset_ns, node_clock.uncertainty_ns), (5_000 - 1_997, 3));
    }
}
