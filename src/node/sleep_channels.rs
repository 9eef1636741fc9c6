//! The completion channels of workers that sleep, and which CQ and worker each channel serves.

use std::sync::Arc;

use crate::datapath::Sleep;
use crate::plan::Case;
use settings::{CqMode, PollMode};
use verbs::{CompletionChannel, Context, VerbsError, Wakeup};

use crate::node::needs::{Duties, effective_workers};

/// The channels and wakeups of one end. Each worker has its own channel, unless all share one CQ: then all sleep on
/// the CQ's one channel.
pub(crate) struct SleepChannels {
    channels: Vec<Arc<CompletionChannel>>,
    wakeups: Vec<Arc<Wakeup>>,
}

impl SleepChannels {
    /// The channels that `case` needs; `None` if no worker sleeps.
    pub(crate) fn of(
        case: &Case,
        duties: Duties,
        context: &Arc<Context>,
    ) -> Result<Option<SleepChannels>, VerbsError> {
        let works = duties.sends || duties.receives;
        if case.poll == PollMode::Busy || !works {
            return Ok(None);
        }
        let workers = effective_workers(case);
        let channels = match case.cq {
            CqMode::Shared => 1,
            CqMode::PerWorker | CqMode::PerQp => workers,
        };
        Ok(Some(SleepChannels {
            channels: (0..channels)
                .map(|_| CompletionChannel::new(context))
                .collect::<Result<_, _>>()?,
            wakeups: (0..workers)
                .map(|_| Wakeup::new().map(Arc::new))
                .collect::<Result<_, _>>()?,
        }))
    }

    /// The worker that polls CQ `index`, and its channel: CQs are assigned to workers in turn.
    pub(crate) fn channel_of(&self, index: usize) -> (usize, &Arc<CompletionChannel>) {
        let worker = index % self.channels.len();
        (worker, &self.channels[worker])
    }

    /// The channel and wakeup of worker `index`.
    pub(crate) fn of_worker(&self, index: usize) -> Option<Sleep> {
        Some(Sleep {
            channel: Arc::clone(self.channel_of(index).1),
            wakeup: Arc::clone(self.wakeups.get(index)?),
        })
    }
}
