//! Runs a scenario: posts requests with the memory that `place` assigns, within the limits of queues and memory,
//! polls, and from time to time waits until all is done and compares.
//!
//! Assigns memory to each request and applies it to the model at once. That is right because a QP's requests take
//! effect in order, and requests of different QPs use different bytes.

use std::mem;

use fastrand::Rng;
use softroce::transport::{
    Attached, CompletionKind, Operation, Payload, SendRequest, Sge, State, Status,
};

use crate::model::scenario::{Batch, LONGEST_BYTES, MOST_PAIRS, Request, Setup, Step, Verb};
use crate::model::testbed::{COUNTER_BYTES, Expected, Part, Testbed, random};
use crate::support::end::request;
use crate::support::look::counter;

#[derive(Clone, Default)]
struct Chain {
    /// Target of the last WRITE, or READ where it is read once.
    target: Option<Part>,
    /// Where the last READ writes.
    read: Vec<Part>,
}

struct Placed {
    expected: Expected,
    operation: Operation,
    immediate: Option<u32>,
    signaled: bool,
    fence: bool,
    inline: bool,
    sges: Vec<Sge>,
    inline_bytes: Vec<u8>,
}

type PlacedReceive = (Expected, Vec<Sge>);

pub struct Player<'a> {
    testbed: Testbed,
    setup: &'a Setup,
    chains: Vec<Chain>,
    /// Sends of each endpoint after its last signalled one.
    unsignaled: Vec<u32>,
    numbers: Rng,
}

/// Returns all that the devices counted, and when it ended.
pub fn play(setup: &Setup, steps: &[Step]) -> String {
    let testbed = Testbed::new(setup);
    let mut player = Player {
        chains: vec![Chain::default(); testbed.endpoints.len()],
        unsignaled: vec![0; testbed.endpoints.len()],
        testbed,
        setup,
        numbers: Rng::with_seed(steps.len() as u64),
    };
    for step in steps {
        match step {
            Step::Post(batch) => player.post(batch),
            Step::Poll(side, most) => {
                player.testbed.poll(*side, *most);
            }
            Step::Sleep(side) => player.testbed.sleep(*side),
            Step::Quiesce => player.quiesce(),
        }
    }
    player.quiesce();
    if setup.faults.is_empty() {
        for side in &player.testbed.sides {
            assert_eq!(counter(&side.nic, "timeouts"), 0, "nothing was lost");
        }
    }
    player.testbed.tell()
}

impl Player<'_> {
    fn quiesce(&mut self) {
        for end in 0..self.testbed.endpoints.len() {
            if self.unsignaled[end] > 0 {
                self.post_marker(end);
            }
        }
        self.testbed.drained();
        self.testbed.memory_fits();
        for endpoint in &self.testbed.endpoints {
            assert_eq!(endpoint.qp.state(), State::Rts);
            assert_eq!(*endpoint.events.lock().unwrap(), []);
        }
        for side in &mut self.testbed.sides {
            side.memory.collect();
        }
        self.chains.fill(Chain::default());
    }

    /// Posts a signalled WRITE of no bytes; its completion shows that everything before it is done.
    fn post_marker(&mut self, end: usize) {
        let what = format!("room for a last send of endpoint {end}");
        self.testbed.until(&what, |testbed| testbed.endpoints[end].room() > 0);
        let endpoint = &mut self.testbed.endpoints[end];
        let wr_id = endpoint.wr_id();
        let peer = &self.testbed.sides[1 - endpoint.side];
        let (address, rkey) = (peer.memory.region_address(), peer.key);
        let operation = Operation::Write { address, rkey };
        let expected = Expected::new(wr_id, Status::Success, operation);
        endpoint.sends.push_back(expected);
        self.unsignaled[end] = 0;
        endpoint.post(&[request(wr_id, operation, &[])]);
    }

    fn post(&mut self, batch: &Batch) {
        let end = batch.end % self.testbed.endpoints.len();
        let most = self.testbed.endpoints[end].capacities.send_wrs as usize;
        let requests = &batch.requests[..batch.requests.len().min(most)];
        self.make_room(end, requests);

        let mut sends = Vec::new();
        let mut receives = Vec::new();
        for request in requests {
            let (placed, receive) = self.place(end, request);
            sends.push(placed);
            receives.extend(receive);
        }
        let early = receives.len().saturating_sub(batch.late);
        let late = receives.split_off(early);
        let mut receives = receives.into_iter();
        // Receives for which there is no room must also be posted late.
        let peer = &mut self.testbed.endpoints[end ^ 1];
        while peer.receives.len() < peer.capacities.recv_wrs as usize
            && let Some((expected, sges)) = receives.next()
        {
            peer.post_recv(expected, &sges);
        }
        self.hand_over(end, sends);
        for _ in 0..batch.polls_before_late.min(late.len() * 40) {
            self.testbed.poll(0, 4);
            self.testbed.poll(1, 4);
        }
        for (expected, sges) in receives.chain(late) {
            let what = format!("room for a receive of endpoint {}", end ^ 1);
            self.testbed.until(&what, |testbed| {
                let endpoint = &testbed.endpoints[end ^ 1];
                endpoint.receives.len() < endpoint.capacities.recv_wrs as usize
            });
            self.testbed.endpoints[end ^ 1].post_recv(expected, &sges);
        }
    }

    fn make_room(&mut self, end: usize, requests: &[Request]) {
        let needed: usize = requests
            .iter()
            .map(|request| {
                let bytes = if request.chained {
                    LONGEST_BYTES
                } else {
                    request.length.bytes(self.setup.mtu_bytes)
                };
                bytes + request.receive_spare + 4 * (request.gap + 8)
            })
            .sum();
        let mut sides = self.testbed.sides.iter();
        if sides.any(|side| side.memory.room() < needed) {
            self.quiesce();
        }
        let unsignaled = self.unsignaled[end] as usize;
        let room = |testbed: &Testbed| testbed.endpoints[end].room() >= requests.len();
        if !room(&self.testbed) && unsignaled > 0 {
            self.post_marker(end);
        }
        self.testbed.until(&format!("room for sends of endpoint {end}"), room);
    }

    fn hand_over(&mut self, end: usize, mut sends: Vec<Placed>) {
        let endpoint = &mut self.testbed.endpoints[end];
        for send in &mut sends {
            // If a full queue had only unsignalled sends, no completion would show that it has room again.
            send.signaled |= self.unsignaled[end] + 1 >= endpoint.capacities.send_wrs;
            if send.signaled {
                self.unsignaled[end] = 0;
                endpoint.sends.push_back(send.expected.clone());
            } else {
                self.unsignaled[end] += 1;
            }
        }
        let requests = sends.iter().map(|send| SendRequest {
            immediate: send.immediate,
            signaled: send.signaled,
            fence: send.fence,
            payload: if send.inline {
                Payload::Inline(&send.sges)
            } else {
                Payload::Registered(&send.sges)
            },
            ..request(send.expected.wr_id, send.operation, &send.sges)
        });
        endpoint.post(&requests.collect::<Vec<_>>());
        for send in &mut sends {
            // The caller may change inline bytes after the call.
            send.inline_bytes.fill(0xee);
        }
    }
}

const _: () = assert!(2 * MOST_PAIRS * 8 <= COUNTER_BYTES);

impl Player<'_> {
    fn place(&mut self, end: usize, request: &Request) -> (Placed, Option<PlacedReceive>) {
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
                ..Expected::new(wr_id, Status::Success, operation)
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
            attached: request.immediate.map_or(Attached::Nothing, Attached::Immediate),
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
