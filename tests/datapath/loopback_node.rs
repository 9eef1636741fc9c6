//! Both ends of a run on `loop0`, in this process: the objects, the workers, and the phases as a session
//! drives them. It knows no link and no result.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use datapath::{
    Counts, Geometry, Phase, QpContext, Shared, WorkerPool, WorkerPoolError, WorkerReport,
};
use metrics::Clock;
use metrics::latency::Digits;
use node::needs::effective_workers;
use node::threads::NodeThreads;
use node::verbs_objects::VerbsObjects;
use plan::{Case, Side};
use protocol::endpoints::Endpoints;
use protocol::failure::RunFailure;
use settings::{Op, Settings, Warmup};
use testing::wait::{wait_or_tell, wait_until};
use verbs::{AsyncEvents, Port, PortRequest, WcBatch, select};

/// No step of a run on `loop0` takes longer on an idle machine.
const EXPECTED: Duration = Duration::from_secs(2);

/// The device, for one test at a time: its hooks and its random source are the process's.
pub struct Device(#[allow(dead_code)] MutexGuard<'static, ()>);

impl Device {
    /// Waits for it, and sets it as new.
    pub fn get() -> Device {
        static ONE: Mutex<()> = Mutex::new(());
        let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        null_verbs::loopback::reset_hooks();
        null_verbs::loopback::set_seed(0);
        Device(guard)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        null_verbs::loopback::reset_hooks();
    }
}

/// The port of `loop0`.
pub fn port() -> Port {
    port_of("loop0")
}

/// The port of `null0`, which has no completion events.
pub fn null_port() -> Port {
    port_of("null0")
}

fn port_of(device: &str) -> Port {
    let request = PortRequest { device: Some(device.into()), ..PortRequest::default() };
    select(testing::null_library::null_library(), &request, None).unwrap()
}

/// Settings of a small case to vary: one QP, one worker, every WR signalled.
pub fn small(op: Op) -> Settings {
    Settings {
        op: op.into(),
        size_bytes: 64,
        tx_depth: 16,
        rx_depth: 32,
        signal_every: 1,
        iterations_per_qp: Some(100),
        warmup: Warmup::FixedNs(0),
        ..Settings::default()
    }
}

pub fn case_of(mut settings: Settings) -> Case {
    settings.fit();
    let id = "test".into();
    Case::new(id, settings)
}

pub fn case(op: Op) -> Case {
    case_of(small(op))
}

pub struct End {
    pub objects: VerbsObjects,
    pub shared: Arc<Shared>,
    pub events: AsyncEvents,
}

/// Both ends, connected, their workers idle.
pub struct Pair {
    pub case: Case,
    pub client: End,
    pub server: End,
}

/// Several flows between two nodes, whose threads serve all of them.
pub struct Flows {
    pub pairs: Vec<Pair>,
    /// Whether each goes from the second node to the first.
    reversed: Vec<bool>,
    pools: [WorkerPool; 2],
}

/// What is left of a run: the objects, and the workers' reports.
pub struct Rest {
    pub case: Case,
    pub client: (VerbsObjects, Arc<Shared>, Vec<WorkerReport>),
    pub server: (VerbsObjects, Arc<Shared>, Vec<WorkerReport>),
}

/// What the workers of one end saw, summed over them: one entry a QP.
#[derive(Debug, PartialEq, Eq)]
pub struct QpSums {
    pub completed: Vec<u64>,
    pub completed_bytes: Vec<u64>,
    pub received: Vec<u64>,
    pub received_bytes: Vec<u64>,
    pub posted_in_all: Vec<u64>,
    pub received_in_all: Vec<u64>,
    pub latencies: Vec<u64>,
}

impl End {
    fn new(
        objects: VerbsObjects,
        qp_contexts: Vec<QpContext>,
        settings: &Settings,
        clock: &Clock,
    ) -> End {
        let workers = objects.workers();
        let shared =
            Shared::new(settings.clone(), qp_contexts, clock.clone(), Digits::Two, workers)
                .with_shared_receives(objects.shared_receives().cloned())
                .with_initiative(objects.roles().initiates);
        End {
            events: AsyncEvents::new(&objects.port().context).unwrap(),
            objects,
            shared: Arc::new(shared),
        }
    }
}

impl Pair {
    /// Both ends, connected, without threads yet.
    pub fn connected(
        port: &Port,
        clock: &Clock,
        [case, server_case]: [&Case; 2],
        [client_node, server_node]: [&mut NodeThreads; 2],
        tamper: impl FnOnce(&mut Endpoints),
    ) -> Pair {
        let create = |case_of_end: &Case, side, threads: &mut NodeThreads| {
            VerbsObjects::create(port, case_of_end, side, None, threads, || Ok(())).unwrap()
        };
        let mut client = create(case, Side::Initiator, client_node);
        let mut server = create(server_case, Side::Target, server_node);
        let clients = client.endpoints();
        let mut servers = server.endpoints();
        tamper(&mut servers);
        let server_contexts = server.connect(&clients, || Ok(())).unwrap();
        let client_contexts = client.connect(&servers, || Ok(())).unwrap();
        Pair {
            case: case.clone(),
            server: End::new(server, server_contexts, &server_case.settings, clock),
            client: End::new(client, client_contexts, &case.settings, clock),
        }
    }

    /// Tells both ends' workers what to do, the receiving end first.
    pub fn set_phase(&self, phase: Phase) {
        for end in [&self.server, &self.client] {
            end.shared.set_phase(phase);
        }
    }

    /// Whether both ends' workers have entered `phase`.
    pub fn entered(&self, phase: Phase) -> bool {
        self.client.shared.all_entered(phase) && self.server.shared.all_entered(phase)
    }

    /// Allows `messages` on each QP.
    pub fn set_budgets(&self, messages: u64) {
        let geometry = Geometry::from_flow(&self.case);
        for end in [&self.server, &self.client] {
            end.shared
                .qp_contexts()
                .iter()
                .filter_map(|l| l.sender.as_ref())
                .for_each(|sender| sender.set_budget(&geometry, messages));
        }
    }

    /// Starts a measurement of `messages` on each QP.
    pub fn start_counted(&self, messages: u64) {
        self.set_budgets(messages);
        self.set_phase(Phase::Measure);
    }

    /// Whether a worker of either end has.
    pub fn has_failed(&self) -> bool {
        self.client.shared.has_failed() || self.server.shared.has_failed()
    }

    pub fn counts(&self) -> [Counts; 2] {
        [&self.client, &self.server].map(|end| end.shared.counts())
    }

    pub fn into_rest(self, [client, server]: [Vec<WorkerReport>; 2]) -> Rest {
        Rest {
            case: self.case,
            client: (self.client.objects, self.client.shared, client),
            server: (self.server.objects, self.server.shared, server),
        }
    }

    pub fn describe(&self) -> String {
        let mut text = format!("{:?}", self.case);
        for (name, end) in [("client", &self.client), ("server", &self.server)] {
            let _ = write!(text, "; {name} {:?}", end.shared.counts());
        }
        text
    }
}

/// A run that somebody steers, with threads or on the bench.
pub trait Steer {
    fn pair(&self) -> &Pair;

    /// Tells both ends' workers what to do.
    fn set_phase(&mut self, phase: Phase);

    /// Waits until `done`.
    ///
    /// # Errors
    /// A worker met an error. A wait without end panics.
    fn wait(&mut self, what: &str, done: impl FnMut(&Pair) -> bool) -> Result<(), WorkerError>;

    /// Lets both ends' queues run empty.
    fn come_to_rest(&mut self) -> Result<(), WorkerError> {
        self.set_phase(Phase::Drain);
        self.wait("rest", |pair| pair.client.shared.at_rest() && pair.server.shared.at_rest())
    }

    /// Lets both ends' queues run empty and waits for all that was sent to arrive.
    fn drain(&mut self) -> Result<(), WorkerError> {
        self.come_to_rest()?;
        if self.pair().case.op.profile().receives {
            self.wait("arrival", |pair| {
                let [here, there] = pair.counts();
                here.posted == there.received && there.posted == here.received
            })?;
        }
        Ok(())
    }

    /// A run of `messages` on each QP, without warm-up or, with `warm_up`, after so many messages in all.
    fn run_counted(&mut self, messages: u64, warm_up: Option<u64>) -> Result<(), WorkerError> {
        if let Some(enough) = warm_up {
            self.set_phase(Phase::Warmup);
            self.wait("warm-up", |pair| pair.counts()[0].completed >= enough)?;
            self.drain()?;
        }
        let before = self.pair().counts();
        self.pair().set_budgets(messages);
        self.set_phase(Phase::Measure);
        self.complete(messages, before)
    }

    /// Waits until `messages` on each QP have completed since the ends had counted `before`, and drains.
    fn complete(&mut self, messages: u64, before: [Counts; 2]) -> Result<(), WorkerError> {
        let wanted = messages * u64::from(self.pair().case.qps);
        self.wait("all messages", |pair| {
            [&pair.client, &pair.server]
                .into_iter()
                .zip(&before)
                .filter(|(end, _)| end.objects.roles().initiates)
                .all(|(end, before)| end.shared.counts().completed >= before.completed + wanted)
        })?;
        self.drain()
    }
}

impl Steer for Pair {
    fn pair(&self) -> &Pair {
        self
    }

    fn set_phase(&mut self, phase: Phase) {
        Pair::set_phase(self, phase);
    }

    /// A wait beyond the watchdog's time panics.
    fn wait(&mut self, what: &str, mut done: impl FnMut(&Pair) -> bool) -> Result<(), WorkerError> {
        wait_or_tell(
            EXPECTED,
            || {
                let is_done = done(self);
                // After the counts: a worker says that it failed before it counts what failed.
                match (self.has_failed(), is_done) {
                    (true, _) => Some(Err(WorkerError)),
                    (false, true) => Some(Ok(())),
                    (false, false) => None,
                }
            },
            || format!("{what}: {}", self.describe()),
        )
    }
}

impl Flows {
    /// Brings up a flow for each case, connected, with `threads` idle threads at each node.
    pub fn new(cases: &[Case], threads: usize) -> Flows {
        Flows::on_cores(&port(), cases, threads, &[]).unwrap()
    }

    /// A single one, with the threads that its case has.
    pub fn alone(port: &Port, case: &Case) -> Flows {
        let threads = effective_workers(case);
        Flows::on_cores(port, std::slice::from_ref(case), threads, &[]).unwrap()
    }

    /// Some with thread `index` of each node on `cores[index]`.
    pub fn on_cores(
        port: &Port,
        cases: &[Case],
        threads: usize,
        cores: &[Option<usize>],
    ) -> Result<Flows, WorkerPoolError> {
        let both_nodes = || NodeThreads::new(threads, cases[0].poll);
        let mut nodes = [both_nodes(), both_nodes()];
        // Every other flow goes the other way.
        let reversed: Vec<bool> = (0..cases.len()).map(|flow| flow % 2 == 1).collect();
        let flows = cases.iter().zip(&reversed).map(|(case, &is_reversed)| {
            let [first, second] = &mut nodes;
            let ends = if is_reversed { [second, first] } else { [first, second] };
            Pair::connected(port, &clock(), [case, case], ends, |_| {})
        });
        let pairs: Vec<Pair> = flows.collect();
        let start = |node: usize| {
            let ends = pairs.iter().zip(&reversed).map(|(pair, &is_reversed)| {
                let is_client = (node == 0) != is_reversed;
                if is_client { &pair.client } else { &pair.server }
            });
            let parts = ends.clone().map(|end| end.objects.worker_specs());
            let mut specs = nodes[node].specs(cores, parts.collect()).unwrap();
            // An end that only offers memory has no workers.
            if ends.clone().all(|end| end.objects.workers() == 0) {
                specs.clear();
            }
            let shared: Vec<_> = ends.map(|end| Arc::clone(&end.shared)).collect();
            WorkerPool::start(&shared, specs)
        };
        let pools = [start(0)?, start(1)?];
        Ok(Flows { pairs, reversed, pools })
    }

    pub fn finish(self) -> Vec<Rest> {
        let [first, second] = self.pools.map(|pool| pool.finish().unwrap());
        let reports = first.into_iter().zip(second).zip(self.reversed);
        self.pairs
            .into_iter()
            .zip(reports)
            .map(|(pair, ((of_first, of_second), is_reversed))| {
                pair.into_rest(if is_reversed {
                    [of_second, of_first]
                } else {
                    [of_first, of_second]
                })
            })
            .collect()
    }
}

/// A worker met an error: its report says which.
#[derive(Debug)]
pub struct WorkerError;

impl Rest {
    /// Both ends for another run on the same QPs.
    pub fn again(self, clock: &Clock) -> Pair {
        let end = |(objects, shared, _): (VerbsObjects, Arc<Shared>, _)| {
            let settings = shared.flow().clone();
            let qp_contexts = Arc::into_inner(shared).unwrap().into_qp_contexts();
            End::new(objects, qp_contexts, &settings, clock)
        };
        Pair { case: self.case, client: end(self.client), server: end(self.server) }
    }

    /// What went wrong at the client, in the words a person gets.
    pub fn client_failure(&self) -> Option<RunFailure> {
        RunFailure::from_trouble(&self.client.2.iter().map(|worker| &worker.trouble))
    }

    pub fn server_failure(&self) -> Option<RunFailure> {
        RunFailure::from_trouble(&self.server.2.iter().map(|worker| &worker.trouble))
    }

    pub fn client_sums(&self) -> QpSums {
        sums(&self.case, &self.client.2)
    }

    pub fn server_sums(&self) -> QpSums {
        sums(&self.case, &self.server.2)
    }

    /// Fails if anything went wrong, or if a completion was left in a CQ.
    pub fn assert_clean(&self) {
        for failure in [self.client_failure(), self.server_failure()] {
            assert!(failure.is_none(), "{failure:?} in {:?}", self.case);
        }
        let mut batch = WcBatch::new();
        for cq in self.client.0.cqs().iter().chain(self.server.0.cqs()) {
            assert!(cq.poll(&mut batch).unwrap().is_empty(), "{:?}", self.case);
        }
    }

    /// With `--verify`, what only shows at the end, as both ends check it.
    pub fn verified(&self) -> Option<String> {
        let check = |at: &(VerbsObjects, Arc<Shared>, Vec<WorkerReport>), from: &Arc<Shared>| {
            let qp_contexts = from.qp_contexts().iter().zip(at.1.qp_contexts());
            let written = (0..).zip(qp_contexts).find_map(|(qp, (sending, receiving))| {
                let posts = sending.sender.as_ref()?.posts()?;
                at.0.check_written(qp, &posts)
                    .or_else(|| receiving.receiver.as_ref()?.check_counts(|_| &posts))
            });
            written.or_else(|| {
                let posts: Vec<Vec<u32>> = from
                    .qp_contexts()
                    .iter()
                    .flat_map(|it| &it.sender)
                    .filter_map(datapath::Sender::posts)
                    .collect();
                at.0.check_sums(posts.iter().map(Vec::as_slice))
            })
        };
        check(&self.server, &self.client.1)
            .or_else(|| check(&self.client, &self.server.1))
            .map(|mismatch| mismatch.to_string())
    }
}

fn sums(case: &Case, workers: &[WorkerReport]) -> QpSums {
    let sum = |value: &dyn Fn(&datapath::QpReport) -> u64| {
        (0..case.qps as usize)
            .map(|qp| workers.iter().map(|worker| value(&worker.qps[qp])).sum())
            .collect()
    };
    QpSums {
        completed: sum(&|qp| qp.completed),
        completed_bytes: sum(&|qp| qp.completed_bytes),
        received: sum(&|qp| qp.received),
        received_bytes: sum(&|qp| qp.received_bytes),
        posted_in_all: sum(&|qp| qp.posted_in_all),
        received_in_all: sum(&|qp| qp.received_in_all),
        latencies: sum(&|qp| qp.latency.as_ref().map_or(0, metrics::Samples::count)),
    }
}

pub fn clock() -> Clock {
    static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::new);
    CLOCK.clone()
}

/// Waits until all worker threads of this process sleep, so that only an event wakes them.
pub fn all_asleep() {
    let sleeps = |task: std::path::PathBuf| {
        let read = |name: &str| std::fs::read_to_string(task.join(name)).unwrap_or_default();
        let call = read("syscall");
        let number = call.split(' ').next().and_then(|it| it.parse().ok());
        !read("comm").starts_with("worker-") || number == Some(libc::SYS_ppoll)
    };
    wait_until("workers that sleep", EXPECTED, || {
        let mut tasks = std::fs::read_dir("/proc/self/task").unwrap();
        tasks.all(|task| sleeps(task.unwrap().path()))
    });
}

/// A small random source for choosing cases (SplitMix64).
pub struct Choices(pub u64);

impl Choices {
    pub fn one<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.upto(options.len() as u64) as usize - 1]
    }

    /// A number from 1 to `most`.
    pub fn upto(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most + 1
    }
}
