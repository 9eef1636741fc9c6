//! Until when a device has handled all that arrived. A time-out is believed only up to then, since an answer that lies
//! unread in the own socket is in time, however late a thread had a core to take it. It must not know sockets or QPs.

/// What the kernel counts for any datagram besides its bytes, at least: `sk_buff` and `skb_shared_info`.
const LEAST_OVERHEAD_BYTES: u64 = 512;

/// The time, and what is known on the way to a later one.
pub(crate) struct HandledUntil {
    /// The most that the socket holds, in the kernel's accounting.
    socket_bytes: u64,
    /// A round that left packets in the socket: when it began, and all that had been taken when it ended.
    began_ns: u64,
    taken_bytes: u64,
}

impl HandledUntil {
    pub(crate) fn new(socket_bytes: usize) -> HandledUntil {
        HandledUntil { socket_bytes: socket_bytes as u64, began_ns: 0, taken_bytes: 0 }
    }

    /// Counts a round that began at `now_ns` and emptied the socket or not, with all datagrams and their bytes so far.
    /// Returns until when all is handled, if the round tells: its beginning if it emptied the socket; otherwise that of
    /// an earlier one, since when as much was taken as the socket holds.
    pub(crate) fn after_round(
        &mut self,
        now_ns: u64,
        emptied: bool,
        datagrams: u64,
        bytes: u64,
    ) -> Option<u64> {
        let taken_bytes = bytes + datagrams * LEAST_OVERHEAD_BYTES;
        let until_ns = if emptied {
            now_ns
        } else if taken_bytes - self.taken_bytes >= self.socket_bytes {
            self.began_ns
        } else {
            return None;
        };
        (self.began_ns, self.taken_bytes) = (now_ns, taken_bytes);
        Some(until_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_that_empties_the_socket_tells_its_beginning() {
        let mut handled = HandledUntil::new(10_000);
        assert_eq!(handled.after_round(5, true, 0, 0), Some(5));
        assert_eq!(handled.after_round(6, false, 1, 1000), None);
        assert_eq!(handled.after_round(7, true, 2, 2000), Some(7));
    }

    #[test]
    fn a_socket_that_is_never_empty_is_handled_once_it_was_taken_whole() {
        let mut handled = HandledUntil::new(10_000);
        handled.after_round(5, true, 0, 0);
        // 2000 bytes with what the kernel adds.
        let told: Vec<_> = (1..=10)
            .map(|number| {
                let bytes = (2000 - LEAST_OVERHEAD_BYTES) * number;
                handled.after_round(5 + number, false, number, bytes)
            })
            .collect();
        let mut expected = [None; 10];
        // What arrived after the fifth round began may still be there.
        (expected[4], expected[9]) = (Some(5), Some(10));
        assert_eq!(told, expected);
    }
}
