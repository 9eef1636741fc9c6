//! Steps that all nodes of a session do together: a message to each, an answer from each. The first failure of any
//! ends the step.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use protocol::error::LinkError;
use protocol::failure::RunFailure;
use protocol::message::{Message, NodeFailure, Progress};
use protocol::patience::Patience;

use super::members::Member;
use super::nodes::{Node, failure_of};

/// How long the wait for one node may keep the others' failures unseen.
const TICK: Duration = Duration::from_millis(10);

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

/// The nodes of a run.
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
    pub(crate) fn tell_all(&self, message: &Message) -> Result<(), StepFailure> {
        self.nodes().try_for_each(|node| node.send(message))
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
                    Some(Message::Progress(progress)) => on_progress(index, &progress),
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
        message: &Message,
        limit: Duration,
        expected: &'static str,
        take: impl Fn(Message) -> Result<Option<T>, Message>,
    ) -> Result<Vec<T>, StepFailure> {
        self.tell_all(message)?;
        self.answers(limit, expected, take, &mut |_, _| {})
    }
}

impl Node {
    pub(crate) fn send(&self, message: &Message) -> Result<(), StepFailure> {
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
            Ok((Message::Failed(failure), _)) => Err(self.gave_up(*failure)),
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
