//! Sessions of the control protocol: by hand, through a man in the middle, and clients that are at a known point of theirs
//! when a test goes on.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use plan::{Case, Sweep};
use protocol::{PROGRAM_VERSION, PROTOCOL_VERSION};
use serde_json::{Value, json};
use settings::Given;

use crate::process::{Program, STEP, words};
use crate::program::sweep;
use crate::wait::{wait_or_tell, wait_until};

/// The control protocol by hand, on a plain socket: what a client says and what a broken one says instead.
pub struct Wire(pub TcpStream);

/// A message of a conversation, in which it is of this kind.
pub fn message(conversation: &str, kind: &str, body: &Value) -> Value {
    json!({"type": conversation, "body": {"type": kind, "body": body}})
}

pub fn challenge(version: &str, protocol: u32) -> Value {
    let body = json!({"protocol": protocol, "version": version, "nonce": "1f".repeat(32), "token_required": false});
    message("handshake", "challenge", &body)
}

pub fn welcome(host: &Value) -> Value {
    let body = json!({"mac": null, "host": host, "receives_files": false, "clock_ns": null});
    message("handshake", "welcome", &body)
}

/// A server by hand, which says its answers in turn, each after a message of the client's, until the client is gone.
pub struct Answering {
    pub name: String,
    thread: JoinHandle<()>,
}

impl Answering {
    pub fn start(answers: Vec<Value>) -> Answering {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let name = listener.local_addr().unwrap().to_string();
        let thread = std::thread::spawn(move || {
            let mut session = Wire(listener.accept().unwrap().0);
            for answer in answers {
                session.recv();
                session.send(&answer);
            }
            let _ = session.0.read_to_end(&mut Vec::new());
        });
        Answering { name, thread }
    }

    /// It has served its client.
    #[track_caller]
    pub fn is_over(self) {
        wait_until("the end of the session", STEP, || self.thread.is_finished());
        self.thread.join().unwrap();
    }
}

/// A case of these settings as a client sends it.
pub fn case<const N: usize>(given: [(&str, &str); N]) -> Case {
    let given = Given::from(given);
    Sweep::new(&given).unwrap().cases.remove(0)
}

impl Wire {
    pub fn connect(server: &str) -> Wire {
        let stream = TcpStream::connect(server).unwrap();
        stream.set_read_timeout(Some(STEP * 10)).unwrap();
        Wire(stream)
    }

    /// Connects and does the handshake; the server waits for the end of the session before.
    #[track_caller]
    pub fn session(server: &str) -> Wire {
        let mut wire = Wire::connect(server);
        wire.hello();
        assert_eq!(wire.recv().unwrap()["type"], "challenge");
        wire.say("handshake", "proof", &json!({"mac": null}));
        let mut answer = wire.recv().unwrap();
        if answer["type"] == "wait" {
            answer = wire.recv().unwrap();
        }
        assert_eq!(answer["type"], "welcome", "{answer}");
        wire.say("handshake", "introduce", &json!({"host": {}}));
        wire
    }

    pub fn hello(&mut self) {
        let body = json!({"protocol": PROTOCOL_VERSION, "version": PROGRAM_VERSION, "nonce": "5a".repeat(32)});
        self.say("handshake", "hello", &body);
    }

    /// A run in which the server is the second node.
    pub fn prepare(&mut self, case: &Case) {
        let body = json!({"case": case, "flows": [0], "run": 1, "node": 1});
        self.say("run", "prepare", &body);
    }

    /// Has the server prepare and create its end of a case's only flow; what it says of that end.
    pub fn create(&mut self, case: &Case) -> Value {
        self.prepare(case);
        assert_eq!(self.recv().unwrap()["type"], "prepared");
        self.say("run", "create", &Value::Null);
        let mut created = self.recv().unwrap();
        assert_eq!(created["type"], "created");
        created["body"].take()
    }

