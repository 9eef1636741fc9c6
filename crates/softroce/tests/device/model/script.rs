//! For hand-written cases: single requests with their bytes, their memory and their expected status.

use fastrand::Rng;
use softroce::transport::{Operation, SendRequest, Sge, State, Status};

use super::memory::{Part, random};
use super::scenario::Setup;
use super::testbed::{Expected, Testbed};
use crate::support::end::request;

pub struct Script {
    pub testbed: Testbed,
    numbers: Rng,
}

impl Script {
    pub fn new(setup: &Setup) -> Script {
        Script { testbed: Testbed::new(setup), numbers: Rng::with_seed(1) }
    }

    pub fn fresh(&mut self, side: usize, bytes: usize) -> Part {
        let memory = &mut self.testbed.sides[side].memory;
        let part = memory.deal(bytes, 3, bytes == 8);
        let fresh = random(&mut self.numbers, bytes);
        memory.put(part, &fresh);
        part
    }

    pub fn fresh_element(&mut self, side: usize, bytes: usize) -> Sge {
        let part = self.fresh(side, bytes);
        self.testbed.sides[side].element(part)
    }

    /// Posts a signalled request that must end with `status`; does not change the model.
    pub fn post(
        &mut self,
        end: usize,
        operation: Operation,
        immediate: Option<u32>,
        sges: &[Sge],
        status: Status,
    ) {
        let endpoint = &mut self.testbed.endpoints[end];
        let wr_id = endpoint.wr_id();
        let expected = Expected::of(wr_id, status, operation);
        endpoint.sends.push_back(expected);
        endpoint.post(&[SendRequest {
            immediate,
            // A flush also completes unsignalled requests.
            signaled: status != Status::FlushError,
            ..request(wr_id, operation, sges)
        }]);
    }

    pub fn write(&mut self, end: usize, bytes: usize, status: Status) {
        self.transfer(end, bytes, status, false);
    }

    pub fn read(&mut self, end: usize, bytes: usize, status: Status) {
        self.transfer(end, bytes, status, true);
    }

    /// A valid WRITE or READ; applied to the model if it is to succeed.
    fn transfer(&mut self, end: usize, bytes: usize, status: Status, reads: bool) {
        let own = self.testbed.endpoints[end].side;
        let (here, there) = (self.fresh(own, bytes), self.fresh(1 - own, bytes));
        let element = self.testbed.sides[own].element(here);
        let (address, rkey) = self.testbed.sides[1 - own].remote(there);
        let (here, there) = ((own, here), (1 - own, there));
        let (operation, from, to) = if reads {
            (Operation::Read { address, rkey }, there, here)
        } else {
            (Operation::Write { address, rkey }, here, there)
        };
        if status == Status::Success {
            let data = self.testbed.sides[from.0].memory.expected(from.1).to_vec();
            self.testbed.sides[to.0].memory.expect(to.1, &data);
        }
        self.post(end, operation, None, &[element], status);
    }

    /// A SEND of new bytes; returns them.
    pub fn send(&mut self, end: usize, bytes: usize, status: Status) -> Vec<u8> {
        let own = self.testbed.endpoints[end].side;
        let source = self.fresh(own, bytes);
        let element = self.testbed.sides[own].element(source);
        self.post(end, Operation::Send, None, &[element], status);
        self.testbed.sides[own].memory.expected(source).to_vec()
    }

    /// A receive of this many bytes that must end with `status` and report `length_bytes`.
    pub fn receive(
        &mut self,
        end: usize,
        bytes: usize,
        length_bytes: Option<u32>,
        status: Status,
    ) -> Part {
        let side = self.testbed.endpoints[end].side;
        let part = self.fresh(side, bytes);
        let element = self.testbed.sides[side].element(part);
        self.receive_into(end, element, length_bytes, status);
        part
    }

    pub fn receive_into(
        &mut self,
        end: usize,
        element: Sge,
        length_bytes: Option<u32>,
        status: Status,
    ) {
        let endpoint = &mut self.testbed.endpoints[end];
        let expected = Expected { length_bytes, ..Expected::receive(endpoint.wr_id(), status) };
        endpoint.post_recv(expected, &[element]);
    }

    /// Checks that all completions come, memory equals the model, and the QPs of pair 0 have these states.
    #[track_caller]
    pub fn ends(&mut self, states: [State; 2]) {
        self.testbed.drained();
        self.testbed.memory_fits();
        let states_now = [0, 1].map(|end| self.testbed.endpoints[end].qp.state());
        assert_eq!(states_now, states);
    }

    #[track_caller]
    pub fn flushes_what_is_posted_now(&mut self, end: usize) {
        self.write(end, 8, Status::FlushError);
        self.receive(end, 8, None, Status::FlushError);
        self.testbed.drained();
        self.testbed.memory_fits();
    }
}
