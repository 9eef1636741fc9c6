//! Plays a case between two embedded devices on a network in memory: workers with a time for each thing that they do, which
//! post and poll real queue pairs. Time is the network's.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use fastrand::Rng;
use metrics::counters::{Growth, Reading};
use plan::{Case, Flow};
use results::model::PathEventKind;
use settings::{Arrivals, Op};
use softroce::net::Faults;
use softroce::transport::{
    Access, Capacities, Connection, Cq, Deliveries, Kind, Nic, Operation, Payload, PdId, Qp,
    QpOptions, ReceiveSource, Region, SendRequest, Sge, World,
};

/// What a worker needs for what it does, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkerTimes {
    /// A call that posts.
    pub call_ns: u64,
    /// Each WR of it.
    pub wr_ns: u64,
    pub completion_ns: u64,
    /// Recording a latency.
    pub latency_ns: u64,
}

/// Machines, devices and a network between them.
#[derive(Clone, Debug)]
pub struct Site {
    /// Of all that is drawn.
    pub seed: u64,
    pub link_gbit_per_s: f64,
    /// From an adapter to the other, one way.
    pub delay_ns: u64,
    /// Of the client's device and the server's.
    pub faults: [Faults; 2],
    pub workers: [WorkerTimes; 2],
    /// What READs a device takes at a time.
    pub most_reads: u8,
    /// Mean of a time by chance after each message, in which none is posted: a limit that is no known one.
    pub rest_ns: u64,
    /// Packets that a window has at least.
    pub least_packets: u64,
    /// Standard deviation of a run's figures from those of the others, as a part of them.
    pub noise: f64,
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    pub seconds: f64,
    pub messages: Vec<u64>,
    pub p50_ns: f64,
    /// Of the client's worker and the server's: polls, and those that found nothing.
    pub polls: [[u64; 2]; 2],
    /// Of both devices.
    pub events: [Vec<(PathEventKind, u64, Vec<String>)>; 2],
}

/// Packets after which a run has all the figures that it can have.
const MOST_PACKETS: u64 = 12_000;
/// Events of which a window shall have enough, if it has any.
const COUNTED: [PathEventKind; 3] =
    [PathEventKind::SequenceNak, PathEventKind::AckTimeout, PathEventKind::ReceiverNotReady];
const ENOUGH: u64 = 40;
/// Steps after which a run does not go on.
const MOST_STEPS: u64 = 2_000_000;
const IDLE_POLL_NS: u64 = 60;
const POLLED: usize = 16;
const PD: PdId = PdId(1);
const ALL_ACCESS: Access = Access(15);

struct End {
    qps: Vec<Qp>,
    cqs: Vec<Cq>,
    nic: Arc<Nic>,
    memory: Vec<u8>,
    key: u32,
}

impl End {
    fn new(nic: Arc<Nic>, flow: &Flow) -> End {
        let entries = (flow.qps * (flow.tx_depth + flow.rx_depth)) as usize;
        let new_cq = || Cq::with_stamps(&nic, entries, false, Box::new(|| {}), Box::new(|| {}));
        let cqs: Vec<Cq> = (0..flow.workers).map(|_| new_cq()).collect();
        let capacities = Capacities {
            send_wrs: flow.tx_depth,
            recv_wrs: flow.rx_depth,
            send_sges: 1,
            recv_sges: 1,
            inline_bytes: 0,
        };
        let qps = (0..flow.qps)
            .map(|index| {
                let cq = &cqs[(index % flow.workers) as usize];
                let options = QpOptions {
                    kind: Kind::Rc,
                    pd: PD,
                    send_cq: cq.clone(),
                    recv_cq: cq.clone(),
                    receives: ReceiveSource::Own,
                    capacities,
                    signal_all: false,
                    on_event: Box::new(|_| {}),
                };
                Qp::new(&nic, options).expect("a device has so many QPs")
            })
            .collect();
        let memory = vec![0; flow.size_bytes as usize];
        let (address, length_bytes) = (memory.as_ptr() as u64, memory.len() as u64);
        let region = Region { pd: PD, address, length_bytes, iova: address, access: ALL_ACCESS };
        // SAFETY: the memory lives as long as the device: `drop` deregisters it.
        let key = unsafe { nic.register(region) }.expect("a device has so many regions");
        End { qps, cqs, nic, memory, key }
    }

