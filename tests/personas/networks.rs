//! The nodes of a session take ports in one network, on the machine `rails`: mlx5_0 is in 198.51.100.0/24, mlx5_1 in 203.0.113.0/24.

use std::net::{IpAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use machine::threads::CoreLocks;
use node::lesson::Event;
use node::resources::{NodeOptions, PortRequest};
use node::server::{Server, ServerEvent, ServerOptions};
use plan::{Nodes, RailsAsked, Sweep};
use protocol::handshake::Approach;
use protocol::lesson::Lesson;
use results::model::ResultFile;
use rocebench::coordinator::interface::Observer;
use rocebench::coordinator::interface::{Ends, SweepOptions, Target};
use rocebench::coordinator::session::{LessonOptions, run_lesson};
use rocebench::coordinator::sweep::run_sweep;
use rocebench::doctor::{Examination, Machine, examine};
use settings::{Given, Op};
use testing::null_library::{PersonaMachine, persona};
use verbs::VerbsLibrary;

/// Notes for a person.
#[derive(Clone, Default)]
pub(super) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }

    pub(super) fn has_part(&self, text: &str) {
        let notes = self.0.lock().unwrap();
        assert!(notes.iter().any(|note| note.contains(text)), "{notes:?}");
    }

    fn has(&self, text: &str) {
        let notes = self.0.lock().unwrap();
        assert!(notes.iter().any(|note| note == text), "{notes:?}");
    }
}

impl Observer for Notes {
    fn note(&mut self, text: &str) {
        self.add(text);
    }
}

pub(super) fn port_request(device: Option<&str>, gid_index: Option<u8>) -> PortRequest {
    PortRequest { device: device.map(str::to_owned), gid_index, ..PortRequest::default() }
}

pub(super) fn options(machine: &PersonaMachine, request: PortRequest, locks: &Path) -> NodeOptions {
    NodeOptions {
        library: machine.library(),
        core_locks: CoreLocks::within(locks.to_owned()),
        ..NodeOptions::system(request, None)
    }
}

