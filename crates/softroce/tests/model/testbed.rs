//! Two sides with their devices, CQs, QPs and memory, and the expected completions: each must be the next one
//! expected of its QP. It does not know what requests do.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use softroce::net::Faults;
use softroce::transport::{
    Capacities, Completion, CompletionKind, Connection, Cq, Deliveries, Kind, Nic, NicOptions,
    PdId, Qp, QpEvent, QpOptions, ReceiveSource, Region, SendRequest, Sge, State, Status,
};

use crate::memory::{Memory, Numbers};
use crate::scenario::Setup;

/// A wait longer than this is a hang.
const DEADLINE: Duration = Duration::from_secs(20);
/// A flag in the `wr_id` of receives.
pub const RECEIVE: u64 = 1 << 63;
/// The protection domain of all objects.
pub const PD: PdId = PdId(1);

/// Why a case fails.
#[derive(Debug)]
pub enum Trouble {
    /// Something differs from the model.
    Wrong(String),
    /// Something expected did not come.
    Hung(String),
    /// A request used up its retries. Under faults that can happen by chance.
    RetriesUsedUp(String),
}

/// The result of a check.
pub type Checked<T = ()> = Result<T, Trouble>;

/// An expected completion.
#[derive(Clone, Debug)]
pub struct Expected {
    pub wr_id: u64,
    pub status: Status,
    pub kind: CompletionKind,
    /// Checked if set.
    pub length_bytes: Option<u32>,
    /// Checked for receives.
    pub immediate: Option<u32>,
}

/// One QP and its expected completions.
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

/// One side.
pub struct Side {
    pub nic: Arc<Nic>,
    pub memory: Memory,
    /// Key of its region.
    pub key: u32,
    /// One or two CQs.
    cqs: Vec<Cq>,
}

/// Both sides. The ends of pair `n` are endpoints `2n` on side 0 and `2n + 1` on side 1.
pub struct Testbed {
    pub endpoints: Vec<Endpoint>,
    by_number: HashMap<(usize, u32), usize>,
    pub sides: [Side; 2],
    same_nic: bool,
    overrun: Arc<AtomicBool>,
    seen: Vec<Completion>,
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

    /// Posts sends in one call.
    pub fn post(&mut self, requests: &[SendRequest<'_>]) -> Checked {
        self.queued
            .extend(requests.iter().map(|request| request.wr_id));
        let mut next = requests.iter().copied();
        // SAFETY: inline elements point to bytes of the caller, which outlive the call.
        let posted = unsafe { self.qp.post_send(|| next.next()) };
        posted.map_err(|error| Trouble::Wrong(format!("post_send of {requests:?}: {error}")))
    }

    /// Posts a receive.
    pub fn post_recv(&mut self, expected: Expected, sges: &[Sge]) -> Checked {
        let posted = self.qp.post_recv(expected.wr_id, sges);
        self.receives.push_back(expected);
        posted.map_err(|error| Trouble::Wrong(format!("post_recv of {sges:?}: {error}")))
    }
}

fn side(
    nic: Arc<Nic>,
    setup: &Setup,
    cqs: Vec<Cq>,
    access: softroce::transport::Access,
    numbers: &mut Numbers,
) -> Side {
    let memory = Memory::new(setup.region_bytes, numbers);
    let region = Region {
        pd: PD,
        address: memory.region_address(),
        length_bytes: memory.region_bytes() as u64,
        iova: memory.region_address(),
        access,
    };
    // SAFETY: the memory lives until `Testbed` is dropped, which deregisters the region first.
    let key = unsafe { nic.register(region) }.unwrap();
    Side {
        nic,
        memory,
        key,
        cqs,
    }
}

impl Testbed {
    /// Connects everything. The access flags of `setup` apply to side 1; side 0 has all access.
    pub fn new(setup: &Setup) -> Testbed {
        let faults: Faults = setup.faults.parse().unwrap();
        let options = NicOptions {
            faults,
            ..NicOptions::default()
        };
        let first = Nic::open(&options).unwrap();
        let second = if setup.same_nic {
            Arc::clone(&first)
        } else {
            Nic::open(&options).unwrap()
        };
        let overrun = Arc::new(AtomicBool::new(false));
        let room = setup.pairs.iter().flatten().map(|end| end.capacities);
        let room: u32 = room.map(|room| room.send_wrs + room.recv_wrs).sum();
        let cqs = |nic: &Arc<Nic>| -> Vec<Cq> {
            let cq = |_| {
                let overrun = Arc::clone(&overrun);
                let on_overrun = Box::new(move || overrun.store(true, Ordering::Relaxed));
                Cq::new(nic, room as usize, Box::new(|| {}), on_overrun)
            };
            (0..if setup.one_cq { 1 } else { 2 }).map(cq).collect()
        };
        let mut numbers = Numbers(u64::from(setup.pairs[0][0].sq_psn));
        let first_cqs = cqs(&first);
        // With one device and one CQ per side, both sides share the CQ.
        let second_cqs = if setup.same_nic && setup.one_cq {
            first_cqs.clone()
        } else {
            cqs(&second)
        };
        let all = crate::scenario::ALL_ACCESS;
        let sides = [
            side(first, setup, first_cqs, all, &mut numbers),
            side(second, setup, second_cqs, setup.region_access, &mut numbers),
        ];
        let mut testbed = Testbed {
            endpoints: Vec::new(),
            by_number: HashMap::new(),
            sides,
            same_nic: setup.same_nic,
            overrun,
            seen: Vec::new(),
        };
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
                let access = if side == 0 {
                    crate::scenario::ALL_ACCESS
                } else {
                    setup.qp_access
                };
                qp.initialize(access, 0);
                let connection = Connection {
                    address: self.sides[1 - side].nic.address(),
                    qpn: self.endpoints[at + 1 - side].qp.number(),
                    flow_label: 0,
                    traffic_class: 0,
                    hop_limit: 64,
                    mtu_bytes: setup.mtu_bytes,
                };
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
        let cqs = &self.sides[side].cqs;
        let events = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&events);
        let options = QpOptions {
            kind: Kind::Rc,
            pd: PD,
            send_cq: cqs[0].clone(),
            recv_cq: cqs[cqs.len() - 1].clone(),
            receives: ReceiveSource::Own,
            capacities,
            signal_all: false,
            on_event: Box::new(move |event| heard.lock().unwrap().push(event)),
        };
        let qp = Qp::new(&self.sides[side].nic, options).unwrap();
        let key = (self.nic_index(side), qp.number());
        let before = self.by_number.insert(key, self.endpoints.len());
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

