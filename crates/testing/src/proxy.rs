//! A man in the middle who reads the control protocol's frames, and at a chosen one does something to one
//! of the ends, such as killing it: so an end dies at an exact step.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lag::Lag;

/// Who sent a frame.
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
    /// Time between the frame and the deed; without any the deed comes before the frame goes on.
    pub later: Duration,
}

type Deed = Box<dyn FnOnce() + Send>;

struct State {
    step: Step,
    seen: usize,
    deed: Option<Deed>,
    done_at: Option<Instant>,
    /// Since the deed.
    lag: Option<Lag>,
}

impl State {
    /// The deed is done from here on.
    fn begin_now(&mut self) {
        self.done_at = Some(Instant::now());
        self.lag = Some(Lag::watch());
    }
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
            state: Arc::new(Mutex::new(State {
                step,
                seen: 0,
                deed: Some(Box::new(deed)),
                done_at: None,
                lag: None,
            })),
        };
        let accepting = proxy.clone();
        std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let Ok(server) = TcpStream::connect(server) else {
                    continue;
                };
                for (from, source, sink) in [
                    (From::Client, &client, &server),
                    (From::Server, &server, &client),
                ] {
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

    /// When the deed was done; it must have been.
    #[track_caller]
    pub fn done_at(&self) -> Instant {
        self.state
            .lock()
            .unwrap()
            .done_at
            .expect("the step was never seen")
    }

    /// Waits for the deed.
    #[track_caller]
    pub fn await_deed(&self) -> Instant {
        let started = Instant::now();
        loop {
            if let Some(at) = self.state.lock().unwrap().done_at {
                return at;
            }
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "the step was never seen"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// How late this machine ran its threads since the deed.
    pub fn lag(&self) -> Duration {
        let state = self.state.lock().unwrap();
        state.lag.as_ref().map_or(Duration::ZERO, Lag::so_far)
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
        let Some(deed) = state.deed.take() else {
            return;
        };
        if state.step.later.is_zero() {
            state.begin_now();
            deed();
            return;
        }
        let (later, shared) = (state.step.later, Arc::clone(&self.state));
        std::thread::spawn(move || {
            std::thread::sleep(later);
            shared.lock().unwrap().begin_now();
            deed();
        });
    }
}
