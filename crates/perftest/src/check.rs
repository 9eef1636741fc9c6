//! What one end may ask the other to start. A job says which program and which case, in numbers; the arguments
//! are made from it where the program runs, so no text of a peer's is ever an argument, a path or a
//! command.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use plan::{Case, Sweep};
use settings::Mtu;

use super::fits::{MIN_MESSAGES, fits};
use super::program::Program;

/// Longest that a peer may have a program run beyond its measurement.
pub const LONGEST_LIMIT: Duration = Duration::from_secs(3600);

/// Most messages of a latency run: perftest keeps a time of each.
const MAX_MESSAGES: u64 = 100_000_000;

/// One run of perftest, as both ends do it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The program, the same at both ends.
    pub program: Program,
    /// The case that it is to run.
    pub case: Case,
    /// Path MTU that rocebench used.
    pub mtu_bytes: u32,
    /// READs outstanding on a QP that rocebench used.
    pub outstanding_reads: u8,
    /// Messages on each QP; `None` measures for a time.
    pub messages: Option<u64>,
    /// How long each end may take beyond its measurement, in milliseconds: to listen, to connect, to end.
    pub limit_ms: u64,
}

/// A job that is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this end does not start the requested run of perftest: {reason}")]
pub struct JobError {
    /// What is wrong with it.
    pub reason: String,
}

impl Job {
    pub fn limit(&self) -> Duration {
        Duration::from_millis(self.limit_ms)
    }

    /// Checks a job that came from somewhere else.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&self) -> Result<(), JobError> {
        if let Err(error) = Sweep::check(&self.case) {
            return refused(error.to_string());
        }
        if let Err(misfit) = fits(&self.case) {
            return refused(misfit.to_string());
        }
        if self.program != Program::for_case(&self.case) {
            return refused(format!("{} does not run this case", self.program));
        }
        if let Err(error) = Mtu::try_from(self.mtu_bytes) {
            return refused(error);
        }
        if self.outstanding_reads == 0 {
            return refused("no READ may be outstanding".into());
        }
        if let Some(messages) = self.messages
            && !(MIN_MESSAGES..=MAX_MESSAGES).contains(&messages)
        {
            return refused(format!("{messages} messages"));
        }
        if self.limit() > LONGEST_LIMIT || self.limit_ms == 0 {
            return refused(format!("a limit of {} ms", self.limit_ms));
        }
        Ok(())
    }
}

fn refused(reason: String) -> Result<(), JobError> {
    Err(JobError { reason })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::arguments::tests::job;
    use super::*;
    use results::sample::has;
    use settings::Op;

    #[test]
    fn a_job_of_ours_is_done() {
        assert_eq!(job(|_| ()).check(), Ok(()));
        assert_eq!(job(|case| case.tx_depth = 1).check(), Ok(()));
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        let refused = |change: fn(&mut Job), words| {
            let mut job = job(|_| ());
            change(&mut job);
            has(job.check().unwrap_err().reason, [words]);
        };
        refused(|job| job.case.qps = 0, "--qps");
        refused(|job| job.case.verify = true, "--verify");
        refused(|job| job.case.op = Op::Read.into(), "ib_send_bw");
        refused(|job| job.program = Program::IbReadLat, "ib_read_lat");
        refused(|job| job.mtu_bytes = 9000, "9000");
        refused(|job| job.outstanding_reads = 0, "READ");
        refused(|job| job.messages = Some(0), "0 messages");
        refused(|job| job.messages = Some(u64::MAX), "messages");
        refused(|job| job.limit_ms = 0, "limit");
        refused(|job| job.limit_ms = u64::MAX, "limit");
    }

    #[test]
    fn text_is_never_taken_for_a_program_or_a_number() {
        let sound = serde_json::to_value(job(|_| ())).unwrap();
        assert!(serde_json::from_value::<Job>(sound.clone()).is_ok());
        let damages: [fn(&mut Value); 6] = [
            |job| job["program"] = json!("/bin/sh"),
            |job| job["program"] = json!("ib_send_bw; reboot"),
            |job| job["program"] = json!("../ib_send_bw"),
            |job| job["case"]["size_bytes"] = json!("64 --out_json_file=/etc/passwd"),
            |job| job["mtu_bytes"] = json!("-R"),
            |job| job["messages"] = json!("5 --run_infinitely"),
        ];
        for damage in damages {
            let mut damaged = sound.clone();
            damage(&mut damaged);
            let read = serde_json::from_value::<Job>(damaged.clone());
            assert!(read.is_err(), "{damaged}");
        }
    }
}
