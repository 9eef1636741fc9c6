//! The figures that a row may have, and which of them stay where a line is short. It must not know settings' columns.

use settings::Settings;

use super::super::model::{FlowResult, Latency, LoadVerdict, Run};
use super::super::number::{NOT_MEASURED, cell, figure, rate_cell, time_text};

/// What a row is of.
pub(super) struct RowOf<'a> {
    pub(super) settings: &'a Settings,
    pub(super) run: &'a Run,
    pub(super) flow: &'a FlowResult,
    /// `out` and `in` where a case has traffic both ways, else empty.
    pub(super) direction: &'static str,
}

/// A column of figures; a cell that is wider pushes its row, nothing is cut.
#[derive(Clone, Copy)]
pub(super) struct Figure {
    pub(super) head: &'static str,
    /// Characters, at least.
    pub(super) width: usize,
    /// Words are flush left, figures flush right.
    pub(super) is_word: bool,
    /// Where a line is short the largest go first; 0 stays.
    pub(super) rank: u8,
    pub(super) cell: fn(&RowOf<'_>) -> String,
}

const fn number(
    head: &'static str,
    width: usize,
    rank: u8,
    cell: fn(&RowOf<'_>) -> String,
) -> Figure {
    Figure {
        head,
        width,
        is_word: false,
        rank,
        cell,
    }
}

/// Column of fairness.
pub(super) const JAIN: &str = "Jain";
/// Column of the share of what link and protocol allow.
pub(super) const LIMIT: &str = "limit";

/// Figures of closed loops. `CPU s/GB` is CPU time of the sending (or reading) node's workers for 10^9 bytes of payload
/// that it sends.
pub(super) static CLOSED: [Figure; 9] = [
    number("Gb/s", 7, 0, |row| row.gbit_per_s()),
    number("Mmsg/s", 7, 3, |row| cell(row.flow.mmsg_per_s())),
    number("p50", 7, 2, |row| row.p50()),
    number("p99", 7, 1, |row| row.p99()),
    number("p99.9", 7, 4, |row| row.p99_9()),
    number("max", 7, 8, |row| {
        time(row.latency().map(|latency| latency.max))
    }),
    number(JAIN, 5, 6, |row| {
        let fairness = row.flow.fairness.as_ref();
        figure(fairness.map(|fairness| fairness.jain), |_| 3)
    }),
    number("CPU s/GB", 8, 7, |row| {
        cell(row.run.cpu_seconds_per_gb(&row.flow.from))
    }),
    number(LIMIT, 5, 5, |row| row.limit()),
];

/// Figures where there are open loops, in messages a second. Latency is from the planned time, `late p99` how late
/// messages were posted.
pub(super) static OPEN: [Figure; 8] = [
    number("offered/s", 9, 1, |row| {
        rate(row.flow.load.as_ref().map(|load| load.offered_per_second))
    }),
    number("done/s", 7, 0, |row| {
        rate(row.flow.mmsg_per_s().map(|rate| rate * 1e6))
    }),
    number("Gb/s", 6, 6, |row| row.gbit_per_s()),
    number("p50", 7, 2, |row| row.p50()),
    number("p99", 7, 0, |row| row.p99()),
    number("p99.9", 7, 4, |row| row.p99_9()),
    number("late p99", 8, 3, |row| {
        time(row.flow.lateness_ns.as_ref().and_then(|late| late.p99))
    }),
    Figure {
        is_word: true,
        ..number("schedule", 10, 0, |row| {
            match row.flow.load.as_ref().map(|load| load.verdict) {
                None => NOT_MEASURED.to_owned(),
                // The column's head says of what.
                Some(LoadVerdict::NotKept) => "not kept".to_owned(),
                Some(verdict) => verdict.name().to_owned(),
            }
        })
    },
];

/// Figures of set-up: how fast QPs are connected, how long a round takes, and what the traffic moves meanwhile.
pub(super) static SET_UP: [Figure; 7] = [
    number("connections/s", 13, 0, |row| {
        let connect = row.run.connect.as_ref();
        rate(connect.and_then(|connect| connect.connections_per_second))
    }),
    number("rounds", 6, 3, |row| {
        let rounds = row
            .run
            .connect
            .as_ref()
            .map(|connect| connect.rounds as f64);
        figure(rounds, |_| 0)
    }),
    number("p50", 7, 2, |row| {
        time(row.set_up().and_then(|round| round.p50))
    }),
    number("p99", 7, 0, |row| {
        time(row.set_up().and_then(|round| round.p99))
    }),
    number("max", 7, 4, |row| time(row.set_up().map(|round| round.max))),
    number("traffic Gb/s", 12, 1, |row| row.gbit_per_s()),
    number("alone Gb/s", 10, 2, |row| {
        let connect = row.run.connect.as_ref();
        cell(connect.and_then(|it| it.traffic_alone_gbit_per_s))
    }),
];

/// Where latencies end at the device's stamps: how long after those 99 % of completions were seen.
pub(super) static NOTICE: Figure = number("seen p99", 8, 3, |row| {
    time(row.flow.notice_ns.as_ref().and_then(|notice| notice.p99))
});

fn rate(per_second: Option<f64>) -> String {
    per_second.map_or_else(|| NOT_MEASURED.to_owned(), rate_cell)
}

fn time(ns: Option<u64>) -> String {
    ns.map_or_else(|| NOT_MEASURED.to_owned(), |ns| time_text(ns as f64))
}

impl RowOf<'_> {
    fn latency(&self) -> Option<&Latency> {
        self.flow.latency_ns.as_ref()
    }

    fn set_up(&self) -> Option<&Latency> {
        self.run.connect.as_ref()?.setup_ns.as_ref()
    }

    fn gbit_per_s(&self) -> String {
        cell(self.flow.gbit_per_s())
    }

    fn p50(&self) -> String {
        time(self.latency().and_then(|latency| latency.p50))
    }

    fn p99(&self) -> String {
        time(self.latency().and_then(|latency| latency.p99))
    }

    fn p99_9(&self) -> String {
        time(self.latency().and_then(|latency| latency.p99_9))
    }

    fn limit(&self) -> String {
        let limits = self.flow.limits.as_ref();
        let share = limits.and_then(|limits| limits.share_of_limit);
        share.map_or_else(
            || NOT_MEASURED.to_owned(),
            |share| {
                let percent = share * 100.0;
                let digits = usize::from(percent < 99.95);
                format!("{percent:.digits$}%")
            },
        )
    }
}