    fn connect(&self, peer: &End, peer_address: IpAddr, flow: &Flow, most_reads: u8) {
        let reads = flow.max_rd_atomic.unwrap_or(most_reads).min(most_reads);
        let deliveries = Deliveries {
            timeout: flow.timeout,
            retry_count: flow.retry_cnt,
            rnr_retry: flow.rnr_retry,
            max_rd_atomic: reads,
        };
        for (index, (qp, other)) in self.qps.iter().zip(&peer.qps).enumerate() {
            let label = flow.flow_label.as_ref().map(|labels| labels.of_qp(index as u32));
            let connection = Connection {
                address: peer_address,
                qpn: other.number(),
                flow_label: label.unwrap_or(0),
                traffic_class: 0,
                hop_limit: 0,
                mtu_bytes: flow.mtu.map_or(1024, u32::from),
            };
            qp.initialize(ALL_ACCESS, 0);
            qp.ready_to_receive(Some(connection), 1, reads, flow.min_rnr_timer);
            qp.ready_to_send(1, Some(deliveries));
        }
    }

    fn element(&self) -> [Sge; 1] {
        [Sge {
            address: self.memory.as_ptr() as u64,
            length_bytes: self.memory.len() as u32,
            lkey: self.key,
        }]
    }

    fn counters(&self) -> Reading {
        Reading::of_embedded(self.nic.counters())
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.qps.iter().for_each(Qp::destroy);
        // Fails for none that was registered.
        let _ = self.nic.deregister(self.key);
    }
}

/// A QP at the end that posts.
struct Sender {
    free: u32,
    posted: u64,
    completed: u64,
    /// Messages of an open loop whose time has come.
    waiting: u64,
    posted_at_ns: VecDeque<u64>,
    is_listed: bool,
}

#[derive(Default)]
struct Worker {
    free_at_ns: u64,
    busy_ns: u64,
    polls: u64,
    /// QPs that may be able to post, or receives to be posted.
    listed: VecDeque<usize>,
    /// Those of them that it posts when it is free.
    chosen: Vec<usize>,
}

/// A run on its way.
struct Playing<'a> {
    flow: &'a Flow,
    site: &'a Site,
    world: World,
    ends: [End; 2],
    senders: Vec<Sender>,
    workers: [Vec<Worker>; 2],
    /// Place in `senders` of the QPs of either end, by number.
    places: [Vec<(u32, usize)>; 2],
    /// Messages of all QPs.
    completed: u64,
    is_counting: bool,
    latencies_ns: Vec<u64>,
    rests_until_ns: u64,
    next_arrival_ns: u64,
    arrivals: usize,
    chance: Rng,
}

