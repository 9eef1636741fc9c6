//! What a device can do beyond the calls that every device has. No query tells most of it, so small objects are made and
//! destroyed again.

use std::sync::Arc;

use super::{
    CompletionQueue, Context, CqCalls, ProtectionDomain, QpCapacity, QpParts, QueuePair, Service,
    StampClock, ThreadDomain,
};

/// The extended verbs that a device has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// QPs of the RC service that are posted to by `ibv_wr_post(3)`.
    pub extended_post: bool,
    /// Such QPs send messages of several elements whole. Soft-RoCE's library takes the first element's length for each
    /// (up to rdma-core 63; "rxe: Fix dma.length computation in wr_set_sge_list").
    pub extended_lists: bool,
    /// CQs that are polled by `ibv_start_poll(3)`.
    pub extended_poll: bool,
    /// CQs of one thread, and thread domains for QPs.
    pub thread_domains: bool,
    /// Stamps of completions, and a clock that can be read.
    pub stamps: bool,
}

impl Extensions {
    pub(super) fn probe(context: &Arc<Context>) -> Extensions {
        if !context.is_extended() {
            return Extensions::default();
        }
        let (Ok(pd), Ok(plain)) =
            (ProtectionDomain::new(context), CompletionQueue::new(context, 1))
        else {
            return Extensions::default();
        };
        let has_cq = |calls| CompletionQueue::of(context, 1, calls, None).is_ok();
        let has_qp = |parts: QpParts<'_>| {
            let (service, least) = (Service::ReliableConnection, QpCapacity::LEAST);
            QueuePair::of(service, &pd, [&plain, &plain], parts, least).is_ok()
        };
        let domain = ThreadDomain::new(&pd).ok();
        let clock = StampClock::of(context);
        let extended_post = has_qp(QpParts { extended_post: true, ..QpParts::default() });
        Extensions {
            extended_post,
            extended_lists: extended_post && !context.is_soft_roce(),
            extended_poll: has_cq(CqCalls { extended: true, ..CqCalls::USUAL }),
            thread_domains: has_cq(CqCalls { single_threaded: true, ..CqCalls::USUAL })
                && domain.as_ref().is_some_and(|domain| {
                    has_qp(QpParts { domain: Some(domain), ..QpParts::default() })
                }),
            stamps: clock.is_some_and(|clock| clock.read().is_ok())
                && has_cq(CqCalls { extended: true, stamps: true, single_threaded: false }),
        }
    }
}
