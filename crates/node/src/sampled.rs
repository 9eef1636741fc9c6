//! What is sampled of an end while its window runs: throughput, and what each QP completes.

use metrics::timeline::MOST_COUNTS;
use metrics::{QpTimeline, Timeline};
use settings::Stop;

use crate::running_node::RunningNode;

/// Samples of an end that sends.
pub struct Sampled {
    pub flow: Timeline,
    /// Of its QPs, where they are several and not too many.
    pub qps: Option<QpTimeline>,
}

impl Sampled {
    /// Makes room for samples of all ends of `node` that send, by number of the end. They share the counts that a node
    /// keeps.
    pub fn of_ends(node: &RunningNode) -> Vec<Option<Sampled>> {
        let senders = node.ends().filter(|end| end.objects.roles().initiates).count();
        let counts = MOST_COUNTS / senders.max(1);
        node.ends()
            .map(|end| {
                let window_ns = match end.flow.stop() {
                    Stop::DurationNs(ns) => Some(ns),
                    Stop::MessagesPerQp(_) => None,
                };
                end.objects.roles().initiates.then(|| Sampled {
                    flow: Timeline::default(),
                    qps: QpTimeline::new(end.flow.qps as usize, counts, window_ns),
                })
            })
            .collect()
    }

    /// Takes a sample of each of them.
    pub fn sample(sampled: &mut [Option<Sampled>], node: &RunningNode) {
        for (end, window) in node.windows() {
            if let Some(Some(sampled)) = sampled.get_mut(end) {
                sampled.flow.push(window.elapsed_ns, window.completed);
                if let Some(qps) = &mut sampled.qps {
                    qps.push(window.elapsed_ns, |of_qps| node.read_completed(end, of_qps));
                }
            }
        }
    }
}