/// Plays the first flow of a case.
pub fn play(site: &Site, case: &Case) -> Option<Traffic> {
    let flow = case.flows.first()?;
    let link = format!("rate={}G,delay={}ns", site.link_gbit_per_s, site.delay_ns);
    let link: Faults = link.parse().expect("a link");
    let world = World::new(site.seed, link.transmit);
    let nics = site.faults.each_ref().map(|faults| world.nic(faults, None).expect("a device"));
    let addresses = nics.each_ref().map(|nic| nic.address());
    let ends = nics.map(|nic| End::new(nic, flow));
    ends[0].connect(&ends[1], addresses[1], flow, site.most_reads);
    ends[1].connect(&ends[0], addresses[0], flow, site.most_reads);
    let places = ends.each_ref().map(|end| {
        let mut places: Vec<(u32, usize)> = end.qps.iter().map(Qp::number).zip(0..).collect();
        places.sort_unstable();
        places
    });
    let new_sender = |_| Sender {
        free: flow.tx_depth,
        posted: 0,
        completed: 0,
        waiting: 0,
        posted_at_ns: VecDeque::new(),
        is_listed: true,
    };
    let workers = [0, 1].map(|end| {
        let mut workers: Vec<Worker> = (0..flow.workers).map(|_| Worker::default()).collect();
        for qp in (0..flow.qps as usize).filter(|_| end == 0) {
            workers[qp % flow.workers as usize].listed.push_back(qp);
        }
        workers
    });
    let senders = (0..flow.qps).map(new_sender).collect();
    let mut playing = Playing {
        flow,
        site,
        world,
        ends,
        senders,
        workers,
        places,
        completed: 0,
        is_counting: false,
        latencies_ns: Vec::new(),
        rests_until_ns: 0,
        next_arrival_ns: if flow.is_closed_loop() { u64::MAX } else { 0 },
        arrivals: 0,
        chance: Rng::with_seed(site.seed),
    };
    playing.run()
}

