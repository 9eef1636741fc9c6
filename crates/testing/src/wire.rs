//! The control protocol by hand, on a plain socket: what a client says and what a broken one says instead.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use crate::program::STEP;

use rocebench::plan::{Case, Sweep};
use rocebench::protocol::{PROGRAM_VERSION, PROTOCOL_VERSION};
use serde_json::{Value, json};
use settings::Given;

pub struct Wire(pub TcpStream);

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
        wire.send(&json!({"type": "proof", "body": {"mac": null}}));
        let mut answer = wire.recv().unwrap();
        if answer["type"] == "wait" {
            answer = wire.recv().unwrap();
        }
        assert_eq!(answer["type"], "welcome", "{answer}");
        wire.send(&json!({"type": "introduce", "body": {"host": {}}}));
        wire
    }

    pub fn hello(&mut self) {
        let body = json!({"protocol": PROTOCOL_VERSION, "version": PROGRAM_VERSION, "nonce": "5a".repeat(32)});
        self.send(&json!({"type": "hello", "body": body}));
    }

    /// A run in which the server is the second node.
    pub fn prepare(&mut self, case: &Case) {
        self.send(
            &json!({"type": "prepare", "body": {"case": case, "flows": [0], "run": 1, "node": 1}}),
        );
    }

    /// Has the server prepare and create its end of a case's only flow; what it says of that end.
    pub fn create(&mut self, case: &Case) -> Value {
        self.prepare(case);
        assert_eq!(self.recv().unwrap()["type"], "prepared");
        self.send(&json!({"type": "create"}));
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
        self.send(&json!({"type": "connect", "body": [array]}));
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

    /// The next message but heart-beats; `None` when the server has closed.
    pub fn recv(&mut self) -> Option<Value> {
        loop {
            let mut header = [0; 4];
            self.0.read_exact(&mut header).ok()?;
            let mut body = vec![0; u32::from_le_bytes(header) as usize];
            self.0.read_exact(&mut body).ok()?;
            let message: Value = serde_json::from_slice(&body).unwrap();
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
