//! What packets met on their way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::names;

/// An event on the path of packets, from a device's counters over the window. They count the whole port, other traffic
/// too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathEvent {
    /// The node whose device counted.
    pub node: String,
    /// Kind of event.
    pub kind: PathEventKind,
    /// How often: the sum of the counters.
    pub count: u64,
    /// The driver's counters that mean this.
    pub counters: Vec<String>,
}

/// A device whose counters do not show lost packets: packets may be lost without an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LossUnknown {
    /// The node that has it.
    pub node: String,
    /// The device.
    pub device: String,
    /// Its driver; `null` if unknown.
    pub driver: Option<String>,
    /// Why.
    pub reason: LossUnknownReason,
}

impl LossUnknown {
    /// The device and why, for a person.
    pub fn words(&self) -> String {
        let why = self.reason.of_driver(self.driver.as_deref());
        format!("{}: {why}", self.device)
    }
}

names! {
    /// Why lost packets cannot be seen.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    LossUnknownReason {
        /// The kernel shows no counters, as with some drivers and in most containers.
        NoCounters = "shows no counters",
        /// The names of the driver's counters are not known.
        UnknownDriver = "has counters that rocebench does not know",
        /// No counter counts packets that were lost or sent again.
        NotCounted = "shows no counter of lost packets",
    }
}

impl LossUnknownReason {
    /// For a person, with the driver.
    pub fn of_driver(self, driver: Option<&str>) -> String {
        match driver {
            Some(driver) => format!("driver {driver} {self}"),
            None => format!("its driver {self}"),
        }
    }
}

names! {
    /// Kinds of [`PathEvent`].
    #[derive(PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    PathEventKind {
        /// A receiver found a gap before a packet: loss or reordering.
        SequenceGap = "sequence gap",
        /// A sender received a NAK for a gap, or missed an answer.
        SequenceNak = "sequence NAK",
        /// A sender waited in vain for an ACK.
        AckTimeout = "ACK timeout",
        /// Packets were sent again, came twice, or were sent more slowly after a loss.
        Resent = "resent",
        /// A sender gave up after its last retry.
        GaveUp = "gave up",
        /// A receiver had no receive posted or no room: not the network.
        ReceiverNotReady = "receiver not ready",
        /// A damaged packet came.
        BadPacket = "bad packet",
        /// The device dropped packets.
        Dropped = "dropped",
        /// A switch marked packets for ECN, or an end sent or obeyed a congestion notification.
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

    /// Whether each packet that the network loses leads to such an event at one of both ends.
    pub fn follows_loss(self) -> bool {
        use PathEventKind::{AckTimeout, GaveUp, Resent, SequenceGap, SequenceNak};
        matches!(self, SequenceGap | SequenceNak | AckTimeout | Resent | GaveUp)
    }

    /// Whether packets were lost, damaged or late. The others have reasons besides the path.
    pub fn is_loss(self) -> bool {
        !matches!(self, PathEventKind::ReceiverNotReady | PathEventKind::Congestion)
    }
}
