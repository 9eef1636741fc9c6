//! The end of what a process prints, read aside so that it never waits for room in its pipe.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that are kept of one stream. Results come last.
const KEPT_BYTES: usize = 32 << 10;

/// How long the rest of a stream is waited for once its process is gone.
const REST_LIMIT: Duration = Duration::from_millis(500);

/// The end of a stream.
pub(super) struct Tail {
    kept: Arc<Mutex<Vec<u8>>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl Tail {
    /// Reads a stream to its end, on a thread of its own.
    pub(super) fn new(mut stream: impl Read + Send + 'static) -> Tail {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let keeps = Arc::clone(&kept);
        let reader = thread::Builder::new().name("perftest-output".into()).spawn(move || {
            let mut block = vec![0; 4096];
            while let Ok(bytes @ 1..) = stream.read(&mut block) {
                let mut kept = keeps.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&block[..bytes]);
                let excess = kept.len().saturating_sub(KEPT_BYTES);
                kept.drain(..excess);
            }
        });
        Tail { kept, reader: reader.ok() }
    }

    /// What was kept. A stream that another process still holds open is not waited for.
    pub(super) fn text(self) -> String {
        let deadline = Instant::now() + REST_LIMIT;
        while let Some(reader) = &self.reader
            && !reader.is_finished()
            && Instant::now() < deadline
        {
            thread::sleep(Duration::from_millis(1));
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_flood_is_kept() {
        let flood = std::io::repeat(b'x').take(1 << 20).chain(&b"end\n"[..]);
        let text = Tail::new(flood).text();
        assert_eq!(text.len(), KEPT_BYTES);
        assert!(text.ends_with("xend\n"));
    }
}
