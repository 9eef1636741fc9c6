//! The control protocol by hand, on a plain socket: what a client says and what a broken one says instead.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use rocebench::plan::{Case, Sweep};
use rocebench::protocol::{PROGRAM_VERSION, PROTOCOL_VERSION};
use serde_json::{Value, json};
use settings::Given;

/// A hand-made client.
pub struct Wire(pub TcpStream);

/// A case as a client sends it.
pub fn case(qps: u64) -> Case {
    let given = Given::from([("qps", qps.to_string().as_str())]);
    Sweep::new(&given).unwrap().cases.remove(0)
}

impl Wire {
    pub fn connect(server: &str) -> Wire {
        let stream = TcpStream::connect(server).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        Wire(stream)
    }

    /// Connects and does the handshake.
    pub fn session(server: &str) -> Wire {
        let mut wire = Wire::connect(server);
        wire.hello();
        assert_eq!(wire.recv().unwrap()["type"], "challenge");
        wire.send(&json!({"type": "proof", "body": {"mac": null}}));
        assert_eq!(wire.recv().unwrap()["type"], "welcome");
        wire.send(&json!({"type": "introduce", "body": {"host": {}}}));
        wire
    }

    pub fn hello(&mut self) {
        let body = json!({"protocol": PROTOCOL_VERSION, "version": PROGRAM_VERSION, "nonce": "5a".repeat(32)});
        self.send(&json!({"type": "hello", "body": body}));
    }

    pub fn prepare(&mut self, case: &Case) {
        self.send(&json!({"type": "prepare", "body": {"case": case, "run": 1}}));
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

    pub fn close(self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}
