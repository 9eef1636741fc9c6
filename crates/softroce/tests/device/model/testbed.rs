//! A network in memory with two sides, in its own time: their devices, CQs, QPs and memory, and the expected
//! completions: each must be the next one expected of its QP. The memory of a side is the bytes that the device
//! reads and writes, and those that the model expects there; parts of it are dealt out so that no two requests on
//! their way share a byte.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use softroce::net::Faults;
use softroce::transport::{
    Access, Attached, Capacities, Completion, CompletionKind, Cq, Deliveries, Kind, Nic, Operation,
    PdId, Qp, QpEvent, SendRequest, Sge, State, Status, World,
};

use crate::model::scenario::{ALL_ACCESS, Setup};
use crate::support::end::{connection, post, qp_options, register};

/// Bytes before and after the registered region that nobody may touch.
const GUARD_BYTES: usize = 4096;
/// Bytes at the start of the region that are never assigned: one atomic counter for each QP.
pub const COUNTER_BYTES: usize = 64;

pub fn random(numbers: &mut Rng, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    numbers.fill(&mut bytes);
    bytes
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Part {
    pub offset: usize,
    pub bytes: usize,
}

/// A region between two guards, and the expected contents of all three.
pub struct Memory {
    start: *mut u8,
    // Aligned as atomics need it. Only `start` leads there.
    _words: Vec<u64>,
    expected: Vec<u8>,
    dealt: usize,
}

impl Memory {
    pub fn new(region_bytes: usize, numbers: &mut Rng) -> Memory {
        let bytes = region_bytes + 2 * GUARD_BYTES;
        let mut words = vec![0; bytes / 8];
        let start: *mut u8 = words.as_mut_ptr().cast();
        let expected = random(numbers, bytes);
        // SAFETY: `start` has room for `bytes` bytes, and nobody else knows it yet.
        unsafe { start.copy_from_nonoverlapping(expected.as_ptr(), bytes) };
        Memory { start, _words: words, expected, dealt: COUNTER_BYTES }
    }

    pub fn region_bytes(&self) -> usize {
        self.expected.len() - 2 * GUARD_BYTES
    }

    pub fn region_address(&self) -> u64 {
        self.start as u64 + GUARD_BYTES as u64
    }

    pub fn address(&self, part: Part) -> u64 {
        self.region_address() + part.offset as u64
    }

    pub fn room(&self) -> usize {
        self.region_bytes() - self.dealt
    }

    pub fn collect(&mut self) {
        self.dealt = COUNTER_BYTES;
    }

    /// A part that no other request has, `gap` bytes after the last one; `aligned` to a multiple of 8.
    pub fn deal(&mut self, bytes: usize, gap: usize, aligned: bool) -> Part {
        let multiple = if aligned { 8 } else { 1 };
        let offset = (self.dealt + gap).next_multiple_of(multiple);
        self.dealt = offset + bytes;
        assert!(self.dealt <= self.region_bytes(), "dealt out too much");
        Part { offset, bytes }
    }

    fn range(part: Part) -> Range<usize> {
        let start = GUARD_BYTES + part.offset;
        start..start + part.bytes
    }

    pub fn expected(&self, part: Part) -> &[u8] {
        &self.expected[Memory::range(part)]
    }

    /// Writes `bytes` to the start of the part in the model; drops what does not fit.
    pub fn expect(&mut self, part: Part, bytes: &[u8]) {
        let range = Memory::range(part);
        for (to, from) in self.expected[range].iter_mut().zip(bytes) {
            *to = *from;
        }
    }

    pub fn put(&mut self, part: Part, bytes: &[u8]) {
        assert_eq!(part.bytes, bytes.len());
        self.expect(part, bytes);
        // SAFETY: the part lies in the region (`range` was just used on as many bytes); requests that are on
        // their way have other parts.
        unsafe {
            let to = self.start.add(Memory::range(part).start);
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    fn real(&self) -> &[u8] {
        // SAFETY: the allocation has this length and was initialised; no request is on its way.
        unsafe { std::slice::from_raw_parts(self.start, self.expected.len()) }
    }

    /// The first difference between memory and model, in words. Call it only while no request is in flight.
    pub fn difference(&self) -> Option<String> {
        let real = self.real();
        if real == self.expected {
            return None;
        }
        let wrong: Vec<usize> =
            (0..real.len()).filter(|index| real[*index] != self.expected[*index]).collect();
        let (count, first, last) = (wrong.len(), *wrong.first()?, *wrong.last()?);
        let (is, should_be) = (real[first], self.expected[first]);
        Some(format!(
            "{count} bytes differ, from {first} to {last} after a start of {GUARD_BYTES} bytes that nobody may touch: \
             {is:#04x}, the model has {should_be:#04x}"
        ))
    }

    /// Copies a part from memory to the model, after a request that may have left anything there.
    pub fn accept(&mut self, part: Part) {
        let range = Memory::range(part);
        let real = self.real()[range.clone()].to_vec();
        self.expected[range].copy_from_slice(&real);
    }
}

/// More than any case takes.
const MOST_STEPS: usize = 10_000_000;
/// A flag in the `wr_id` of receives.
const RECEIVE: u64 = 1 << 63;
pub const PD: PdId = PdId(1);

#[derive(Clone, Debug)]
pub struct Expected {
    pub wr_id: u64,
    pub status: Status,
    pub kind: CompletionKind,
    pub length_bytes: Option<u32>,
    pub attached: Attached,
}

impl Expected {
    /// Of a send that does this.
    pub fn new(wr_id: u64, status: Status, operation: Operation) -> Expected {
        let kind = match operation {
            Operation::Send | Operation::SendInvalidate { .. } => CompletionKind::Send,
            Operation::Write { .. } => CompletionKind::RdmaWrite,
            Operation::Read { .. } => CompletionKind::RdmaRead,
            Operation::FetchAdd { .. } => CompletionKind::FetchAdd,
            Operation::CompareSwap { .. } => CompletionKind::CompareSwap,
            Operation::Bind { .. } => CompletionKind::BindMw,
            Operation::Invalidate { .. } => CompletionKind::LocalInvalidate,
        };
        Expected { wr_id, status, kind, length_bytes: None, attached: Attached::Nothing }
    }

    /// Of a receive that may have any length.
    pub fn receive(wr_id: u64, status: Status) -> Expected {
        Expected {
            kind: CompletionKind::Receive,
            ..Expected::new(wr_id | RECEIVE, status, Operation::Send)
        }
    }
}

pub struct Endpoint {
    pub qp: Qp,
    pub side: usize,
    pub capacities: Capacities,
    /// Signalled sends whose completion has not come.
    pub sends: VecDeque<Expected>,
    /// Receives whose completion has not come.
    pub receives: VecDeque<Expected>,
    /// Sends that may still be in the queue: those since the last completion.
    pub queued: VecDeque<u64>,
    pub events: Arc<Mutex<Vec<QpEvent>>>,
    next_wr_id: u64,
}

pub struct Side {
    pub nic: Arc<Nic>,
    pub memory: Memory,
    pub key: u32,
    cqs: Cqs,
}

/// One or two CQs of a side.
#[derive(Clone)]
struct Cqs {
    queues: Vec<Cq>,
    /// Whether one that was armed has told of a completion.
    has_event: Arc<AtomicBool>,
}

/// Both sides. The ends of pair `n` are endpoints `2n` on side 0 and `2n + 1` on side 1.
pub struct Testbed {
    pub endpoints: Vec<Endpoint>,
    pub sides: [Side; 2],
    world: World,
    overrun: Arc<AtomicBool>,
}

impl Endpoint {
    /// A number for the next request, greater than all before.
    pub fn wr_id(&mut self) -> u64 {
        self.next_wr_id += 1;
        self.next_wr_id
    }

    /// Sends for which there is certainly room.
    pub fn room(&self) -> usize {
        self.capacities.send_wrs as usize - self.queued.len()
    }

    pub fn post(&mut self, requests: &[SendRequest<'_>]) {
        self.queued.extend(requests.iter().map(|request| request.wr_id));
        let posted = post(&self.qp, requests);
        assert_eq!(posted, Ok(()), "post_send of {requests:?}");
    }

    pub fn post_recv(&mut self, expected: Expected, sges: &[Sge]) {
        let posted = self.qp.post_recv(expected.wr_id, sges);
        self.receives.push_back(expected);
        assert_eq!(posted, Ok(()), "post_recv of {sges:?}");
    }
}

impl Side {
    fn new(nic: Arc<Nic>, setup: &Setup, cqs: Cqs, access: Access, numbers: &mut Rng) -> Side {
        let memory = Memory::new(setup.region_bytes, numbers);
        let mut side = Side { nic, memory, key: 0, cqs };
        side.key = side.register(PD, setup.region_bytes, access);
        side
    }

    /// Registers as much of its region, for a protection domain and with access of its own; returns the key.
    pub fn register(&self, pd: PdId, length_bytes: usize, access: Access) -> u32 {
        let start = self.memory.region_address();
        // SAFETY: the memory lives until `Testbed` is dropped, which destroys the QPs first.
        unsafe { register(&self.nic, pd, start, length_bytes, access) }
    }

    /// Where a peer finds it.
    pub fn remote(&self, part: Part) -> (u64, u32) {
        (self.memory.address(part), self.key)
    }

    pub fn element(&self, part: Part) -> Sge {
        Sge { address: self.memory.address(part), length_bytes: part.bytes as u32, lkey: self.key }
    }
}

impl Testbed {
    /// Connects everything. The access flags of `setup` apply to side 1; side 0 has all access.
    pub fn new(setup: &Setup) -> Testbed {
        let faults: Faults = setup.faults.parse().unwrap();
        let link: Faults = setup.link.parse().unwrap();
        let world = World::new(setup.seed, link.transmit);
        let first = world.nic(&faults, None).unwrap();
        let second =
            if setup.same_nic { Arc::clone(&first) } else { world.nic(&faults, None).unwrap() };
        let overrun = Arc::new(AtomicBool::new(false));
        let room = setup.pairs.iter().flatten().map(|end| end.capacities);
        let room: u32 = room.map(|room| room.send_wrs + room.recv_wrs).sum();
        let cqs = |nic: &Arc<Nic>| {
            let has_event = Arc::new(AtomicBool::new(false));
            let flag = |flag: &Arc<AtomicBool>| {
                let flag = Arc::clone(flag);
                Box::new(move || flag.store(true, Ordering::Relaxed))
            };
            let queues = (0..if setup.one_cq { 1 } else { 2 })
                .map(|_| {
                    Cq::with_stamps(nic, room as usize, false, flag(&has_event), flag(&overrun))
                })
                .collect();
            Cqs { queues, has_event }
        };
        let mut numbers = Rng::with_seed(setup.seed);
        let first_cqs = cqs(&first);
        // With one device and one CQ per side, both sides share the CQ.
        let second_cqs =
            if setup.same_nic && setup.one_cq { first_cqs.clone() } else { cqs(&second) };
        let sides = [
            Side::new(first, setup, first_cqs, ALL_ACCESS, &mut numbers),
            Side::new(second, setup, second_cqs, setup.region_access, &mut numbers),
        ];
        let mut testbed = Testbed { endpoints: Vec::new(), sides, world, overrun };
        testbed.connect(setup);
        testbed
    }

    fn connect(&mut self, setup: &Setup) {
        for pair in &setup.pairs {
            for (side, end) in pair.iter().enumerate() {
                self.create(side, end.capacities);
            }
            let at = self.endpoints.len() - 2;
            for side in 0..2 {
                let (own, peer) = (&pair[side], &pair[1 - side]);
                let qp = &self.endpoints[at + side].qp;
                qp.initialize([ALL_ACCESS, setup.qp_access][side], 0);
                let address = self.sides[1 - side].nic.address();
                let qpn = self.endpoints[at + 1 - side].qp.number();
                let connection = connection(address, qpn, setup.mtu_bytes);
                let takes = peer.max_rd_atomic + peer.spare_rd_atomic;
                qp.ready_to_receive(Some(connection), peer.sq_psn, takes, setup.min_rnr_timer);
                let deliveries = Deliveries {
                    timeout: setup.timeout,
                    retry_count: setup.retry_count,
                    rnr_retry: setup.rnr_retry,
                    max_rd_atomic: own.max_rd_atomic,
                };
                qp.ready_to_send(own.sq_psn, Some(deliveries));
                assert_eq!(qp.state(), State::Rts);
            }
        }
    }

    fn create(&mut self, side: usize, capacities: Capacities) {
        let cqs = &self.sides[side].cqs.queues;
        let events = Arc::default();
        let ends = [&cqs[0], &cqs[cqs.len() - 1]];
        let options = qp_options(Kind::Rc, ends, capacities, &events);
        let qp = Qp::new(&self.sides[side].nic, options).unwrap();
        let before = self.of_number(side, qp.number());
        assert_eq!(before, None, "two QPs of one number");
        self.endpoints.push(Endpoint {
            qp,
            side,
            capacities,
            sends: VecDeque::new(),
            receives: VecDeque::new(),
            queued: VecDeque::new(),
            events,
            next_wr_id: 0,
        });
    }

    /// The endpoint on the device of this side whose QP has this number.
    fn of_number(&self, side: usize, qpn: u32) -> Option<usize> {
        let nic = &self.sides[side].nic;
        self.endpoints
            .iter()
            .position(|one| one.qp.number() == qpn && Arc::ptr_eq(&self.sides[one.side].nic, nic))
    }

    /// Polls a side's CQs, up to `most` from each; returns how many completions came.
    pub fn poll(&mut self, side: usize, most: usize) -> usize {
        let mut seen = Vec::new();
        for cq in &self.sides[side].cqs.queues {
            let before = seen.len();
            let polled = cq.poll(most, |completion| seen.push(*completion));
            assert_eq!(polled, Ok(seen.len() - before));
            assert!(seen.len() - before <= most);
        }
        assert!(!self.overrun.load(Ordering::Relaxed), "a CQ overran");
        for completion in &seen {
            self.account(side, completion);
        }
        seen.len()
    }

    fn account(&mut self, side: usize, got: &Completion) {
        let Some(index) = self.of_number(side, got.qpn) else {
            panic!("there is no such QP, but {got:?} came");
        };
        let endpoint = &mut self.endpoints[index];
        let is_receive = got.wr_id & RECEIVE != 0;
        let expected = if is_receive {
            endpoint.receives.pop_front()
        } else {
            endpoint.queued.retain(|wr_id| *wr_id > got.wr_id);
            endpoint.sends.pop_front()
        };
        let Some(expected) = expected else {
            panic!("nothing was expected of endpoint {index}, but {got:?} came");
        };
        let mut fits = got.wr_id == expected.wr_id && got.status == expected.status;
        if expected.status == Status::Success {
            let length = expected.length_bytes;
            fits &= got.kind == expected.kind
                && length.is_none_or(|length| got.length_bytes == length)
                && (!is_receive || got.attached == expected.attached);
        }
        assert!(fits, "endpoint {index}: expected {expected:?}, but {got:?} came{}", self.tell());
    }

    /// Polls, and lets time pass where nothing comes, until it is done.
    #[track_caller]
    pub fn until(&mut self, what: &str, done: impl Fn(&Testbed) -> bool) {
        for _ in 0..MOST_STEPS {
            if done(self) {
                return;
            }
            let came = self.poll(0, 16) + self.poll(1, 16) > 0;
            if !came && !self.world.step() && !done(self) {
                panic!("nothing more comes, waiting for {what}: {}", self.tell());
            }
        }
        panic!("{what} does not come: {}", self.tell());
    }

    /// Sleeps until an event tells of a completion of this side, if there is one to come. Does not poll.
    pub fn sleep(&self, side: usize) {
        let mut own = self.endpoints.iter().filter(|one| one.side == side);
        if !own.any(|one| !(one.sends.is_empty() && one.receives.is_empty())) {
            return;
        }
        let Cqs { queues, has_event } = &self.sides[side].cqs;
        has_event.store(false, Ordering::Relaxed);
        for cq in queues {
            cq.arm(false);
            // Some may have come before.
            cq.remind();
        }
        while !has_event.load(Ordering::Relaxed) {
            assert!(self.world.step(), "no event comes: {}", self.tell());
        }
    }

    /// Waits until all completions have come, and checks that no other comes, however long one waits.
    #[track_caller]
    pub fn drained(&mut self) {
        self.until("all completions", |testbed| {
            testbed.endpoints.iter().all(|one| one.sends.is_empty() && one.receives.is_empty())
        });
        while self.world.step() {}
        self.poll(0, 16);
        self.poll(1, 16);
    }

    #[track_caller]
    pub fn memory_fits(&self) {
        for (index, side) in self.sides.iter().enumerate() {
            if let Some(difference) = side.memory.difference() {
                panic!("memory of side {index}: {difference}");
            }
        }
    }

    /// Waits until a QP has told so many events, and returns all.
    pub fn heard(&mut self, end: usize, count: usize) -> Vec<QpEvent> {
        let events = Arc::clone(&self.endpoints[end].events);
        let heard = || events.lock().unwrap().clone();
        self.until("an event", |_| heard().len() >= count);
        heard()
    }

    /// What there is to see of it.
    pub fn tell(&self) -> String {
        let endpoints = self.endpoints.iter().map(|one| {
            let qp = (one.qp.number(), one.qp.state(), one.qp.psns());
            let (sends, receives) = (&one.sends, &one.receives);
            format!("\n  QP {qp:x?}, sends to come: {sends:?}, receives: {receives:?}")
        });
        let counters = self.sides.each_ref().map(|side| side.nic.counters());
        endpoints.collect::<String>() + &format!("\n  {} ns, {counters:?}", self.world.now_ns())
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        for endpoint in &self.endpoints {
            endpoint.qp.destroy();
        }
        for side in &self.sides {
            side.nic.deregister(side.key).unwrap();
        }
    }
}
