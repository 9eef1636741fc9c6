//! Assigns memory to each request and applies it to the model at once. That is right because a QP's requests take
//! effect in order, and requests of different QPs use different bytes.

use std::mem;

use softroce::transport::{CompletionKind, Operation, Sge, Status};

use super::super::memory::{COUNTER_BYTES, Part, random};
use super::super::scenario::{MOST_PAIRS, Request, Verb};
use super::super::testbed::Expected;
use super::{Placed, PlacedReceive, Player};

const _: () = assert!(2 * MOST_PAIRS * 8 <= COUNTER_BYTES);

impl Player<'_> {
    pub(super) fn place(
        &mut self,
        end: usize,
        request: &Request,
    ) -> (Placed, Option<PlacedReceive>) {
        let endpoint = &mut self.testbed.endpoints[end];
        let wr_id = endpoint.wr_id();
        let capacities = endpoint.capacities;
        let [own, peer] = self.sides(end);
        let mut bytes = request.length.bytes(self.setup.mtu_bytes);
        let mut parts = None;
        let fence = request.fence;
        let sends = matches!(request.verb, Verb::Send | Verb::Write);
        if sends && request.chained && fence && !self.chains[end].read.is_empty() {
            let read = mem::take(&mut self.chains[end].read);
            bytes = read.iter().map(|part| part.bytes).sum();
            parts = Some(read);
        }
        let mut remote = None;
        if matches!(request.verb, Verb::Write | Verb::Read)
            && request.chained
            && let Some(written) = self.chains[end].target
            && (parts.is_none() || bytes <= written.bytes)
        {
            bytes = bytes.min(written.bytes);
            remote = Some(Part { bytes, ..written });
        }
        let is_atomic = !sends && !matches!(request.verb, Verb::Read);
        if is_atomic {
            bytes = 8;
        }
        let chained_source = parts.is_some();
        let parts = parts.unwrap_or_else(|| {
            let cuts = if is_atomic { &[][..] } else { &request.cuts };
            let most = capacities.send_sges;
            self.deal(own, bytes, cuts, most, request.gap, is_atomic)
        });
        if sends && !chained_source {
            for part in &parts {
                let fresh = random(&mut self.numbers, part.bytes);
                self.testbed.sides[own].memory.put(*part, &fresh);
            }
        }
        let inline =
            sends && !chained_source && request.inline && bytes <= capacities.inline_bytes as usize;

        let remote = match request.verb {
            Verb::Send => Part::default(),
            Verb::FetchAdd { .. } | Verb::CompareSwap { .. } => Part { offset: 8 * end, bytes: 8 },
            Verb::Write | Verb::Read => remote.unwrap_or_else(|| {
                let memory = &mut self.testbed.sides[peer].memory;
                memory.deal(bytes, request.gap, false)
            }),
        };
        let (address, rkey) = self.testbed.sides[peer].remote(remote);
        let before = self.testbed.sides[peer].memory.expected(remote).to_vec();
        let mut receive = None;
        let operation = match request.verb {
            Verb::Send => {
                let data = self.gather(own, &parts);
                receive = Some(self.receive(end, request, &data));
                Operation::Send
            }
            Verb::Write => {
                let data = self.gather(own, &parts);
                self.testbed.sides[peer].memory.expect(remote, &data);
                self.chains[end].target = Some(remote);
                if request.immediate.is_some() {
                    receive = Some(self.receive(end, request, &[]));
                }
                Operation::Write { address, rkey }
            }
            Verb::Read => {
                self.scatter(own, &parts, &before);
                self.chains[end].read.clone_from(&parts);
                // A repeated READ reads anew, so nothing is written there until all is done.
                self.chains[end].target = self.setup.faults.is_empty().then_some(remote);
                Operation::Read { address, rkey }
            }
            Verb::FetchAdd { add } => {
                self.scatter(own, &parts, &before);
                let sum = number(&before).wrapping_add(add);
                let memory = &mut self.testbed.sides[peer].memory;
                memory.expect(remote, &sum.to_ne_bytes());
                Operation::FetchAdd { address, rkey, add }
            }
            Verb::CompareSwap { hits, swap } => {
                self.scatter(own, &parts, &before);
                let there = number(&before);
                let compare = if hits { there } else { !there };
                if hits {
                    let memory = &mut self.testbed.sides[peer].memory;
                    memory.expect(remote, &swap.to_ne_bytes());
                }
                Operation::CompareSwap { address, rkey, compare, swap }
            }
        };
        if let Some((expected, _)) = &mut receive
            && matches!(request.verb, Verb::Write)
        {
            expected.kind = CompletionKind::ReceiveRdmaWithImmediate;
            expected.length_bytes = Some(bytes as u32);
        }
        let (sges, inline_bytes) = if inline {
            let data = self.gather(own, &parts);
            (inline_elements(&data, &parts), data)
        } else {
            (self.elements(own, &parts), Vec::new())
        };
        let placed = Placed {
            expected: Expected {
                // libibverbs defines the length only for receives and READs.
                length_bytes: (!sends).then_some(bytes as u32),
                ..Expected::of(wr_id, Status::Success, operation)
            },
            operation,
            immediate: request.immediate.filter(|_| sends),
            signaled: request.signaled,
            fence,
            inline,
            sges,
            inline_bytes,
        };
        (placed, receive)
    }

    /// The peer's receive for a message; `data` is what it receives.
    fn receive(&mut self, end: usize, request: &Request, data: &[u8]) -> PlacedReceive {
        let endpoint = &mut self.testbed.endpoints[end ^ 1];
        let wr_id = endpoint.wr_id();
        let (side, most) = (endpoint.side, endpoint.capacities.recv_sges);
        let bytes = data.len() + request.receive_spare;
        let parts = self.deal(side, bytes, &request.receive_cuts, most, request.gap, false);
        self.scatter(side, &parts, data);
        let expected = Expected {
            length_bytes: Some(data.len() as u32),
            immediate: request.immediate,
            ..Expected::receive(wr_id, Status::Success)
        };
        (expected, self.elements(side, &parts))
    }

    fn sides(&self, end: usize) -> [usize; 2] {
        let own = self.testbed.endpoints[end].side;
        [own, 1 - own]
    }

    /// Parts of this many bytes in total, split at `cuts`, at most as many as the QP allows.
    fn deal(
        &mut self,
        side: usize,
        bytes: usize,
        cuts: &[u16],
        most: u32,
        gap: usize,
        aligned: bool,
    ) -> Vec<Part> {
        if bytes == 0 && cuts.is_empty() {
            return Vec::new();
        }
        let cuts = &cuts[..cuts.len().min(most as usize - 1)];
        let mut ends: Vec<usize> =
            cuts.iter().map(|cut| (bytes * usize::from(*cut)) >> 16).chain([bytes]).collect();
        ends.sort_unstable();
        let mut start = 0;
        let memory = &mut self.testbed.sides[side].memory;
        ends.into_iter()
            .map(|end| memory.deal(end - mem::replace(&mut start, end), gap, aligned))
            .collect()
    }

    fn elements(&self, side: usize, parts: &[Part]) -> Vec<Sge> {
        let side = &self.testbed.sides[side];
        parts.iter().map(|part| side.element(*part)).collect()
    }

    fn gather(&self, side: usize, parts: &[Part]) -> Vec<u8> {
        let memory = &self.testbed.sides[side].memory;
        parts.iter().map(|part| memory.expected(*part)).collect::<Vec<_>>().concat()
    }

    fn scatter(&mut self, side: usize, parts: &[Part], mut data: &[u8]) {
        let memory = &mut self.testbed.sides[side].memory;
        for part in parts {
            let (now, rest) = data.split_at(data.len().min(part.bytes));
            memory.expect(*part, now);
            data = rest;
        }
    }
}

/// Elements that point into `data`, which is in no region.
fn inline_elements(data: &[u8], parts: &[Part]) -> Vec<Sge> {
    let mut at = 0;
    parts
        .iter()
        .map(|part| {
            let address = data.as_ptr() as u64 + at;
            at += part.bytes as u64;
            Sge { address, length_bytes: part.bytes as u32, lkey: 0xdead_beef }
        })
        .collect()
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().unwrap())
}
