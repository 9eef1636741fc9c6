//! The loop of a worker whose flow is in lock-step with the others of its node: it sends the messages of a step, one on each QP,
//! when all that the step needs is there (`lock_step`). What comes is counted by the workers that receive it.

use metrics::latency::Samples;
use verbs::Completion;

use super::window::NEVER;
use super::{Mode, Worker};
use crate::geometry::WrId;
use crate::lock_step::{NextStep, StepTimes};
use crate::{Shared, StepPart, WorkerSteps};

/// A worker's steps; of one that only receives it counts what comes.
pub(super) struct Steps<'s> {
    part: Option<&'s StepPart>,
    next: NextStep,
    /// The end of the pause before the next step.
    pub(super) resumes_raw: u64,
    /// When the last step began, and the last iteration.
    step_raw: u64,
    iteration_raw: u64,
    times: StepTimes,
    /// The times of steps and of iterations, at the worker that records them for its node.
    samples: Option<[Samples; 2]>,
}

impl<'s> Steps<'s> {
    pub(super) fn new(shared: &'s Shared, worker: usize) -> Steps<'s> {
        let part = shared.lock_step.as_ref();
        let sends = part.is_some() && shared.sends();
        let records = sends && worker == 0 && part.is_some_and(StepPart::is_first_to_send);
        Steps {
            part,
            next: NextStep::default(),
            resumes_raw: NEVER,
            step_raw: 0,
            iteration_raw: 0,
            times: StepTimes::new(sends),
            samples: records.then(|| [(); 2].map(|()| Samples::new(shared.digits))),
        }
    }

    /// What they come to, where this worker's QPs have all completed the steps before `ended`.
    pub(super) fn into_report(self, ended: u64) -> Option<WorkerSteps> {
        self.part?;
        let [step, iteration] = match self.samples {
            Some(samples) => samples.map(Some),
            None => [None, None],
        };
        Some(WorkerSteps { step, iteration, times: self.times.before(ended) })
    }
}

impl<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>
    Worker<'_, VERIFY, LATENCY, CONTENDED, FEED>
{
    /// Sends the messages of all steps that can begin.
    #[inline]
    pub(super) fn take_steps(&mut self) {
        let shared = self.shared;
        if let Some(part) = self.steps.part.filter(|_| shared.sends()) {
            while self.mode == Mode::Run && self.take_step(part) {}
        }
    }

    fn take_step(&mut self, part: &StepPart) -> bool {
        let clock = &self.shared.clock;
        if self.steps.resumes_raw == NEVER {
            if !self.steps.next.is_ready(&part.node) || !self.has_room() {
                return false;
            }
            let now_raw = clock.raw();
            self.end_step(part, now_raw);
            let pause_ns = part.node.pause_ns();
            let number = self.steps.next.number();
            if pause_ns > 0 && number > 0 && part.node.begins_iteration(number) {
                self.steps.resumes_raw = clock.raw_after(now_raw, pause_ns);
                return false;
            }
            self.begin_step(part, now_raw);
        } else {
            let now_raw = clock.raw();
            if now_raw < self.steps.resumes_raw {
                return false;
            }
            self.steps.resumes_raw = NEVER;
            self.begin_step(part, now_raw);
        }
        true
    }

    /// Whether each send queue has room for another message.
    fn has_room(&self) -> bool {
        let depth = u64::from(self.facts.geometry.depth());
        let mut tallies = self.spec.qps.iter().filter_map(|qp| self.worker_qps.get(*qp));
        tallies.all(|it| it.tally.posted - it.tally.completed < depth)
    }

    /// Records the step before, and the iteration before where it was its last.
    fn end_step(&mut self, part: &StepPart, now_raw: u64) {
        let Steps { next, step_raw, iteration_raw, samples, .. } = &mut self.steps;
        let Some([of_steps, of_iterations]) = samples.as_mut().filter(|_| next.number() > 0) else {
            return;
        };
        let clock = &self.shared.clock;
        if *step_raw <= self.window.record_until_raw {
            of_steps.record(clock.ns_between(*step_raw, now_raw));
        }
        if part.node.begins_iteration(next.number())
            && *iteration_raw <= self.window.record_until_raw
        {
            of_iterations.record(clock.ns_between(*iteration_raw, now_raw));
        }
    }

    fn begin_step(&mut self, part: &StepPart, now_raw: u64) {
        let step = self.steps.next.begin();
        self.steps.step_raw = now_raw;
        if part.node.begins_iteration(step) {
            self.steps.iteration_raw = now_raw;
        }
        self.pace.set(now_raw);
        let slot = (step % u64::from(self.facts.geometry.slots)) as u32;
        let (shared, spec) = (self.shared, self.spec);
        for &qp in &spec.qps {
            if let Some(qp_context) = shared.qp_contexts.get(qp)
                && let Some(sender) = &qp_context.sender
            {
                self.open(qp, qp_context, sender, slot);
            }
        }
        self.publish();
    }

    /// A message of a step was acknowledged.
    #[inline]
    pub(super) fn sent_in_step(&mut self, id: WrId, seen_raw: u64) {
        let qp = id.qp();
        let Some((_, sender)) = self.record_sent(id, seen_raw) else {
            return;
        };
        if let (Some(posted_at), Some(worker_qp)) =
            (sender.posted_at.get(id.slot() as usize), self.worker_qps.get(qp))
        {
            let posted_raw = posted_at.load(std::sync::atomic::Ordering::Relaxed);
            let ns = self.shared.clock.ns_between(posted_raw, seen_raw);
            self.steps.times.keep(worker_qp.tally.completed.saturating_sub(1), ns);
        }
        if let Some(part) = self.steps.part {
            part.count(qp);
        }
    }

    /// A message of a step has come.
    #[inline]
    pub(super) fn came_in_step(&self, completion: &Completion, id: WrId) {
        let receives = self.shared.shared_receives.as_ref();
        let qp = receives.map_or(Some(id.qp()), |it| it.index_of(completion.qpn()));
        if let (Some(part), Some(qp)) = (self.steps.part, qp) {
            part.count(qp);
        }
    }

    /// The first step that not all QPs of this worker have completed.
    pub(super) fn steps_ended(&self) -> u64 {
        let tallies = self.spec.qps.iter().filter_map(|qp| self.worker_qps.get(*qp));
        tallies.map(|it| it.tally.completed).min().unwrap_or(0)
    }
}
