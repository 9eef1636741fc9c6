//! What a program of perftest prints while its runs go on, at either end.

use std::{io, time::Duration};

use crate::{
    cli::{every::Stretches, terminal::say},
    coordinator::interface::Observer,
};
use protocol::endpoints::{ConnectingEnds, Endpoints, LinkLayer};
use report::show::perftest::{Address, Connecting, Form, PerftestTable};
use results::model::{CaseConfig, ResultFile, Run, Totals};
use settings::Mtu;

/// Has the table begin with what is known of these ends.
pub(super) fn begin(
    table: &mut PerftestTable<io::Stdout>,
    ends: ConnectingEnds<'_>,
) -> io::Result<()> {
    let ConnectingEnds { settings, own, peer, .. } = ends;
    table.connects(&Connecting {
        settings,
        device: ends.device,
        gid_index: ends.gid_index,
        is_infiniband: own.link_layer == LinkLayer::Infiniband,
        mtu_bytes: settings.mtu.map_or(own.mtu_bytes.min(peer.mtu_bytes), Mtu::bytes),
        outstanding_reads: settings
            .max_rd_atomic
            .unwrap_or(own.max_rd_atomic.min(peer.max_rd_atomic)),
        local: addresses(own),
        remote: addresses(peer),
    })
}

fn addresses(end: &Endpoints) -> Vec<Address> {
    // What a peer sends that is no GID is refused when its QPs connect.
    let gid = end.gid_bytes().unwrap_or_default();
    let qps = end.qps.iter().map(|qp| Address {
        lid: end.lid,
        gid,
        qpn: qp.qpn,
        psn: qp.psn,
        rkey: qp.rkey,
        address: qp.address,
    });
    qps.collect()
}

/// The rows of a client.
pub(super) struct PerftestRows {
    table: PerftestTable<io::Stdout>,
    /// Of a run without an end.
    period: Option<Period>,
    /// Why not all could be shown.
    unshown: Option<io::Error>,
}

impl PerftestRows {
    pub(super) fn new(form: Form, period: Option<Duration>) -> PerftestRows {
        let table = PerftestTable::new(io::stdout(), form);
        PerftestRows { table, period: period.map(Period::new), unshown: None }
    }

    /// No run follows; what no row has reached that one had to.
    ///
    /// # Errors
    /// Something could not be shown.
    pub(super) fn end(mut self) -> io::Result<Option<&'static str>> {
        let ended = self.table.end();
        self.note(ended);
        self.unshown.map_or(Ok(self.table.missed()), Err)
    }

    /// A closed stdout is nobody's loss but the table's.
    fn note(&mut self, shown: io::Result<()>) {
        if let Err(error) = shown
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.unshown.get_or_insert(error);
        }
    }
}

impl Observer for PerftestRows {
    fn connects(&mut self, ends: ConnectingEnds<'_>) {
        let begun = begin(&mut self.table, ends);
        self.note(begun);
    }

    fn phase(&mut self, name: &str, _: Option<Duration>) {
        if let Some(period) = &mut self.period {
            period.phase(name);
        }
    }

    fn sample(&mut self, elapsed: Duration, gbit_per_s: f64, mmsg_per_s: f64) {
        let period = self.period.as_mut();
        let over = period.and_then(|period| period.add(elapsed, gbit_per_s, mmsg_per_s));
        if let Some((moved, slowest)) = over {
            let shown = self.table.period(&moved);
            self.note(shown);
            say(&format!("rocebench: the slowest second of this row: {slowest:.2} Gb/s"));
        }
    }

    fn run_finished(&mut self, _: &CaseConfig, run: &Run, result: &ResultFile) {
        let shown = self.table.run(run, result);
        self.note(shown);
    }
}

/// Rows of a run without an end.
#[derive(Debug)]
struct Period {
    rows: Stretches,
    seconds: Stretches,
    /// The slowest second of the row, in 10^9 bits a second.
    slowest: Option<f64>,
}

impl Period {
    fn new(length: Duration) -> Period {
        let [rows, seconds] = [length, Duration::from_secs(1)].map(Stretches::new);
        Period { rows, seconds, slowest: None }
    }

    fn phase(&mut self, name: &str) {
        self.rows.phase(name);
        self.seconds.phase(name);
    }

    /// Takes the rate since the last sample. At the end of a row what it moved, and the slowest second.
    fn add(
        &mut self,
        elapsed: Duration,
        gbit_per_s: f64,
        mmsg_per_s: f64,
    ) -> Option<(Totals, f64)> {
        if let Some(moved) = self.seconds.add(elapsed, gbit_per_s, mmsg_per_s) {
            let rate = moved.gbit / moved.seconds;
            self.slowest = Some(self.slowest.map_or(rate, |slowest| slowest.min(rate)));
        }
        let moved = self.rows.add(elapsed, gbit_per_s, mmsg_per_s)?;
        let (messages, bytes) = (moved.mmsg * 1e6, moved.gbit * 1e9 / 8.0);
        let totals =
            Totals::in_window(messages.round() as u64, bytes.round() as u64, 0, moved.seconds);
        let slowest = self.slowest.take().or(totals.gbit_per_s)?;
        Some((totals, slowest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_an_endless_run_has_all_of_its_period_and_the_slowest_second() {
        let mut period = Period::new(Duration::from_secs(2));
        period.phase("measure");
        let second = Duration::from_secs(1);
        assert_eq!(period.add(second, 8.0, 1.0), None);
        // 8 and 4 Gbit, a million messages and half of that.
        let (moved, slowest) = period.add(second * 2, 4.0, 0.5).unwrap();
        assert_eq!((moved.messages, moved.bytes, slowest), (1_500_000, 1_500_000_000, 4.0));
        assert_eq!(moved.gbit_per_s, Some(6.0));
        assert_eq!(period.add(second * 3, 2.0, 1.0), None);
        let next = period.add(second * 4, 2.0, 1.0).unwrap();
        assert_eq!((next.0.gbit_per_s, next.1), (Some(2.0), 2.0));
    }
}
