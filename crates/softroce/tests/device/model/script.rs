//! For hand-written cases: single requests with their bytes, their memory and their expected status.

use softroce::transport::{CompletionKind, Operation, Payload, SendRequest, Sge, State, Status};

use super::memory::{Numbers, Part};
use super::scenario::Setup;
use super::testbed::{Expected, RECEIVE, Testbed};

/// A testbed and a source of bytes.
pub struct Script {
    pub testbed: Testbed,
    numbers: Numbers,
}

impl Script {
    /// A new, connected testbed.
    pub fn new(setup: &Setup) -> Script {
        Script {
            testbed: Testbed::new(setup),
            numbers: Numbers::new(1),
        }
    }

    /// A part of a side with new bytes.
    pub fn fresh(&mut self, side: usize, bytes: usize) -> Part {
        let memory = &mut self.testbed.sides[side].memory;
        let part = memory.deal(bytes, 3, bytes == 8);
        let fresh = self.numbers.bytes(bytes);
        memory.put(part, &fresh);
        part
    }

    /// The part as one element.
    pub fn element(&self, side: usize, part: Part) -> Sge {
        let side = &self.testbed.sides[side];
        Sge {
            address: side.memory.address(part),
            length_bytes: part.bytes as u32,
            lkey: side.key,
        }
    }

    /// A new part as an element.
    pub fn fresh_element(&mut self, side: usize, bytes: usize) -> Sge {
        let part = self.fresh(side, bytes);
        self.element(side, part)
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
        endpoint.sends.push_back(Expected {
            wr_id,
            status,
            kind,
            length_bytes: None,
            immediate: None,
        });
        endpoint.post(&[SendRequest {
            wr_id,
            operation,
            immediate,
            // A flush also completes unsignalled requests.
            signaled: status != Status::FlushError,
            solicited: false,
            fence: false,
            payload: Payload::Registered(sges),
            datagram: None,
        }]);
    }

    /// A valid WRITE; applied to the model if it is to succeed.
    pub fn write(&mut self, end: usize, bytes: usize, status: Status) {
        let own = self.testbed.endpoints[end].side;
        let source = self.fresh(own, bytes);
        let target = self.fresh(1 - own, bytes);
        let element = self.element(own, source);
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
        let element = self.element(own, target);
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
        let element = self.element(own, source);
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
        let element = self.element(side, part);
        self.receive_into(end, element, length_bytes, status);
        part
    }

    /// A receive into this element.
    pub fn receive_into(
        &mut self,
        end: usize,
        element: Sge,
        length_bytes: Option<u32>,
        status: Status,
    ) {
        let endpoint = &mut self.testbed.endpoints[end];
        let expected = Expected {
            wr_id: endpoint.wr_id() | RECEIVE,
            status,
            kind: CompletionKind::Receive,
            length_bytes,
            immediate: None,
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
