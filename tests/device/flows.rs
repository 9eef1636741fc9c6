//! Several flows at once: of different kinds, in both directions, over several devices, and in a ring of three nodes
//! of which one dies.

use std::io::Write as _;

use report::results::model::{FlowConfig, ResultFile};
use settings::Op;

use testing::check;
use testing::program::words;
use testing::program::{Ended, Program, Signal, send_signal};
use testing::server::{SERVER_ADDRESS, Server};

/// A sweep's file, which is there until this is dropped.
struct Config(tempfile::NamedTempFile);

impl Config {
    fn of(text: &str) -> Config {
        let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Config(file)
    }

    fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }
}

/// The result of a sweep with one case of these flows, from `rxe0` to a server on `rxe1`.
fn measured(flows: &str) -> ResultFile {
    let server = Server::start();
    let config = Config::of(flows);
    let how = ["--verify", "--workers", "2"];
    let ended = server
        .sweep(&[&["--config", config.path()], &how[..]].concat())
        .exits(0);
    let result = check::complete(&ended);
    assert_eq!(result.cases.len(), 1);
    server.serves_the_next();
    server.end();
    result
}

fn devices(flow: &FlowConfig) -> [&str; 2] {
    [&flow.from_device, &flow.to_device].map(|device| device.as_deref().unwrap())
}

#[test]
fn small_writes_beside_large_reads() {
    let result = measured(
        "duration = '2s'\nwarmup = '200ms'\n\
         [[flow]]\nname = 'small'\nop = 'write'\nqps = 12\nsize = 64\n\
         [[flow]]\nname = 'large'\nop = 'read'\nqps = 4\nsize = '1M'\ntx-depth = 4\n",
    );
    let (config, run) = (&result.cases[0].config, &result.cases[0].runs[0]);
    let (small, large) = (config.flow(0), config.flow(1));
    assert_eq!((small.op.transfer(), small.size_bytes), (Op::Write, 64));
    assert_eq!((large.op.transfer(), large.size_bytes), (Op::Read, 1 << 20));
    assert_eq!((small.qps, large.qps, large.tx_depth), (12, 4, 4));
    assert_eq!(run.nodes[0].workers.len(), 2);
}

#[test]
fn each_direction_has_settings_of_its_own() {
    let result = measured(
        "iters = 60\nwarmup = '0s'\n\
         [[flow]]\nname = 'out'\nop = 'send'\nqps = 3\nsize = '4K'\ntx-depth = 16\n\
         [[flow]]\nname = 'back'\nfrom = 'server'\nto = 'client'\nop = 'write'\nqps = 5\nsize = 64\ntx-depth = 8\n",
    );
    let flows = &result.cases[0].runs[0].flows;
    assert_eq!(flows[0].totals.bytes, 3 * 60 * 4096);
    assert_eq!(flows[1].totals.bytes, 5 * 60 * 64);
    assert_eq!((&*flows[1].from, &*flows[1].to), ("server", "client"));
}

#[test]
fn two_devices_at_each_node() {
    let result = measured(
        "iters = 50\nwarmup = '0s'\nqps = 2\nsize = '8K'\ntx-depth = 8\n\
         [[flow]]\nname = 'own'\nop = 'write'\n\
         [[flow]]\nname = 'others'\nop = 'read'\nfrom-device = 'rxe1'\nto-device = 'rxe0'\n\
         [[flow]]\nname = 'back'\nop = 'send'\nfrom = 'server'\nto = 'client'\nto-device = 'rxe0'\n",
    );
    let flows = &result.cases[0].config.flows;
    assert_eq!(devices(&flows[0]), ["rxe0", "rxe1"]);
    assert_eq!(devices(&flows[1]), ["rxe1", "rxe0"]);
    assert_eq!(devices(&flows[2]), ["rxe1", "rxe0"]);
    for (node, names) in result
        .nodes
        .iter()
        .zip([["rxe0", "rxe1"], ["rxe1", "rxe0"]])
    {
        let used: Vec<&str> = node.devices.iter().map(|it| &*it.name).collect();
        assert_eq!(used, names, "{}", node.name);
    }
}

