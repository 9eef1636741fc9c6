//! What a column may have, and which figures stay where a line is short.

use settings::Row;

use crate::observe::Metric::{
    self, AchievedPerS, AloneGbitPerS, ConnectionsPerS, CpuSecondsPerGb, GbitPerS, LateP99Ns,
    MachineCpuSecondsPerGb, MaxNs, MmsgPerS, OfferedPerS, P50Ns, P99_9Ns, P99Ns, PercentOfLimit,
    SeenP99Ns, SetupP50Ns, SetupP99Ns, SetupRounds,
};

#[derive(Clone, Copy)]
pub(super) enum Cell {
    Setting(&'static Row),
    /// Which way a flow of traffic both ways goes.
    Direction,
    /// Number of the run, where cases have several.
    Run,
    Metric(Metric),
    /// Whether an open loop kept its schedule.
    Schedule,
}

/// A column of figures: its characters, at least, and its rank. Where a line is short the largest ranks go first; 0 stays.
pub(super) type Figure = (Cell, usize, u8);

pub(super) static CLOSED: [Figure; 9] = [
    (Cell::Metric(GbitPerS), 7, 0),
    (Cell::Metric(MmsgPerS), 8, 3),
    (Cell::Metric(P50Ns), 9, 2),
    (Cell::Metric(P99Ns), 9, 1),
    (Cell::Metric(P99_9Ns), 9, 4),
    (Cell::Metric(MaxNs), 9, 7),
    (Cell::Metric(CpuSecondsPerGb), 8, 6),
    (Cell::Metric(MachineCpuSecondsPerGb), 9, 8),
    (Cell::Metric(PercentOfLimit), 7, 5),
];

/// Figures where there are open loops. Latency is from the planned time, lateness how late messages were posted.
pub(super) static OPEN: [Figure; 8] = [
    (Cell::Metric(OfferedPerS), 11, 1),
    (Cell::Metric(AchievedPerS), 8, 0),
    (Cell::Metric(GbitPerS), 6, 6),
    (Cell::Metric(P50Ns), 8, 2),
    (Cell::Metric(P99Ns), 8, 0),
    (Cell::Metric(P99_9Ns), 8, 4),
    (Cell::Metric(LateP99Ns), 11, 3),
    (Cell::Schedule, 10, 0),
];

/// Figures of set-up: how fast QPs are connected, how long a round takes, and what the traffic moves meanwhile.
pub(super) static SET_UP: [Figure; 6] = [
    (Cell::Metric(ConnectionsPerS), 13, 0),
    (Cell::Metric(SetupRounds), 6, 3),
    (Cell::Metric(SetupP50Ns), 13, 2),
    (Cell::Metric(SetupP99Ns), 13, 0),
    (Cell::Metric(GbitPerS), 7, 1),
    (Cell::Metric(AloneGbitPerS), 10, 4),
];

/// Where latencies end at the device's stamps: how long after those 99 % of completions were seen.
pub(super) static SEEN: Figure = (Cell::Metric(SeenP99Ns), 11, 3);