    fn nic_index(&self, side: usize) -> usize {
        if self.same_nic { 0 } else { side }
    }

    /// Polls a side's CQs, up to `most` from each; returns how many completions came.
    pub fn poll(&mut self, side: usize, most: usize) -> Checked<usize> {
        let mut seen = std::mem::take(&mut self.seen);
        seen.clear();
        for cq in &self.sides[side].cqs {
            let before = seen.len();
            let polled = cq.poll(most, |completion| seen.push(*completion));
            if polled != Ok(seen.len() - before) || seen.len() - before > most {
                return Err(Trouble::Wrong(format!(
                    "poll of {most} gave {} and returned {polled:?}",
                    seen.len() - before
                )));
            }
        }
        if self.overrun.load(Ordering::Relaxed) {
            return Err(Trouble::Wrong("a CQ overran".into()));
        }
        for completion in &seen {
            self.account(side, completion)?;
        }
        let count = seen.len();
        self.seen = seen;
        Ok(count)
    }

    /// Checks that the completion is the next one expected.
    fn account(&mut self, side: usize, got: &Completion) -> Checked {
        let wrong = |why: String| Err(Trouble::Wrong(format!("{why}, but {got:?} came")));
        let Some(&index) = self.by_number.get(&(self.nic_index(side), got.qpn)) else {
            return wrong("there is no such QP".into());
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
            return wrong(format!("nothing was expected of endpoint {index}"));
        };
        if got.status == Status::RetryExceededError && expected.status != got.status {
            let told = format!("endpoint {index}: {got:?}{}", self.tell());
            return Err(Trouble::RetriesUsedUp(told));
        }
        let mut fits = got.wr_id == expected.wr_id && got.status == expected.status;
        if expected.status == Status::Success {
            fits &= got.kind == expected.kind
                && expected
                    .length_bytes
                    .is_none_or(|length| got.length_bytes == length)
                && (!is_receive || got.immediate == expected.immediate);
        }
        if fits {
            Ok(())
        } else {
            wrong(format!("endpoint {index}: expected {expected:?}"))
        }
    }

    /// Polls both sides until `done`, or the deadline.
    pub fn until(&mut self, what: &str, done: impl Fn(&Testbed) -> bool) -> Checked {
        let began = Instant::now();
        while !done(self) {
            if self.poll(0, 16)? + self.poll(1, 16)? == 0 {
                std::thread::yield_now();
            }
            if began.elapsed() > DEADLINE {
                return Err(Trouble::Hung(format!(
                    "waiting for {what}: {}",
                    self.tell()
                )));
            }
        }
        Ok(())
    }

    /// Waits until all completions have come, and checks that no other comes shortly after.
    pub fn drained(&mut self) -> Checked {
        self.until("all completions", |testbed| {
            let mut all = testbed.endpoints.iter();
            all.all(|one| one.sends.is_empty() && one.receives.is_empty())
        })?;
        for _ in 0..20 {
            self.poll(0, 16)?;
            self.poll(1, 16)?;
        }
        Ok(())
    }

    /// Checks that the memory of both sides equals the model.
    pub fn memory_fits(&self) -> Checked {
        for (index, side) in self.sides.iter().enumerate() {
            if let Some(difference) = side.memory.difference() {
                return Err(Trouble::Wrong(format!(
                    "memory of side {index}: {difference}"
                )));
            }
        }
        Ok(())
    }

    /// The state of all objects, for debugging.
    fn tell(&self) -> String {
        let mut text = String::new();
        for (index, one) in self.endpoints.iter().enumerate() {
            text += &format!(
                "\n  endpoint {index}: qpn {:#x} {:?}, PSNs {:06x?}, {} sends to come (first {:?}), {} receives (first {:?})",
                one.qp.number(),
                one.qp.state(),
                one.qp.psns(),
                one.sends.len(),
                one.sends.front(),
                one.receives.len(),
                one.receives.front(),
            );
        }
        for (index, side) in self.sides.iter().enumerate() {
            let counters = side.nic.counters();
            text += &format!("\n  side {index}: {counters:?}");
        }
        text
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        for endpoint in &self.endpoints {
            endpoint.qp.destroy();
        }
        for side in &self.sides {
            side.nic.deregister(side.key);
        }
    }
}
