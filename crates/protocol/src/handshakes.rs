//! Connections to a port of which it is not known yet whether they become a session or a rank: how many there may be, and
//! the oldest to end when there are too many; and how long one of them waits for another's place.

use std::io;
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::link::Signs;

/// How many there may be: of all addresses, and of one, so that one host cannot keep the others out.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    in_total: usize,
    of_one: usize,
}

impl Most {
    /// Of a server that has one client at a time.
    pub const SERVER: Most = Most { in_total: 32, of_one: 8 };

    /// Where so many are awaited, which may all be on one host.
    pub fn awaited(count: usize) -> Most {
        Most { in_total: Most::SERVER.in_total + count, of_one: Most::SERVER.of_one + count }
    }
}

/// The connections to one port whose handshakes are not over, oldest first.
#[derive(Debug)]
pub struct Handshakes {
    most: Most,
    entries: Mutex<Vec<Arc<Entry>>>,
}

#[derive(Debug)]
struct Entry {
    host: IpAddr,
    /// The connection itself, to be shut down when another needs the room.
    stream: TcpStream,
    is_ended: AtomicBool,
}

impl Entry {
    fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }
}

/// One of them; it counts until this is dropped.
#[derive(Debug)]
pub struct Handshake {
    of_port: Arc<Handshakes>,
    entry: Arc<Entry>,
}

impl Handshakes {
    pub fn new(most: Most) -> Arc<Handshakes> {
        Arc::new(Handshakes { most, entries: Mutex::default() })
    }

    /// Whether no more can be taken now, not even for an older one: there are as many again that were ended and whose threads
    /// are about to see it.
    pub fn is_full(&self) -> bool {
        self.lock().len() >= 2 * self.most.in_total
    }

    /// Takes a connection from `client`; where there are too many of its host, or in all, the oldest of them is ended.
    ///
    /// # Errors
    /// The operating system has no descriptor for it.
    pub fn take(self: &Arc<Self>, stream: &TcpStream, client: SocketAddr) -> io::Result<Handshake> {
        let entry = Arc::new(Entry {
            host: host(client.ip()),
            stream: stream.try_clone()?,
            is_ended: AtomicBool::new(false),
        });
        let mut entries = self.lock();
        end_oldest(entries.iter().filter(|other| other.host == entry.host), self.most.of_one);
        end_oldest(entries.iter(), self.most.in_total);
        entries.push(Arc::clone(&entry));
        Ok(Handshake { of_port: Arc::clone(self), entry })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes room for one more of `most`; the entries come oldest first.
fn end_oldest<'a>(entries: impl Iterator<Item = &'a Arc<Entry>>, most: usize) {
    let mut living = entries.filter(|entry| !entry.is_ended());
    let Some(oldest) = living.next() else { return };
    if 1 + living.count() >= most {
        oldest.is_ended.store(true, Ordering::Relaxed);
        // Fails if the client has closed it, which ends it too.
        let _ = oldest.stream.shutdown(Shutdown::Both);
    }
}

impl Handshake {
    /// Whether it was ended to make room for another.
    pub fn is_ended(&self) -> bool {
        self.entry.is_ended()
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        let mut entries = self.of_port.lock();
        entries.retain(|entry| !Arc::ptr_eq(entry, &self.entry));
    }
}

/// What counts as one host: of IPv6 a network of 64 bits, of which a host may take any address.
fn host(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 => v4,
    }
}

/// The longest wait for a session to end.
pub const END_LIMIT: Duration = Duration::from_secs(10);

/// One who wants the place of a link that may be over, and waits for it or is sent away. It must not read a clock.
#[derive(Debug)]
pub struct Newcomer {
    came: Instant,
    /// How often the link had been heard when the newcomer came.
    heard: Option<u64>,
}

impl Newcomer {
    pub fn new(came: Instant) -> Newcomer {
        Newcomer { came, heard: None }
    }

