//! The columns of the table, one row of an array each, and which of them a sweep has. It must not know rows to come.

use settings::{Id, ROWS, Row, Settings, Timestamps};

use super::super::model::{FlowResult, Latency, LoadVerdict, Run};
use super::super::number::{NOT_MEASURED, digits, figure, human_size, rate_cell};

/// What a row is of.
pub(super) struct RowOf<'a> {
    pub(super) settings: &'a Settings,
    pub(super) run: &'a Run,
    pub(super) flow: &'a FlowResult,
    /// [`OUT`] and ` in` where a case has traffic both ways.
    pub(super) direction: &'static str,
}

/// Behind the operation, of what the first node sends of traffic both ways.
pub(super) const OUT: &str = " out";

/// One column; a cell that is wider pushes its row, nothing is cut.
#[derive(Clone, Copy)]
pub(super) struct Column {
    pub(super) head: &'static str,
    /// Characters, at least: words of settings make their column as wide as they are.
    pub(super) width: usize,
    /// Words are flush left, figures flush right.
    pub(super) is_word: bool,
    pub(super) cell: fn(&RowOf<'_>) -> String,
}

const fn word(head: &'static str, width: usize, cell: fn(&RowOf<'_>) -> String) -> Column {
    Column {
        head,
        width,
        is_word: true,
        cell,
    }
}

const fn number(head: &'static str, width: usize, cell: fn(&RowOf<'_>) -> String) -> Column {
    Column {
        is_word: false,
        ..word(head, width, cell)
    }
}

/// What a row is of, each with the field of its setting.
static SETTINGS: [(&str, Column); 5] = [
    (
        "op",
        word("op", 9, |row| {
            format!("{}{}", row.settings.op, row.direction)
        }),
    ),
    (
        "cq",
        word("cq", 10, |row| row.of_traffic(row.settings.cq.to_string())),
    ),
    ("qps", number("QPs", 4, |row| row.settings.qps.to_string())),
    (
        "size_bytes",
        number("size", 7, |row| row.of_traffic(row.sizes())),
    ),
    (
        "workers",
        number("wrk", 3, |row| {
            row.of_traffic(row.settings.workers.to_string())
        }),
    ),
];

/// Figures of closed loops. `CPU s/GB` is CPU time of the sending (or reading) node's workers for 10^9 bytes of payload
/// that it sends, `limit` the share of what link and protocol allow.
static CLOSED: [Column; 8] = [
    number("Gbit/s", 7, |row| row.gbit_per_s()),
    number("Mmsg/s", 7, |row| figure(row.flow.mmsg_per_s(), digits)),
    number("p50 µs", 7, |row| row.p50()),
    number("p99 µs", 7, |row| row.p99()),
    number("p99.9 µs", 8, |row| row.p99_9()),
    number("Jain", 5, |row| {
        let fairness = row.flow.fairness.as_ref();
        figure(fairness.map(|fairness| fairness.jain), |_| 3)
    }),
    number("CPU s/GB", 8, |row| {
        figure(row.run.cpu_seconds_per_gb(&row.flow.from), digits)
    }),
    number("limit", 5, |row| row.limit()),
];

/// Figures where there are open loops, in messages a second. Latency is from the planned time, `late p99` in µs.
static OPEN: [Column; 9] = [
    number("load", 6, |row| row.settings.rate.to_string()),
    number("offered/s", 9, |row| {
        rate(row.flow.load.as_ref().map(|load| load.offered_per_second))
    }),
    number("done/s", 7, |row| {
        rate(row.flow.mmsg_per_s().map(|rate| rate * 1e6))
    }),
    number("Gbit/s", 6, |row| row.gbit_per_s()),
    number("p50 µs", 6, |row| row.p50()),
    number("p99 µs", 6, |row| row.p99()),
    number("p99.9 µs", 8, |row| row.p99_9()),
    number("late p99", 8, |row| {
        micros(row.flow.lateness_ns.as_ref().and_then(|late| late.p99))
    }),
    word("schedule", 10, |row| {
        match row.flow.load.as_ref().map(|load| load.verdict) {
            None => NOT_MEASURED.to_owned(),
            // The column's head says of what.
            Some(LoadVerdict::NotKept) => "not kept".to_owned(),
            Some(verdict) => verdict.name().to_owned(),
        }
    }),
];

/// Where latencies end at the device's stamps: how long after those 99 % of completions were seen.
static NOTICE: Column = number("seen p99", 8, |row| {
    micros(row.flow.notice_ns.as_ref().and_then(|notice| notice.p99))
});