/// A server on this machine.
pub(super) struct Serving {
    port: u16,
    notes: Notes,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    pub(super) fn start(resources: NodeOptions) -> Serving {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let options = ServerOptions {
            resources,
            token: None,
            host: serde_json::Value::Null,
            route: None,
            whose: "at the server: ".to_owned(),
            once: false,
            allow_perftest: false,
            shows_results: false,
            files: None,
            examiner: None,
        };
        let notes = Notes::default();
        let log = notes.clone();
        let server = Server::new(
            listener,
            options,
            Arc::new(move |event: ServerEvent<'_>| {
                if let ServerEvent::Note { text } = event {
                    log.add(text);
                }
            }),
        )
        .unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let for_server = Arc::clone(&stop);
        let thread = std::thread::spawn(move || drop(server.run(&for_server).unwrap()));
        Serving { port, notes, stop, thread: Some(thread) }
    }

    pub(super) fn target(&self) -> Target {
        Target::Remote("127.0.0.1".to_owned(), self.port)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Eight WRITEs on each flow; what became of them, and what was noted.
fn sweep(
    target: Target,
    resources: NodeOptions,
    nodes: Nodes,
    servers: Vec<(String, u16)>,
) -> (ResultFile, Notes) {
    let options = swept(target, resources, nodes, servers);
    let (result, notes) = run(&options);
    (result.unwrap(), notes)
}

/// The same between two ends over rails; why not, if it is refused.
pub(super) fn sweep_over(
    target: Target,
    resources: NodeOptions,
    rails: RailsAsked,
) -> (Result<ResultFile, String>, Notes) {
    run(&SweepOptions { rails, ..swept(target, resources, Nodes::TwoEnds, Vec::new()) })
}

pub(super) fn run(options: &SweepOptions) -> (Result<ResultFile, String>, Notes) {
    let notes = Notes::default();
    let outcome = run_sweep(options, &AtomicBool::new(false), &mut notes.clone());
    let result = outcome.map(|outcome| outcome.result);
    (result.map_err(|failure| failure.message), notes)
}

pub(super) fn swept(
    target: Target,
    resources: NodeOptions,
    nodes: Nodes,
    servers: Vec<(String, u16)>,
) -> SweepOptions {
    let mut given = Given::from([("op", "write"), ("size", "64"), ("iters", "8"), ("warmup", "0")]);
    if !servers.is_empty() {
        given.set(settings::Settings::row("pattern").unwrap(), "ring").unwrap();
    }
    let ends = Ends::new(target, resources);
    SweepOptions {
        servers,
        ..SweepOptions::new(Sweep::with_flows(&given, &[], nodes).unwrap(), ends)
    }
}

/// The device of each node.
fn devices(result: &ResultFile) -> Vec<&str> {
    result.nodes.iter().map(|node| &*node.devices[0].name).collect()
}

const FIRST: &str = "mlx5_0 port 1 (198.51.100.10): it is the first active port with a RoCE v2 GID that is not link-local; not mlx5_1";
const MOVED: &str =
    "mlx5_1 port 1 (203.0.113.10): it is in the nodes' common network 203.0.113.0/24; not mlx5_0";

#[test]
fn an_end_without_a_device_takes_the_port_in_the_other_ends_network() {
    let (machine, locks) = (persona("rails"), tempfile::tempdir().unwrap());
    let (one, other) = (Some("mlx5_0"), Some("mlx5_1"));
    for (client, server, taken) in [
        (None, None, ["mlx5_0", "mlx5_0"]),
        (None, other, ["mlx5_1", "mlx5_1"]),
        (other, None, ["mlx5_1", "mlx5_1"]),
        // What was asked for is not overruled: no port of one is reached from the other.
        (one, other, ["mlx5_0", "mlx5_1"]),
    ] {
        let of = |device| options(&machine, port_request(device, None), locks.path());
        let serving = Serving::start(of(server));
        let (result, notes) = sweep(serving.target(), of(client), Nodes::TwoEnds, Vec::new());
        assert_eq!(devices(&result), taken);
        let is_one_network = taken[0] == taken[1];
        assert_eq!(result.cases[0].runs[0].complete, is_one_network, "{taken:?}");
        match (client, taken[0]) {
            (None, "mlx5_0") => notes.has(FIRST),
            (None, _) => notes.has(MOVED),
            // There was no choice.
            (Some(_), _) => assert!(notes.0.lock().unwrap().is_empty()),
        }
        if server.is_none() && client == other {
            serving.notes.has(MOVED);
        }
    }
}

/// The route to 192.0.2.0/24 leaves the machine `rails` by mlx5_1.
fn routed(to: IpAddr) -> Option<IpAddr> {
    let there: IpAddr = [192, 0, 2, 10].into();
    (to == there).then(|| [203, 0, 113, 10].into())
}

#[test]
fn without_a_common_network_the_route_to_the_other_end_decides() {
    let (machine, there) = (persona("rails"), persona("connectx6dx"));
    let locks = tempfile::tempdir().unwrap();
    let library = Box::leak(Box::new(VerbsLibrary { source: routed, ..*machine.library() }));
    let of = |request| NodeOptions { library, ..options(&machine, request, locks.path()) };
    let serving = Serving::start(options(&there, port_request(None, None), locks.path()));
    for (device, taken) in [(None, "mlx5_1"), (Some("mlx5_0"), "mlx5_0")] {
        let own = of(port_request(device, None));
        let (result, notes) = sweep(serving.target(), own, Nodes::TwoEnds, Vec::new());
        assert_eq!(devices(&result)[0], taken);
        if device.is_none() {
            notes.has(
                "mlx5_1 port 1 (203.0.113.10): the route to the other end's RDMA address uses it; not mlx5_0",
            );
        }
    }
}

#[test]
fn of_many_nodes_all_take_ports_in_the_network_that_most_have() {
    let (machine, locks) = (persona("rails"), tempfile::tempdir().unwrap());
    let servers = [None, None, Some("mlx5_1")]
        .map(|device| Serving::start(options(&machine, port_request(device, None), locks.path())));
    let places = servers.each_ref().map(|it| ("127.0.0.1".to_owned(), it.port));
    let list = places.each_ref().map(|(host, port)| format!("{host}:{port}"));
    let nodes = Nodes::from_items(&list).unwrap();
    let own = options(&machine, port_request(None, None), locks.path());
    let (result, _) = sweep(Target::Local, own, nodes, places.to_vec());
    assert_eq!(devices(&result), ["mlx5_1"; 3]);
    assert!(result.cases[0].runs[0].complete);
}

#[test]
fn doctor_tells_of_the_port_in_the_servers_network() {
    let (machine, locks) = (persona("rails"), tempfile::tempdir().unwrap());
    let of = |device| options(&machine, port_request(device, None), locks.path());
    let serving = Serving::start(of(Some("mlx5_1")));
    let examination = Examination {
        machine: Machine::below(machine.root()),
        resources: of(None),
        host: Some("127.0.0.1".to_owned()),
        port: serving.port,
        token: None,
        approach: Approach::default(),
    };
    let report = examine(&examination, &AtomicBool::new(false), &mut |_| {}).unwrap();
    let used = report.findings.iter().find(|it| it.check == "device used");
    let reason = "mlx5_1 port 1: it is in the nodes' common network 203.0.113.0/24; not mlx5_0; \
                GID index 3: it is in the nodes' common network";
    assert_eq!(used.unwrap().found, reason);
}

#[test]
fn a_lesson_goes_between_the_ports_in_the_servers_network() {
    let (machine, locks) = (persona("rails"), tempfile::tempdir().unwrap());
    let of = |device| options(&machine, port_request(device, None), locks.path());
    let serving = Serving::start(of(Some("mlx5_1")));
    let lesson = LessonOptions {
        lesson: Lesson::new(Op::Write, None, None, "hello"),
        text: "hello".to_owned(),
        ends: Ends::new(serving.target(), of(None)),
    };
    let mut device = None;
    let outcome = run_lesson(&lesson, &AtomicBool::new(false), &mut |event| {
        if let Event::Begin(begin) = event {
            device = Some(begin.device);
        }
    });
    assert!(outcome.map_err(|failure| failure.message).unwrap().arrived);
    assert_eq!(device.as_deref(), Some("mlx5_1"));
}

#[test]
fn a_gid_of_the_others_family_is_taken_and_one_that_the_other_does_not_see_is_refused() {
    let (machine, locks) = (persona("connectx6dx"), tempfile::tempdir().unwrap());
    let of = |gid_index| options(&machine, port_request(None, gid_index), locks.path());
    for (client, server, refused) in [
        (None, Some(5), None),
        (Some(3), Some(5), Some(["IPv4 (192.0.2.10)", "IPv6 (2001:db8::10)"])),
        (None, Some(2), Some(["RoCE v2 (192.0.2.10)", "RoCE v1 (192.0.2.10)"])),
    ] {
        let serving = Serving::start(of(server));
        let (result, _) = sweep(serving.target(), of(client), Nodes::TwoEnds, Vec::new());
        let failure = result.cases[0].runs[0].failure.as_ref();
        assert_eq!(failure.is_some(), refused.is_some(), "{failure:?}");
        for words in refused.into_iter().flatten() {
            let failure = failure.unwrap();
            assert!(failure.message.contains(words), "{}", failure.message);
            assert!(failure.hint.as_ref().unwrap().contains("--gid-index"));
        }
    }
}
