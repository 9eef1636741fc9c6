//! Which QP of the peer a message goes to: the one with the same index, or with `--ud-fan-out` each in turn, by the
//! message's position in the ring. So the receiver knows the sending QP of a position, which no message tells.

use settings::Settings;

/// The pairs of QPs of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Peers {
    /// QPs among which each sends in turn; 1 where each has one peer.
    turn: u32,
    qps: u32,
}

impl Peers {
    pub fn of(flow: &Settings) -> Peers {
        let qps = flow.qps.max(1);
        Peers { turn: if flow.ud_fan_out { qps } else { 1 }, qps }
    }

    /// The QP that receives what QP `sender` sends from `position`.
    pub fn receiver(&self, sender: u32, position: u32) -> u32 {
        (sender % self.qps + position % self.turn) % self.qps
    }

    /// The QP that sends to QP `receiver` from `position`.
    pub fn sender(&self, receiver: u32, position: u32) -> u32 {
        (receiver % self.qps + self.qps - position % self.turn) % self.qps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(qps: u32, ud_fan_out: bool) -> Peers {
        Peers::of(&Settings { qps, ud_fan_out, ..Settings::default() })
    }

    #[test]
    fn the_sender_is_found_by_receiver_and_position() {
        for (qps, fan_out) in [(1, false), (5, false), (1, true), (5, true)] {
            let peers = peers(qps, fan_out);
            for (sender, position) in (0..qps).flat_map(|qp| (0..16).map(move |at| (qp, at))) {
                let receiver = peers.receiver(sender, position);
                assert_eq!(peers.sender(receiver, position), sender);
                assert!(fan_out || receiver == sender);
            }
        }
    }

    #[test]
    fn each_qp_sends_to_all_in_turn() {
        let peers = peers(3, true);
        let to: Vec<u32> = (0..6).map(|position| peers.receiver(1, position)).collect();
        assert_eq!(to, [1, 2, 0, 1, 2, 0]);
    }
}
