//! The figures that a row may have, and which of them stay where a line is short. It must not know settings' columns.

use settings::Settings;

use crate::observe::Metric;
use crate::observe::format::NOT_MEASURED;
use crate::observe::standing::Standing;
use crate::results::model::{FlowResult, LoadVerdict, Run};

/// What a row is of.
pub(super) struct RowOf<'a> {
    pub(super) settings: &'a Settings,
    pub(super) run: &'a Run,
    pub(super) flow: &'a FlowResult,
    /// Whether its figures count.
    pub(super) standing: Standing,
    /// `out` and `in` where a case has traffic both ways, else empty.
    pub(super) direction: &'static str,
}

/// A column of figures; a cell that is wider pushes its row, nothing is cut.
#[derive(Clone, Copy)]
pub(super) struct Figure {
    pub(super) of: Of,
    /// Characters, at least.
    pub(super) width: usize,
    /// Where a line is short the largest go first; 0 stays.
    pub(super) rank: u8,
}

/// What a column has.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Of {
    Metric(Metric),
    /// Whether an open loop kept its schedule.
    Schedule,
}

const fn metric(metric: Metric, width: usize, rank: u8) -> Figure {
    Figure {
        of: Of::Metric(metric),
        width,
        rank,
    }
}

/// Figures of closed loops.
pub(super) static CLOSED: [Figure; 9] = [
    metric(Metric::GbitPerS, 7, 0),
    metric(Metric::MmsgPerS, 8, 3),
    metric(Metric::P50Ns, 9, 2),
    metric(Metric::P99Ns, 9, 1),
    metric(Metric::P99_9Ns, 9, 4),
    metric(Metric::MaxNs, 9, 7),
    metric(Metric::CpuSecondsPerGb, 8, 6),
    metric(Metric::MachineCpuSecondsPerGb, 9, 8),
    metric(Metric::PercentOfLimit, 7, 5),
];

/// Figures where there are open loops. Latency is from the planned time, lateness how late messages were posted.
pub(super) static OPEN: [Figure; 8] = [
    metric(Metric::OfferedPerS, 11, 1),
    metric(Metric::AchievedPerS, 8, 0),
    metric(Metric::GbitPerS, 6, 6),
    metric(Metric::P50Ns, 8, 2),
    metric(Metric::P99Ns, 8, 0),
    metric(Metric::P99_9Ns, 8, 4),
    metric(Metric::LateP99Ns, 11, 3),
    Figure {
        of: Of::Schedule,
        width: 10,
        rank: 0,
    },
];

/// Figures of set-up: how fast QPs are connected, how long a round takes, and what the traffic moves meanwhile.
pub(super) static SET_UP: [Figure; 6] = [
    metric(Metric::ConnectionsPerS, 13, 0),
    metric(Metric::SetupRounds, 6, 3),
    metric(Metric::SetupP50Ns, 13, 2),
    metric(Metric::SetupP99Ns, 13, 0),
    metric(Metric::GbitPerS, 7, 1),
    metric(Metric::AloneGbitPerS, 10, 4),
];

/// Where latencies end at the device's stamps: how long after those 99 % of completions were seen.
pub(super) static SEEN: Figure = metric(Metric::SeenP99Ns, 11, 3);

impl Figure {
    /// The heading; as wide as its column at most.
    pub(super) fn head(&self) -> String {
        match self.of {
            Of::Metric(metric) => metric.heading(),
            Of::Schedule => "schedule".to_owned(),
        }
    }

    /// Words are flush left, figures flush right.
    pub(super) fn is_word(&self) -> bool {
        self.of == Of::Schedule
    }

    pub(super) fn cell(&self, row: &RowOf<'_>) -> String {
        let text = match self.of {
            Of::Metric(metric) => {
                let figure = metric.of(row.run, Some(row.flow));
                figure.map(|figure| metric.cell(figure))
            }
            Of::Schedule => row.flow.load.as_ref().map(|load| match load.verdict {
                // The column's head says of what.
                LoadVerdict::NotKept => "not kept".to_owned(),
                verdict => verdict.name().to_owned(),
            }),
        };
        text.unwrap_or_else(|| NOT_MEASURED.to_owned())
    }
}