    /// Has it connect that end to QPs with these numbers at the address of `rxe0`.
    pub fn connect_to(&mut self, qpns: &[u32]) {
        let qps: Vec<Value> = qpns
            .iter()
            .map(|qpn| json!({"qpn": qpn, "psn": 1, "address": 0, "rkey": 0, "length": 0}))
            .collect();
        let endpoints = json!({
            "mtu_bytes": 1024, "max_rd_atomic": 1, "lid": 0, "qkey": 0, "gid": "::ffff:192.0.2.1", "link_layer": "roce_v2",
            "qps": qps
        });
        let array =
            json!({"flow": 0, "side": "initiator", "endpoints": endpoints, "listening": null});
        self.say("run", "connect", &json!([array]));
    }

    pub fn heartbeat(&mut self) {
        self.say("session", "heartbeat", &json!({"progress": 0}));
    }

    pub fn say(&mut self, conversation: &str, kind: &str, body: &Value) {
        self.send(&message(conversation, kind, body));
    }

    pub fn send(&mut self, message: &Value) {
        let text = message.to_string();
        self.raw(&(text.len() as u32).to_le_bytes());
        self.raw(text.as_bytes());
    }

    /// Bytes as they are. A server that has hung up already is what some tests are after.
    pub fn raw(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes);
    }

    /// The next message in its conversation, but heart-beats; `None` when the server has closed.
    pub fn recv(&mut self) -> Option<Value> {
        loop {
            let mut header = [0; 4];
            self.0.read_exact(&mut header).ok()?;
            let mut body = vec![0; u32::from_le_bytes(header) as usize];
            self.0.read_exact(&mut body).ok()?;
            let message = serde_json::from_slice::<Value>(&body).unwrap()["body"].take();
            if message["type"] != "heartbeat" {
                return Some(message);
            }
        }
    }

    /// The reason of the `abort` that comes next.
    #[track_caller]
    pub fn abort(&mut self) -> String {
        let message = self.recv().unwrap();
        assert_eq!(message["type"], "abort", "{message}");
        message["body"]["reason"].as_str().unwrap().to_owned()
    }

    /// Reads until the server has closed, which it does by itself.
    pub fn is_closed(&mut self) {
        while self.recv().is_some() {}
    }

    pub fn close(self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// The end that sent a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    Client,
    Server,
}

/// A frame of the protocol: the `nth` (from 1) of this kind, as its conversation names it, from this end.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub from: Sender,
    pub kind: &'static str,
    pub nth: usize,
}

impl Step {
    /// The first frame of its kind.
    pub const fn first(from: Sender, kind: &'static str) -> Step {
        Step { from, kind, nth: 1 }
    }
}

/// What is done at a frame, whose body it may change.
pub type Deed = Box<dyn FnOnce(&mut Value) + Send>;

struct State {
    step: Step,
    seen: usize,
    deeds: VecDeque<Deed>,
}

/// A man in the middle who reads the control protocol's frames, and at a chosen one does something to one
/// of the ends, such as killing it, before the frame goes on: so an end dies at an exact step. Or he changes the frame.
#[derive(Clone)]
pub struct Proxy {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Proxy {
    /// Listens on a free port of `address` for any number of connections to `server`.
    pub fn start(
        address: &str,
        server: SocketAddr,
        step: Step,
        deed: impl FnOnce() + Send + 'static,
    ) -> Proxy {
        Proxy::lying(
            address,
            server,
            step,
            VecDeque::from([Box::new(|_: &mut Value| deed()) as Deed]),
        )
    }

