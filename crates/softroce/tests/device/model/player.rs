//! Runs a scenario: posts requests with the memory that `place` assigns, within the limits of queues and memory,
//! polls, and from time to time waits until all is done and compares.

mod place;

use fastrand::Rng;
use softroce::transport::{Operation, Payload, SendRequest, Sge, State, Status};

use super::memory::Part;
use super::scenario::{Batch, LONGEST_BYTES, Request, Setup, Step};
use super::testbed::{Expected, Testbed};
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
        let expected = Expected::of(wr_id, Status::Success, operation);
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
                let peer = &testbed.endpoints[end ^ 1];
                peer.receives.len() < peer.capacities.recv_wrs as usize
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
