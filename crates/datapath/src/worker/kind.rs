//! The kind of a worker: the const parameters of its code, so that each kind has a loop of its own. Chooses the kind for a
//! flow, and lists those that are compiled.

use settings::Spread;

use super::super::geometry::Geometry;
use super::super::layout::looks_at_values;
use super::super::shared::Shared;

/// Where the messages of a worker come from, the parameter `FEED`.
pub(super) mod feed {
    /// Each QP posts its next as one completes (`feed_own`).
    pub(in super::super) const OWN: u8 = 0;
    /// The worker is one source for its QPs (`feed_source`).
    pub(in super::super) const SOURCE: u8 = 1;
    /// They have planned times (`feed_planned`).
    pub(in super::super) const PLANNED: u8 = 2;
    /// Each follows the answer to the one before (`feed_ping_pong`).
    pub(in super::super) const PING_PONG: u8 = 3;
}

/// The const parameters of a worker, as values.
#[derive(Clone, Copy)]
pub(in super::super) struct Kind {
    verify: bool,
    latency: bool,
    contended: bool,
    feed: u8,
}

/// Code that needs the parameters of a kind as const parameters.
pub(in super::super) trait KindVisitor {
    type Out;

    fn visit<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>(
        self,
    ) -> Self::Out;
}

/// Runs `$body` with a constant `$name` that is `$value`: `$body` is compiled for both values.
macro_rules! with_const {
    ($name:ident = $value:expr; $body:expr) => {
        if $value {
            const $name: bool = true;
            $body
        } else {
            const $name: bool = false;
            $body
        }
    };
}

impl Kind {
    pub(in super::super) fn from_shared(shared: &Shared) -> Kind {
        let flow = &shared.flow;
        let contended = shared.contended();
        Kind {
            verify: looks_at_values(flow),
            latency: !flow.no_latency,
            contended,
            feed: match (flow.is_closed_loop(), flow.spread) {
                _ if flow.ping_pong => feed::PING_PONG,
                (false, _) if shared.sends() => feed::PLANNED,
                (_, Spread::Own) => feed::OWN,
                // Workers that share a CQ are no sources.
                _ if contended => feed::OWN,
                _ => feed::SOURCE,
            },
        }
    }

    /// Calls the visitor with the parameters of this kind. Of the 32 combinations only the 18 that flows need are compiled.
    pub(in super::super) fn visit<V: KindVisitor>(self, visitor: V) -> V::Out {
        with_const!(VERIFY = self.verify; match self.feed {
            // The rules of settings allow no others.
            feed::PING_PONG => visitor.visit::<VERIFY, true, false, { feed::PING_PONG }>(),
            // Open loops always record latencies.
            feed::PLANNED => with_const!(CONTENDED = self.contended;
                visitor.visit::<VERIFY, true, CONTENDED, { feed::PLANNED }>()),
            // Sources are never contended: see `Kind::of`.
            feed::SOURCE => with_const!(LATENCY = self.latency;
                visitor.visit::<VERIFY, LATENCY, false, { feed::SOURCE }>()),
            _ => with_const!(CONTENDED = self.contended; with_const!(LATENCY = self.latency;
                visitor.visit::<VERIFY, LATENCY, CONTENDED, { feed::OWN }>())),
        })
    }
}

// Constants of a flow that its worker needs for each message, computed before the first one.

pub(super) struct Facts {
    /// A copy of the flow's.
    pub(super) geometry: Geometry,
    pub(super) several_per_slot: bool,
    /// A slot is one signalled chain, posted by one call; see [`Worker::repeat`](super::Worker::repeat).
    pub(super) posts_whole_slots: bool,
    /// Where the last chain begins in each of the two parts of a slot.
    pub(super) last_chain_of_head: u32,
    pub(super) last_chain_of_rest: u32,
    /// Messages differ in size.
    pub(super) is_mixed: bool,
    /// Bytes of a receive's completion that are no payload.
    pub(super) header_bytes: u32,
}

impl Facts {
    /// With `verify` the payloads of each chain are filled before it is posted.
    pub(super) fn new(shared: &Shared, verify: bool) -> Facts {
        let geometry = shared.geometry;
        let is_mixed = shared.flow.size_mix.is_some();
        Facts {
            geometry,
            several_per_slot: geometry.completions_per_slot() > 1,
            posts_whole_slots: !verify
                && !is_mixed
                && geometry.completions_per_slot() == 1
                && geometry.head == geometry.unit
                && geometry.post_list == geometry.unit,
            last_chain_of_head: geometry.last_chain(geometry.head),
            last_chain_of_rest: geometry.last_chain(geometry.unit - geometry.head),
            is_mixed,
            header_bytes: shared.flow.service.receive_header_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    struct Parameters;

    impl KindVisitor for Parameters {
        type Out = (bool, bool, bool, u8);

        fn visit<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>(
            self,
        ) -> Self::Out {
            (VERIFY, LATENCY, CONTENDED, FEED)
        }
    }

    #[test]
    fn a_kind_gets_its_own_parameters_and_what_no_flow_needs_is_not_compiled() {
        let mut compiled = BTreeSet::new();
        for feed in [feed::OWN, feed::SOURCE, feed::PLANNED, feed::PING_PONG] {
            for bits in 0..8 {
                let [verify, latency, contended] = [1, 2, 4].map(|bit| bits & bit != 0);
                let kind = Kind { verify, latency, contended, feed };
                let found = kind.visit(Parameters);
                let expected = match feed {
                    feed::PING_PONG => (verify, true, false, feed),
                    _ => (
                        verify,
                        latency || feed == feed::PLANNED,
                        contended && feed != feed::SOURCE,
                        feed,
                    ),
                };
                assert_eq!(found, expected);
                compiled.insert(found);
            }
        }
        assert_eq!(compiled.len(), 18);
    }
}