/// Three servers; the flows of a ring go from each to the next.
struct Ring {
    servers: [Server; 3],
    /// By which the coordinator reaches them.
    names: [String; 3],
}

impl Ring {
    fn start() -> Ring {
        let servers = [
            Server::start(),
            Server::on("192.0.2.1", "rxe0", &[]),
            Server::on(SERVER_ADDRESS, "rxe1", &[]),
        ];
        let names = servers.each_ref().map(|server| server.name.clone());
        Ring { servers, names }
    }

    fn config(&self) -> Config {
        let flow = |from: usize| {
            let (from, to) = (&self.names[from], &self.names[(from + 1) % 3]);
            format!("[[flow]]\nfrom = '{from}'\nto = '{to}'\n")
        };
        Config::of(&[0, 1, 2].map(flow).concat())
    }

    fn coordinator(&self, config: &Config, more: &[&str]) -> Program {
        let nodes = self.names.join(",");
        let words = ["--nodes", &nodes, "--config", config.path(), "--verify"];
        Program::sweep(&[&words[..], more].concat())
    }
}

#[test]
fn three_servers_in_a_ring() {
    let ring = Ring::start();
    let config = ring.config();
    let more = words("--connect tcp,cm --op send,write,read -n 40 --warmup 0 -q 3 -s 4K -t 8");
    let ended = ring.coordinator(&config, &more).wait().exits(0);
    let result = check::complete(&ended);
    assert_eq!(result.cases.len(), 6);
    let names: Vec<&str> = result.nodes.iter().map(|node| &*node.name).collect();
    assert_eq!(names, ring.names);
    for case in &result.cases {
        let flows = &case.config.flows;
        assert_eq!(devices(&flows[0]), ["rxe1", "rxe0"], "{}", case.id);
        assert_eq!(devices(&flows[1]), ["rxe0", "rxe1"], "{}", case.id);
        assert_eq!(devices(&flows[2]), ["rxe1", "rxe1"], "{}", case.id);
    }
    ring.servers
        .into_iter()
        .for_each(|server| drop(server.end()));
}

/// The second of three is killed or stopped in the window; how the sweep ends, and the others.
fn one_of_three_gets(signal: Signal, told: &str) {
    let ring = Ring::start();
    let victim = ring.servers[1].program.pid();
    let config = ring.config();
    let more = words("-D 30s --warmup 0 -q 2 -s 4K -t 8");
    let coordinator = ring.coordinator(&config, &more);
    (0..3).for_each(|node| coordinator.has_moved(0, "measure", node));
    send_signal(victim, signal);
    let ended = coordinator.wait().exits(1).says(&[told]);
    others_are_kept(&ended);
    let [first, _, last] = ring.servers;
    for survivor in [first, last] {
        survivor.serves_the_next();
        survivor.end();
    }
}

#[track_caller]
fn others_are_kept(ended: &Ended) {
    check::schema(ended.json());
    let run = ended.runs().remove(0);
    assert!(!run.complete && run.failure.is_some());
    let messages: Vec<u64> = run.flows.iter().map(|flow| flow.totals.messages).collect();
    assert!(messages[0] > 0 && messages[2] > 0, "{messages:?}");
    assert_eq!(messages[1], 0, "nobody has told of these");
    for index in [0, 2] {
        assert!(run.flows[index].window.seconds > 0.0);
        assert!(!run.nodes[index].workers.is_empty());
    }
}

#[test]
fn one_of_three_servers_is_killed() {
    one_of_three_gets(Signal::Kill, "closed the connection");
}

#[test]
fn one_of_three_servers_falls_silent() {
    one_of_three_gets(Signal::Stop, "silent");
}