impl Playing<'_> {
    fn run(&mut self) -> Option<Traffic> {
        if self.flow.op.profile().receives {
            for place in 0..self.senders.len() {
                (0..self.flow.rx_depth).for_each(|_| self.post_receive(place));
            }
        }
        let in_flight = u64::from(self.flow.qps) * u64::from(self.flow.tx_depth);
        let packets = u64::from(self.flow.size_bytes.div_ceil(self.mtu_bytes()).max(1));
        let of_batch = u64::from(self.flow.signal_every) * 24;
        // Over a long path messages come in bursts, a round trip apart: windows are of whole ones.
        let wanted = (3 * in_flight).max(self.site.least_packets / packets).max(of_batch).max(24);
        let least = wanted.next_multiple_of(in_flight);
        self.until((150 / packets).next_multiple_of(in_flight).max(3 * in_flight))?;
        self.is_counting = true;
        let before: Vec<u64> = self.senders.iter().map(|sender| sender.completed).collect();
        let workers_before = self.workers.each_ref().map(|workers| Self::spent(workers));
        let mut growths = self.ends.each_ref().map(|end| Growth::since(end.counters()));
        let (begin_ns, begin) = (self.world.now_ns(), self.completed);
        let mut last = begin + least;
        loop {
            self.until(last)?;
            for (growth, device) in growths.iter_mut().zip(&self.ends) {
                growth.add(device.counters());
            }
            let events: u64 = growths
                .iter()
                .flat_map(Growth::by_meaning)
                .filter(|(kind, _)| COUNTED.contains(kind))
                .map(|(_, (count, _))| count)
                .sum();
            let is_enough = events == 0 || events >= ENOUGH;
            if is_enough || (self.completed - begin) * packets >= MOST_PACKETS {
                break;
            }
            last += least;
        }
        let window_ns = self.world.now_ns() - begin_ns;
        self.latencies_ns.sort_unstable();
        let p50_ns = self.latencies_ns.get(self.latencies_ns.len() / 2).copied().unwrap_or(0);
        let polls = [0, 1].map(|end: usize| {
            let [busy_ns, polls] = Self::spent(&self.workers[end]);
            let [busy_before_ns, polls_before] = workers_before[end];
            let time_ns = window_ns * u64::from(self.flow.workers);
            let idle_ns = time_ns.saturating_sub(busy_ns - busy_before_ns);
            let empty = idle_ns / IDLE_POLL_NS;
            [polls - polls_before + empty, empty]
        });
        Some(Traffic {
            seconds: window_ns as f64 / 1e9,
            messages: self.senders.iter().zip(&before).map(|(it, so)| it.completed - so).collect(),
            p50_ns: p50_ns as f64,
            polls,
            events: growths.map(|growth| {
                let by_meaning = growth.by_meaning().into_iter();
                by_meaning.map(|(kind, (count, counters))| (kind, count, counters)).collect()
            }),
        })
    }

    fn mtu_bytes(&self) -> u32 {
        self.flow.mtu.map_or(1024, u32::from)
    }

    fn spent(workers: &[Worker]) -> [u64; 2] {
        [workers.iter().map(|it| it.busy_ns).sum(), workers.iter().map(|it| it.polls).sum()]
    }

    /// Lets time pass until so many messages have completed; `None` if they never do.
    fn until(&mut self, completed: u64) -> Option<()> {
        for _ in 0..MOST_STEPS {
            if self.completed >= completed {
                return Some(());
            }
            let now_ns = self.world.now_ns();
            while self.next_arrival_ns <= now_ns {
                self.arrive();
            }
            let mut worked = false;
            for end in 0..2 {
                for worker in 0..self.workers[end].len() {
                    if self.workers[end][worker].free_at_ns <= now_ns {
                        worked |= self.work(end, worker, now_ns);
                    }
                }
            }
            if worked {
                continue;
            }
            let busy = self.workers.iter().flatten().map(|worker| worker.free_at_ns);
            let wakes = busy.chain([self.rests_until_ns]);
            let next_ns = wakes.filter(|at_ns| *at_ns > now_ns).min().unwrap_or(u64::MAX);
            if !self.world.step_until(next_ns.min(self.next_arrival_ns)) {
                return None;
            }
        }
        None
    }

    /// The next message of an open loop has its time.
    fn arrive(&mut self) {
        let place = self.arrivals % self.senders.len();
        self.arrivals += 1;
        self.senders[place].waiting += 1;
        self.list(place);
        let per_second = self.flow.rate.messages_per_second(f64::from(self.flow.size_bytes));
        let gaps = match self.flow.arrivals {
            Arrivals::Fixed => 1.0,
            Arrivals::Poisson => -(1.0 - self.chance.f64()).ln(),
        };
        let gap_ns = 1e9 / per_second.unwrap_or(1.0) * gaps;
        self.next_arrival_ns = self.world.now_ns().max(self.next_arrival_ns) + 1 + gap_ns as u64;
    }

    fn list(&mut self, place: usize) {
        if !self.senders[place].is_listed {
            self.senders[place].is_listed = true;
            let worker = place % self.workers[0].len();
            self.workers[0][worker].listed.push_back(place);
        }
    }

    /// A turn of a worker that is free: it posts what it has chosen, polls, and chooses what to post next. Whether it did
    /// anything.
    fn work(&mut self, end: usize, number: usize, now_ns: u64) -> bool {
        let chosen = std::mem::take(&mut self.workers[end][number].chosen);
        let posted = !chosen.is_empty();
        for place in chosen {
            if end == 0 { self.post_list(place, now_ns) } else { self.post_receive(place) }
        }
        let times = self.site.workers[end];
        let mut completed: Vec<(usize, bool)> = Vec::new();
        let places = &self.places[end];
        let cq = &self.ends[end].cqs[number];
        if posted {
            // Sends what the device kept to send it with more.
            cq.arm(false);
        }
        // Not `poll`: it does the device's work, as steps do here, and gives the core away where there is none.
        let took = cq.take_stamped(POLLED, |completion, _| {
            let place = places.binary_search_by_key(&completion.qpn, |(qpn, _)| *qpn);
            completed.push((place.map_or(0, |it| places[it].1), completion.wr_id == 0));
        });
        let mut cost_ns = took.unwrap_or(0) as u64 * times.completion_ns;
        if !completed.is_empty() {
            self.workers[end][number].polls += 1;
        }
        for (place, is_receive) in completed {
            if is_receive {
                self.workers[end][number].chosen.push(place);
                cost_ns += times.call_ns + times.wr_ns;
            } else {
                cost_ns += self.complete(place, now_ns);
            }
        }
        if end == 0 {
            cost_ns += self.choose(number, now_ns);
        }
        let worker = &mut self.workers[end][number];
        worker.free_at_ns = now_ns + cost_ns;
        worker.busy_ns += cost_ns;
        posted || cost_ns > 0 || !worker.chosen.is_empty()
    }

    /// Counts the messages of a completion; what recording them takes.
    fn complete(&mut self, place: usize, now_ns: u64) -> u64 {
        let every = self.flow.signal_every;
        let sender = &mut self.senders[place];
        sender.completed += u64::from(every);
        self.completed += u64::from(every);
        sender.free += every;
        let posted_at = sender.posted_at_ns.pop_front();
        if self.is_counting {
            self.latencies_ns.extend(posted_at.map(|at_ns| now_ns - at_ns));
        }
        self.list(place);
        if self.flow.no_latency { 0 } else { u64::from(every) * self.site.workers[0].latency_ns }
    }

    /// Chooses lists to post, a few, so that completions are not left for long; what posting them takes.
    fn choose(&mut self, number: usize, now_ns: u64) -> u64 {
        let (list, times) = (self.flow.post_list, self.site.workers[0]);
        let mut cost_ns = 0;
        let looks = self.workers[0][number].listed.len();
        let is_closed = self.flow.is_closed_loop();
        for _ in 0..looks {
            let worker = &mut self.workers[0][number];
            if worker.chosen.len() >= POLLED || self.rests_until_ns > now_ns {
                break;
            }
            let Some(place) = worker.listed.pop_front() else {
                break;
            };
            let sender = &mut self.senders[place];
            if sender.free >= list && (is_closed || sender.waiting > 0) {
                sender.free -= list;
                sender.waiting = sender.waiting.saturating_sub(1);
                worker.chosen.push(place);
                if self.site.rest_ns > 0 {
                    let rests = f64::from(list) * (0.8 + 0.4 * self.chance.f64());
                    let rest_ns = (rests * self.site.rest_ns as f64) as u64;
                    self.rests_until_ns = now_ns.max(self.rests_until_ns) + rest_ns;
                }
                cost_ns += times.call_ns + u64::from(list) * times.wr_ns;
            }
            let has_more = sender.free >= list && (is_closed || sender.waiting > 0);
            if has_more {
                worker.listed.push_back(place);
            } else {
                sender.is_listed = false;
            }
        }
        cost_ns
    }

    fn post_list(&mut self, place: usize, now_ns: u64) {
        let [own, peer] = &self.ends;
        let (address, rkey) = (peer.memory.as_ptr() as u64, peer.key);
        let operation = match self.flow.op.transfer() {
            Op::Read => Operation::Read { address, rkey },
            Op::Write => Operation::Write { address, rkey },
            _ => Operation::Send,
        };
        let sges = own.element();
        let sender = &mut self.senders[place];
        let every = u64::from(self.flow.signal_every);
        let mut left = self.flow.post_list;
        let mut requests = std::iter::from_fn(|| {
            left = left.checked_sub(1)?;
            sender.posted += 1;
            let signaled = sender.posted.is_multiple_of(every);
            if signaled {
                sender.posted_at_ns.push_back(now_ns);
            }
            Some(SendRequest {
                wr_id: 1,
                operation,
                immediate: None,
                signaled,
                solicited: false,
                fence: false,
                payload: Payload::Registered(&sges),
                datagram: None,
            })
        });
        // SAFETY: no payload is inline.
        let posted = unsafe { own.qps[place].post_send(|| requests.next()) };
        debug_assert_eq!(posted, Ok(()));
    }

    fn post_receive(&mut self, place: usize) {
        let end = &self.ends[1];
        let posted = end.qps[place].post_recv(0, &end.element());
        debug_assert_eq!(posted, Ok(()));
    }
}
