//! What packets met on their way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::names;

/// An event on the path of packets, as a device counted it over the window. Its counters are of the whole port, so
/// traffic of others is in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathEvent {
    /// The node whose device counted.
    pub node: String,
    /// What it was.
    pub kind: PathEventKind,
    /// How often: the sum of the counters.
    pub count: u64,
    /// The driver's counters that mean this.
    pub counters: Vec<String>,
}

names! {
    /// Kinds of [`PathEvent`].
    #[derive(PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    PathEventKind {
        /// A receiver missed a packet before one that came: loss or reordering.
        SequenceGap = "sequence gap",
        /// A sender received a NAK for a gap, or saw that an answer was missing.
        SequenceNak = "sequence NAK",
        /// A sender waited in vain for an ACK.
        AckTimeout = "ACK timeout",
        /// Packets were sent again, came again, or were sent more slowly after that.
        Resent = "resent",
        /// A sender gave up after its last retry.
        GaveUp = "gave up",
        /// A receiver had no receive posted or no room: not the network.
        ReceiverNotReady = "receiver not ready",
        /// A packet came damaged.
        BadPacket = "bad packet",
        /// The device dropped packets.
        Dropped = "dropped",
        /// A switch marked packets for ECN, or an end sent or heeded a congestion notification.
        Congestion = "congestion",
    }
}

impl PathEventKind {
    /// For a person who has not met it before.
    pub fn words(self) -> &'static str {
        match self {
            PathEventKind::SequenceGap => "gaps seen by the receiver",
            PathEventKind::SequenceNak => "NAKs for a gap",
            PathEventKind::AckTimeout => "ACK timeouts",
            PathEventKind::Resent => "sent again",
            PathEventKind::GaveUp => "gave up after the last retry",
            PathEventKind::ReceiverNotReady => "receiver not ready",
            PathEventKind::BadPacket => "damaged packets",
            PathEventKind::Dropped => "dropped by the device",
            PathEventKind::Congestion => "ECN and congestion notifications",
        }
    }

    /// Whether packets were lost, damaged or late. The others have reasons besides the path.
    pub fn is_loss(self) -> bool {
        !matches!(
            self,
            PathEventKind::ReceiverNotReady | PathEventKind::Congestion
        )
    }
}