    /// Whether the place may soon be free: the link ends, or has been silent since the newcomer came, as one is whose cable
    /// was pulled. A link that is not there yet is in its handshake, which may fail.
    pub fn may_wait(&mut self, link: Option<Signs>, now: Instant) -> bool {
        now.saturating_duration_since(self.came) < END_LIMIT
            && link.is_none_or(|link| {
                let heard_before = *self.heard.get_or_insert(link.heard);
                link.is_ending || link.heard == heard_before
            })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    /// A connection, the client's end of it, and its place.
    fn connection(handshakes: &Arc<Handshakes>, from: &str) -> (TcpStream, Handshake) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let from = SocketAddr::new(from.parse().unwrap(), 1);
        (client, handshakes.take(&server, from).unwrap())
    }

    fn ended(handshakes: &[(TcpStream, Handshake)]) -> Vec<bool> {
        handshakes.iter().map(|(_, it)| it.is_ended()).collect()
    }

    #[test]
    fn one_host_ends_its_own_oldest() {
        let Most { of_one, .. } = Most::SERVER;
        let handshakes = Handshakes::new(Most::SERVER);
        let other = connection(&handshakes, "192.0.2.1");
        let of_mine = || connection(&handshakes, "192.0.2.2");
        let mut mine: Vec<_> = (0..of_one).map(|_| of_mine()).collect();
        assert_eq!(ended(&mine), vec![false; of_one]);
        mine.push(of_mine());
        assert!(mine[0].1.is_ended() && !mine[1].1.is_ended() && !other.1.is_ended());
        // Its client sees the end.
        assert_eq!(mine[0].0.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn many_hosts_end_the_oldest_of_all() {
        let Most { in_total: most_of_all, .. } = Most::SERVER;
        let handshakes = Handshakes::new(Most::SERVER);
        let of = |index: usize| connection(&handshakes, &format!("2001:db8:0:{index:x}::1"));
        let most: Vec<_> = (0..most_of_all).map(of).collect();
        assert!(!ended(&most).contains(&true) && !handshakes.is_full());
        let more: Vec<_> = (most_of_all..2 * most_of_all).map(of).collect();
        assert_eq!(ended(&most), vec![true; most_of_all]);
        assert!(!ended(&more).contains(&true) && handshakes.is_full());
        drop(most);
        assert!(!handshakes.is_full());
    }

    #[test]
    fn a_host_has_one_place_whatever_its_address_looks_like() {
        let host = |text: &str| host(text.parse().unwrap());
        assert_eq!(host("::ffff:192.0.2.1"), host("192.0.2.1"));
        assert_eq!(host("2001:db8::1"), host("2001:db8::ffff:1"));
        assert_ne!(host("2001:db8::1"), host("2001:db8:0:1::1"));
    }

    const ALMOST: Duration = Duration::from_millis(9_999);

    fn signs(is_ending: bool, heard: u64) -> Option<Signs> {
        Some(Signs { is_ending, heard })
    }

    #[test]
    fn a_link_that_is_heard_lives() {
        let came = Instant::now();
        let mut newcomer = Newcomer::new(came);
        assert!(newcomer.may_wait(signs(false, 7), came));
        assert!(newcomer.may_wait(signs(false, 7), came + END_LIMIT / 2));
        assert!(!newcomer.may_wait(signs(false, 8), came + END_LIMIT / 2));
    }

    #[test]
    fn one_that_ends_is_waited_for_whatever_still_comes_of_it() {
        let came = Instant::now();
        let mut newcomer = Newcomer::new(came);
        for (millis, heard) in (0..10_000).step_by(100).zip(7..) {
            let now = came + Duration::from_millis(millis);
            assert!(newcomer.may_wait(signs(true, heard), now), "{millis} ms");
        }
    }

    #[test]
    fn nothing_is_waited_for_longer_than_ten_seconds() {
        for link in [None, signs(true, 7), signs(false, 7)] {
            let came = Instant::now();
            let mut newcomer = Newcomer::new(came);
            assert!(newcomer.may_wait(link, came + ALMOST), "{link:?}");
            assert!(!newcomer.may_wait(link, came + END_LIMIT), "{link:?}");
        }
    }

    #[test]
    fn a_handshake_is_waited_for_until_its_link_is_heard() {
        let came = Instant::now();
        let mut newcomer = Newcomer::new(came);
        assert!(newcomer.may_wait(None, came));
        assert!(newcomer.may_wait(signs(false, 0), came));
        assert!(!newcomer.may_wait(signs(false, 1), came));
    }
}
