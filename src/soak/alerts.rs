//! Conditions that begin and end, each told once: on the screen, in a file that does not grow, and to the user's command.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, bounded};
use serde::Serialize;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use machine::threads::{self, ThreadError};
use perftest::{Child, Launch};
use report::judge::finding::Finding;
use results::{numbers::for_people, text::printable};

/// How many samples in a row must show a condition before it is told, and how many must not before it is over.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub begins: u32,
    pub ends: u32,
}

impl Patience {
    /// What is known for sure.
    pub const NONE: Patience = Patience { begins: 1, ends: 1 };
    /// What may come and go from sample to sample is one condition.
    pub const AFTERWARDS: Patience = Patience { begins: 1, ends: 3 };
    /// Of what matters where nothing else comes.
    pub const OF_DOUBT: Patience = Patience { begins: 10, ends: 1 };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Begins,
    Ends,
    /// It has no end.
    Once,
}

/// What is told, on standard input of the user's command and as a line of the file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alert {
    pub state: State,
    /// When this was noticed, RFC 3339 in UTC.
    pub at: String,
    /// Of what ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lasted_seconds: Option<u64>,
    #[serde(flatten)]
    pub finding: Finding,
}

impl Alert {
    pub fn new(state: State, finding: Finding, at: OffsetDateTime) -> Alert {
        // Formatting fails only after the year 9999.
        let moment = at.format(&Rfc3339).unwrap_or_default();
        Alert { state, at: moment, lasted_seconds: None, finding }
    }

    /// As a line on the screen.
    pub fn line(&self) -> String {
        let state = match (self.state, self.lasted_seconds) {
            (State::Begins, _) => "alert".to_owned(),
            (State::Once, _) => "changed".to_owned(),
            (State::Ends, seconds) => {
                format!("over after {}", for_people(Duration::from_secs(seconds.unwrap_or(0))))
            }
        };
        let time: String = self.at.chars().take(19).collect();
        format!("rocebench: {time}Z {state}: {}", self.finding.text)
    }
}

#[derive(Debug)]
struct Condition {
    finding: Finding,
    since: OffsetDateTime,
    is_told: bool,
    /// Samples in a row that show the contrary of what was told, and since when.
    contrary: Option<(u32, OffsetDateTime)>,
}

/// The conditions that are so, or may be so soon, by their keys. There are as many keys as things that can be wrong.
#[derive(Debug, Default)]
pub struct Conditions(BTreeMap<String, Condition>);

impl Conditions {
    /// What is to be told of a condition after a sample that shows it or does not.
    pub fn look(
        &mut self,
        key: &str,
        found: Option<Finding>,
        patience: Patience,
        at: OffsetDateTime,
    ) -> Option<Alert> {
        let Some(known) = self.0.get_mut(key) else {
            let finding = found?;
            let is_told = patience.begins <= 1;
            let condition = Condition {
                finding,
                since: at,
                is_told,
                contrary: Some((1, at)).filter(|_| !is_told),
            };
            let alert = is_told.then(|| Alert::new(State::Begins, condition.finding.clone(), at));
            self.0.insert(key.to_owned(), condition);
            return alert;
        };
        let is_contrary = known.is_told != found.is_some();
        let (count, since) = known.contrary.filter(|_| is_contrary).unwrap_or((0, at));
        known.contrary = is_contrary.then_some((count + 1, since));
        match found {
            Some(finding) if is_contrary && count + 1 >= patience.begins => {
                (known.is_told, known.contrary) = (true, None);
                known.finding = finding.clone();
                Some(Alert::new(State::Begins, finding, at))
            }
            None if is_contrary && count + 1 >= patience.ends => {
                let over = self.0.remove(key)?;
                let seconds = (since - over.since).whole_seconds();
                let lasted_seconds = u64::try_from(seconds).ok();
                Some(Alert { lasted_seconds, ..Alert::new(State::Ends, over.finding, at) })
            }
            None if !is_contrary => {
                self.0.remove(key);
                None
            }
            _ => None,
        }
    }

    /// What was told and is not over.
    pub fn standing(&self) -> impl Iterator<Item = &Finding> {
        self.0.values().filter(|it| it.is_told).map(|it| &it.finding)
    }
}

/// Lines that wait until they can be written.
const MOST_WAITING: usize = 256;

/// From this size on the file becomes the older one.
const MOST_BYTES: u64 = 1 << 20;

/// Alerts in a file, and the older ones in another.
#[derive(Debug)]
pub struct AlertFile {
    path: PathBuf,
    waiting: VecDeque<String>,
}

impl AlertFile {
    /// Not `.jsonl`, by which journals are known.
    pub const NAME: &str = "alerts.ndjson";

    pub fn new(folder: &Path) -> AlertFile {
        AlertFile { path: folder.join(AlertFile::NAME), waiting: VecDeque::new() }
    }

    pub fn add(&mut self, line: &str) {
        if self.waiting.len() == MOST_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(format!("{line}\n"));
    }

