//! For hand-written cases: single requests with their bytes, their memory and their expected status.

use softroce::transport::{CompletionKind, Operation, SendRequest, Sge, State, Status};

use super::memory::{Numbers, Part};
use super::scenario::Setup;
use super::testbed::{Expected, RECEIVE, Testbed};
use crate::support::end::request;

/// A testbed and a source of bytes.
pub struct Script {
    pub testbed: Testbed,
    numbers: Numbers,
}

impl Script {
    pub fn new(setup: &Setup) -> Script {
        Script {
            testbed: Testbed::new(setup),
            numbers: Numbers::new(1),
        }
    }

    pub fn fresh(&mut self, side: usize, bytes: usize) -> Part {
        let memory = &mut self.testbed.sides[side].memory;
        let part = memory.deal(bytes, 3, bytes == 8);
        let fresh = self.numbers.bytes(bytes);
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
        let kind = match operation {
            Operation::Send => CompletionKind::Send,
            Operation::Write { .. } => CompletionKind::RdmaWrite,
            Operation::Read { .. } => CompletionKind::RdmaRead,
            Operation::FetchAdd { .. } => CompletionKind::FetchAdd,
            Operation::CompareSwap { .. } => CompletionKind::CompareSwap,
        };
        let endpoint = &mut self.testbed.endpoints[end];
        let wr_id = endpoint.wr_id();
        endpoint.sends.push_back(Expected::of(wr_id, status, kind));
        endpoint.post(&[SendRequest {
            immediate,
            // A flush also completes unsignalled requests.
            signaled: status != Status::FlushError,
            ..request(wr_id, operation, sges)
        }]);
    }

    /// A valid WRITE; applied to the model if it is to succeed.
    pub fn write(&mut self, end: usize, bytes: usize, status: Status) {
        let own = self.testbed.endpoints[end].side;
        let source = self.fresh(own, bytes);
        let target = self.fresh(1 - own, bytes);
        let element = self.testbed.sides[own].element(source);
        let data = self.testbed.sides[own].memory.expected(source).to_vec();
        let peer = &mut self.testbed.sides[1 - own];
        if status == Status::Success {
            peer.memory.expect(target, &data);
        }
        let operation = Operation::Write {
            address: peer.memory.address(target),
            rkey: peer.key,
        };
        self.post(end, operation, None, &[element], status);
    }

    /// A valid READ; applied to the model if it is to succeed.
    pub fn read(&mut self, end: usize, bytes: usize, status: Status) {
        let own = self.testbed.endpoints[end].side;
        let target = self.fresh(own, bytes);
        let source = self.fresh(1 - own, bytes);
        let element = self.testbed.sides[own].element(target);
        let peer = &self.testbed.sides[1 - own];
        let operation = Operation::Read {
            address: peer.memory.address(source),
            rkey: peer.key,
        };
        if status == Status::Success {
            let data = peer.memory.expected(source).to_vec();
            self.testbed.sides[own].memory.expect(target, &data);
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
        let wr_id = endpoint.wr_id() | RECEIVE;
        let expected = Expected {
            length_bytes,
            ..Expected::of(wr_id, status, CompletionKind::Receive)
        };
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

    /// Checks that a QP in ERR flushes new requests.
    #[track_caller]
    pub fn flushes_what_is_posted_now(&mut self, end: usize) {
        self.write(end, 8, Status::FlushError);
        self.receive(end, 8, None, Status::FlushError);
        self.testbed.drained();
        self.testbed.memory_fits();
    }
}
