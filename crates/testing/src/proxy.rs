//! A man in the middle who reads the control protocol's frames, and at a chosen one does something to one
//! of the ends, such as killing it, before the frame goes on: so an end dies at an exact step.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::wait::wait_until;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Client,
    Server,
}

/// A frame of the protocol: the `nth` (from 1) of this kind from this end.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub from: From,
    pub kind: &'static str,
    pub nth: usize,
}

impl Step {
    /// The first frame of its kind.
    pub const fn first(from: From, kind: &'static str) -> Step {
        Step { from, kind, nth: 1 }
    }
}

type Deed = Box<dyn FnOnce() + Send>;

struct State {
    step: Step,
    seen: usize,
    deed: Option<Deed>,
}

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
        let listener = TcpListener::bind((address, 0)).unwrap();
        let proxy = Proxy {
            address: listener.local_addr().unwrap(),
            state: Arc::new(Mutex::new(State { step, seen: 0, deed: Some(Box::new(deed)) })),
        };
        let accepting = proxy.clone();
        std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let Ok(server) = TcpStream::connect(server) else {
                    continue;
                };
                for (from, source, sink) in
                    [(From::Client, &client, &server), (From::Server, &server, &client)]
                {
                    let proxy = accepting.clone();
                    let (source, sink) = (source.try_clone().unwrap(), sink.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = proxy.carry(from, &source, &sink);
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
            self.state.lock().unwrap().deed.is_none()
        });
    }

    fn carry(&self, from: From, mut source: &TcpStream, mut sink: &TcpStream) -> io::Result<()> {
        loop {
            let mut frame = vec![0; 4];
            source.read_exact(&mut frame)?;
            let length = u32::from_le_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
            frame.resize(4 + length, 0);
            source.read_exact(&mut frame[4..])?;
            let message: Value = serde_json::from_slice(&frame[4..])?;
            self.look(from, message["type"].as_str().unwrap_or_default());
            sink.write_all(&frame)?;
        }
    }

    fn look(&self, from: From, kind: &str) {
        let mut state = self.state.lock().unwrap();
        if state.step.from != from || state.step.kind != kind {
            return;
        }
        state.seen += 1;
        if state.seen != state.step.nth {
            return;
        }
        // It is done before anybody is told so, and before anything goes on.
        if let Some(deed) = state.deed.take() {
            deed();
        }
    }
}