    /// Writes what waits. With an error the file has no half line, and all of it waits still.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&mut self) -> Result<(), String> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.append().map_err(|error| format!("cannot write {}: {error}", self.path.display()))?;
        self.waiting.clear();
        Ok(())
    }

    fn append(&self) -> io::Result<()> {
        if self.path.metadata().is_ok_and(|facts| facts.len() >= MOST_BYTES) {
            fs::rename(&self.path, self.path.with_extension("1.ndjson"))?;
        }
        let mut file = File::options().append(true).create(true).open(&self.path)?;
        let bytes = file.metadata()?.len();
        let lines: String = self.waiting.iter().map(String::as_str).collect();
        file.write_all(lines.as_bytes()).and_then(|()| file.sync_data()).inspect_err(|_| {
            let _ = file.set_len(bytes);
        })
    }
}

/// Alerts that wait for the command; more of them are in the file alone.
const MOST_QUEUED: usize = 64;

/// Between two looks at a command that runs.
const LOOK: Duration = Duration::from_millis(20);

/// Runs the user's command for each alert, one after the other, on a thread of its own: measuring waits for none.
#[derive(Debug)]
pub struct AlertCommand {
    queue: Sender<String>,
    complaints: Receiver<String>,
    limit: Duration,
}

impl AlertCommand {
    /// `command` is the shell's; one that runs for longer than `limit` is killed with what it started.
    ///
    /// # Errors
    /// There is no thread.
    pub fn start(command: &str, limit: Duration) -> Result<AlertCommand, ThreadError> {
        let (queue, alerts) = bounded(MOST_QUEUED);
        let (complain, complaints) = bounded(MOST_QUEUED);
        let shell = command.to_owned();
        threads::spawn("alerts", move || {
            let mut complained = BTreeSet::new();
            for alert in alerts {
                if let Err((kind, text)) = run(&shell, alert, limit)
                    && complained.insert(kind)
                {
                    // There are fewer kinds than places.
                    let _ = complain.try_send(format!("--on-alert {kind}{text}"));
                }
            }
        })?;
        Ok(AlertCommand { queue, complaints, limit })
    }

    /// Has the command run for an alert, as soon as those before are over.
    pub fn add(&self, alert: &str) {
        // Without room it hangs, and that is told.
        let _ = self.queue.try_send(format!("{alert}\n"));
    }

    /// What went wrong with the command since the last time, each kind once.
    pub fn complaints(&self) -> impl Iterator<Item = String> + '_ {
        self.complaints.try_iter()
    }

    /// Waits for the alerts that are left, as long as for one command: what still runs ends with this process. Says what went
    /// wrong.
    pub fn finish(self) -> Vec<String> {
        drop(self.queue);
        let deadline = Instant::now() + self.limit;
        std::iter::from_fn(|| self.complaints.recv_deadline(deadline).ok()).collect()
    }
}

/// Runs the command once.
///
/// # Errors
/// What went wrong, by kind, and the rest of the sentence.
fn run(shell: &str, alert: String, limit: Duration) -> Result<(), (&'static str, String)> {
    let launch = Launch {
        path: "/bin/sh".into(),
        arguments: vec!["-c".to_owned(), shell.to_owned()],
        input: alert.into_bytes(),
        ..Launch::default()
    };
    let started = Child::start(&launch);
    let mut child = started.map_err(|error| ("cannot be started", format!(": {error}")))?;
    let deadline = Instant::now() + limit;
    while !child.has_ended() {
        if Instant::now() >= deadline {
            let text = format!(" within {} s and was killed", limit.as_secs());
            return Err(("did not end", text));
        }
        thread::sleep(LOOK);
    }
    let ended = child.finish();
    if ended.success {
        return Ok(());
    }
    let last = printable(ended.stderr.lines().last().unwrap_or_default(), 200);
    Err(("failed", format!(": {} {last}", ended.status).trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_hangs_is_killed_and_told_once() {
        let command = AlertCommand::start("sleep 1000", Duration::ZERO).unwrap();
        command.add("{}");
        command.add("{}");
        let AlertCommand { queue, complaints, .. } = command;
        drop(queue);
        let text = "--on-alert did not end within 0 s and was killed";
        assert_eq!(complaints.iter().collect::<Vec<_>>(), [text]);
    }

    #[test]
    fn a_command_reads_each_alert_in_order_and_its_failure_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("alerts");
        let shell = format!("cat >> {}; echo no >&2; exit 3", path.display());
        let command = AlertCommand::start(&shell, Duration::from_secs(3_600)).unwrap();
        let alerts = ["{\"a\": 1}", "{\"a\": 2}", "{\"a\": 3}"];
        alerts.iter().for_each(|alert| command.add(alert));
        assert_eq!(command.finish(), ["--on-alert failed: exit status: 3 no"]);
        assert_eq!(fs::read_to_string(path).unwrap(), alerts.join("\n") + "\n");
    }
}