    /// The same with a deed for that frame, and each that follows of its kind.
    pub fn lying(address: &str, server: SocketAddr, step: Step, deeds: VecDeque<Deed>) -> Proxy {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let proxy = Proxy {
            address: listener.local_addr().unwrap(),
            state: Arc::new(Mutex::new(State { step, seen: 0, deeds })),
        };
        let accepting = proxy.clone();
        std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let Ok(server) = TcpStream::connect(server) else {
                    continue;
                };
                for (from, source, sink) in
                    [(Sender::Client, &client, &server), (Sender::Server, &server, &client)]
                {
                    let carrier = accepting.clone();
                    let (source, sink) = (source.try_clone().unwrap(), sink.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = carrier.carry(from, &source, &sink);
                        let _ = sink.shutdown(Shutdown::Write);
                    });
                }
            }
        });
        proxy
    }

    #[track_caller]
    pub fn await_deed(&self) {
        let step = self.state.lock().unwrap().step;
        wait_until(&format!("{step:?}"), Duration::from_secs(6), || {
            self.state.lock().unwrap().deeds.is_empty()
        });
    }

    fn carry(&self, from: Sender, mut source: &TcpStream, mut sink: &TcpStream) -> io::Result<()> {
        loop {
            let mut frame = vec![0; 4];
            source.read_exact(&mut frame)?;
            let length = u32::from_le_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
            frame.resize(4 + length, 0);
            source.read_exact(&mut frame[4..])?;
            let mut message: Value = serde_json::from_slice(&frame[4..])?;
            if self.has_changed(from, &mut message) {
                let body = message.to_string();
                frame = (body.len() as u32).to_le_bytes().to_vec();
                frame.extend_from_slice(body.as_bytes());
            }
            sink.write_all(&frame)?;
        }
    }

    fn has_changed(&self, from: Sender, message: &mut Value) -> bool {
        let mut state = self.state.lock().unwrap();
        if state.step.from != from || message["body"]["type"] != state.step.kind {
            return false;
        }
        state.seen += 1;
        if state.seen < state.step.nth {
            return false;
        }
        let before = message.clone();
        // It is done before anybody is told so, and before anything goes on.
        if let Some(deed) = state.deeds.pop_front() {
            deed(&mut message["body"]["body"]);
        }
        *message != before
    }
}

/// So long that only what a test does ends it.
pub const LONG: &str = "-D 10m --warmup 0 -s 4K -t 8 -q 2";

/// Far more than are under way at once; they take less than [`USUAL`].
const PACKETS: u64 = 1_000;
const USUAL: Duration = Duration::from_secs(5);

/// The packets that a device of the kernel has sent since this was made.
pub struct Traffic {
    device: &'static str,
    before: u64,
}

impl Traffic {
    pub fn new(device: &'static str) -> Traffic {
        Traffic { device, before: sent_packets(device) }
    }

    fn sent(&self) -> u64 {
        sent_packets(self.device) - self.before
    }

    /// Waits for so many packets.
    #[track_caller]
    pub fn await_packets(&self, count: u64) {
        wait_or_tell(
            USUAL,
            || (self.sent() >= count).then_some(()),
            || format!("{count} packets of {}: {} sent", self.device, self.sent()),
        );
    }
}

/// Packets that the device has sent since it was made.
fn sent_packets(device: &str) -> u64 {
    let file = format!("/sys/class/infiniband/{device}/ports/1/hw_counters/sent_pkts");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    text.trim().parse().unwrap()
}

/// How a client on `rxe0` reaches a server: its control connection passes a proxy at an address of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    pub proxy: &'a str,
    pub server: SocketAddr,
}

impl Way<'_> {
    /// Starts a client; returns when this frame has passed between it and the server.
    pub fn client_at(self, step: Step, line: &str) -> Program {
        let proxy = Proxy::start(self.proxy, self.server, step, || {});
        let client = sweep(&format!("{} -d rxe0 {line}", proxy.address)).start();
        proxy.await_deed();
        client
    }

    /// Starts one whose run has counted messages when this returns. Once a server's window is open, it says how far it is,
    /// or, where it only receives, that it has measured.
    pub fn client_in_the_window(self, line: &str) -> Program {
        let kind = if words(line).contains(&"-b") { "progress" } else { "measured" };
        let client = self.client_at(Step::first(Sender::Server, kind), line);
        Traffic::new("rxe0").await_packets(PACKETS);
        client
    }
}