fn rate(per_second: Option<f64>) -> String {
    per_second.map_or_else(|| NOT_MEASURED.to_owned(), rate_cell)
}

fn micros(ns: Option<u64>) -> String {
    figure(ns.map(|ns| ns as f64 / 1000.0), digits)
}

impl RowOf<'_> {
    /// A setting of traffic, which a run may not have.
    fn of_traffic(&self, text: String) -> String {
        match self.settings.has_traffic() {
            false => NOT_MEASURED.to_owned(),
            true => text,
        }
    }

    /// The size of messages, or each size with its weight.
    fn sizes(&self) -> String {
        match self.settings.size_mix {
            Some(_) => self.settings.sizes_text(),
            None => human_size(self.settings.size_bytes.into()),
        }
    }

    fn latency(&self) -> Option<&Latency> {
        self.flow.latency_ns.as_ref()
    }

    fn gbit_per_s(&self) -> String {
        figure(self.flow.gbit_per_s(), digits)
    }

    fn p50(&self) -> String {
        micros(self.latency().map(|latency| latency.p50))
    }

    fn p99(&self) -> String {
        micros(self.latency().and_then(|latency| latency.p99))
    }

    fn p99_9(&self) -> String {
        micros(self.latency().and_then(|latency| latency.p99_9))
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

/// The columns of a sweep.
pub(super) struct Columns {
    pub(super) all: Vec<Column>,
    /// What is the same in all rows and therefore in none, as words; empty where everything is in rows.
    pub(super) same: String,
    /// The settings that it is of.
    same_rows: Vec<&'static Row>,
    /// There are open loops, and columns of them, which say whether the schedule was kept.
    pub(super) are_of_loads: bool,
}

impl Columns {
    /// The columns for flows with these settings. Open loops have more figures, and leave out what is the same in all rows,
    /// so that a line has room in 80 columns.
    pub(super) fn of(settings: &[Settings]) -> Columns {
        let stamped = |flow: &&Settings| flow.timestamps == Timestamps::Device;
        let notice = settings.iter().find(stamped).map(|_| NOTICE);
        let open = settings.iter().find(|flow| !flow.is_closed_loop());
        let Some(open) = open else {
            let all = SETTINGS
                .iter()
                .map(|(_, column)| wide_enough(column, settings));
            return Columns {
                all: all.chain(CLOSED).chain(notice).collect(),
                same: String::new(),
                same_rows: Vec::new(),
                are_of_loads: false,
            };
        };
        let is_told = |row: &&Row| row.id == Id::Word || column(row).is_some();
        let is_same = |row: &&Row| settings.iter().all(|flow| row.is_equal(flow, open));
        let same_rows: Vec<&Row> = ROWS.iter().filter(is_told).filter(is_same).collect();
        let words = same_rows.iter().map(|row| {
            let value = column(row).map_or_else(|| row.text(open), |it| of_setting(it, open, ""));
            row.words(open, &value)
        });
        let words: Vec<String> = words.filter(|words| !words.is_empty()).collect();
        let is_same = |field: &str| same_rows.iter().any(|row| row.field == field);
        let differing = SETTINGS.iter().filter(|(field, _)| !is_same(field));
        Columns {
            all: differing
                .map(|(_, column)| wide_enough(column, settings))
                .chain(OPEN)
                .chain(notice)
                .collect(),
            same: words.join(", "),
            same_rows,
            are_of_loads: true,
        }
    }

    /// Whether all rows have the same value of a setting, which is told above them.
    pub(super) fn have_same(&self, row: &Row) -> bool {
        self.same_rows.iter().any(|same| same.field == row.field)
    }

    /// Whether a row tells its operation.
    pub(super) fn has_operation(&self) -> bool {
        self.all.iter().any(|column| column.head == "op")
    }
}

/// The cell of a setting, before there is a run.
fn of_setting(column: &Column, settings: &Settings, direction: &'static str) -> String {
    (column.cell)(&RowOf {
        settings,
        run: &Run::default(),
        flow: &FlowResult::default(),
        direction,
    })
}

/// The column, as wide as the words of all flows.
fn wide_enough(column: &Column, settings: &[Settings]) -> Column {
    let words = settings.iter().filter(|_| column.is_word).map(|flow| {
        let direction = if flow.bidirectional { OUT } else { "" };
        of_setting(column, flow, direction).chars().count()
    });
    Column {
        width: words.max().unwrap_or(0).max(column.width),
        ..*column
    }
}

/// The column of a setting.
fn column(row: &Row) -> Option<&'static Column> {
    let mut columns = SETTINGS.iter();
    let found = columns.find(|(field, _)| *field == row.field);
    found.map(|(_, column)| column)
}
