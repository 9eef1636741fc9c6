//! `rocebench soak`: samples of one case for hours or days. Each is judged, written and counted; what begins and ends is told
//! once. Time is the caller's, and nothing here grows with it.

mod alerts;
mod drift;
mod files;
mod open_metrics;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, time::Duration};

use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::coordinator::soak::{Samples, Taken};
use alerts::{Alert, AlertCommand, AlertFile, Conditions, Patience, State};
use drift::Drift;
use files::Files;
use machine::threads::ThreadError;
use open_metrics::Figures;
use report::{
    judge::{
        compare::changes,
        finding::{COUNT, Finding, OF, Subject},
        findings::{findings, of_run},
        threshold::{Demands, failing, judge},
    },
    observe::{
        format::some_of,
        standing::{self, Standing},
    },
};
use results::{
    model::{ResultFile, Run},
    text::printable,
};

/// Findings of a single sample that are told; others are of chance alone, or of many runs.
const OF_A_SAMPLE: [&str; 4] = ["lost_packets", "lost_messages", "overload", "starved_qps"];

/// Flows, and nodes, that an alert names.
const MOST_NAMED: usize = 5;

/// What becomes of the samples.
pub struct Options {
    pub folder: PathBuf,
    /// Files of results that are kept.
    pub keep: usize,
    pub open_metrics: Option<PathBuf>,
    /// The user's command for each alert, and how long it may take.
    pub on_alert: Option<(String, Duration)>,
    pub demands: Demands,
    /// Without it only the user ends the soak.
    pub ends_at: Option<OffsetDateTime>,
}

/// Where lines go.
pub trait Screen {
    /// One for each sample.
    fn sample(&mut self, line: &str);
    /// What a person must not miss.
    fn alert(&mut self, line: &str);
}

/// Takes samples until the user or the time ends it. Returns what is wrong at the end.
///
/// # Errors
/// There is no thread for the user's command.
pub fn run(
    samples: &mut dyn Samples,
    options: Options,
    now: &dyn Fn() -> OffsetDateTime,
    screen: &mut dyn Screen,
) -> Result<Vec<Finding>, ThreadError> {
    let ends_at = options.ends_at;
    let mut soak = Soak::new(options, screen)?;
    loop {
        let taken = samples.take();
        let is_stopped = matches!(taken, Taken::Stopped);
        soak.take(taken, now());
        if is_stopped || ends_at.is_some_and(|end| soak.now >= end) {
            return Ok(soak.finish());
        }
    }
}

struct Soak<'s> {
    options: Options,
    screen: &'s mut dyn Screen,
    /// When the last sample, or what came in its place, was taken.
    now: OffsetDateTime,
    conditions: Conditions,
    alerts: AlertFile,
    command: Option<AlertCommand>,
    files: Files,
    drifts: [Drift; drift::METRICS.len()],
    figures: Figures,
    /// The nodes as they were in the last sample.
    nodes: Option<ResultFile>,
    /// Up to when time without nodes is counted.
    away: Option<OffsetDateTime>,
}

impl<'s> Soak<'s> {
    fn new(options: Options, screen: &'s mut dyn Screen) -> Result<Soak<'s>, ThreadError> {
        let command = options.on_alert.as_ref();
        let started = command.map(|(shell, limit)| AlertCommand::start(shell, *limit));
        Ok(Soak {
            now: OffsetDateTime::UNIX_EPOCH,
            conditions: Conditions::default(),
            alerts: AlertFile::new(&options.folder),
            command: started.transpose()?,
            files: Files::new(options.folder.clone(), options.keep),
            drifts: drift::METRICS.map(Drift::new),
            figures: Figures::default(),
            nodes: None,
            away: None,
            options,
            screen,
        })
    }

    fn take(&mut self, taken: Taken, now: OffsetDateTime) {
        self.now = now;
        let written = match taken {
            Taken::Sample(result) => self.sample(*result),
            Taken::Away(failure) => {
                let since = self.away.replace(now).unwrap_or(now);
                self.figures.add_away(&failure.nodes, (now - since).as_seconds_f64());
                let who = match &failure.nodes[..] {
                    [] => "A node is".to_owned(),
                    [only] => format!("{only} is"),
                    names => format!("{} are", some_of(names, MOST_NAMED)),
                };
                let text = format!("{who} away: {}", failure.message);
                let subject = Subject { nodes: failure.nodes, ..Subject::default() };
                self.look("away", Some(Finding::problem("away", subject, text)), Patience::NONE);
                self.files.write()
            }
            Taken::Stopped => return,
        };
        self.write(written);
    }

    /// Returns what is wrong at the end.
    fn finish(mut self) -> Vec<Finding> {
        self.figures.add_away(&[], 0.0);
        let written = self.files.finish();
        self.write(written);
        let complaints = self.command.take().map_or_else(Vec::new, AlertCommand::finish);
        complaints.into_iter().for_each(|text| self.warn(&text));
        self.conditions.standing().cloned().collect()
    }

    fn sample(&mut self, result: ResultFile) -> Result<(), String> {
        if let Some(since) = self.away.take() {
            self.figures.add_away(&[], (self.now - since).as_seconds_f64());
        }
        self.look("away", None, Patience::NONE);
        self.find_changes(&result);
        if let Some((case, run)) = result.cases.first().and_then(|it| Some((it, it.runs.last()?))) {
            let standing = standing::of_run(run);
            self.figures.add(&result, run, &standing, self.now);
            self.screen.sample(&line(run, &standing, self.now));
            self.judge(&result, run, &standing);
            if standing == Standing::Counts {
                self.find_drift(run, &case.id);
            }
        }
        self.files.add(result, self.now)
    }

    /// Looks at all that one sample can show.
    fn judge(&mut self, result: &ResultFile, run: &Run, standing: &Standing) {
        let subject = Subject {
            cases: result.cases.iter().map(|it| it.id.clone()).collect(),
            ..Subject::default()
        };
        let (failed, doubtful) = match standing {
            Standing::Bad(reason) => {
                let hint = run.failure.as_ref().and_then(|it| it.hint.as_deref());
                let remedy = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                (Some(format!("A sample {reason}{remedy}")), None)
            }
            Standing::Doubtful(kind) => {
                let reason = standing::reason(*kind);
                (None, Some(format!("No sample counts: {}. {}", reason.short, reason.remedy)))
            }
            Standing::Counts | Standing::Stopped => (None, None),
        };
        for (id, text, patience) in [
            ("failed_samples", failed, Patience::AFTERWARDS),
            ("no_sample_counts", doubtful, Patience::OF_DOUBT),
        ] {
            self.look(id, text.map(|text| Finding::problem(id, subject.clone(), text)), patience);
        }
        let found = findings(&[result]);
        for id in OF_A_SAMPLE {
            let finding = found.iter().find(|it| it.id == id).cloned();
            self.look(id, finding, Patience::AFTERWARDS);
        }
        let demands: Vec<Demands> = self.options.demands.each().collect();
        for demand in demands {
            let suites = judge(result, &demand);
            let flows = || suites.iter().flat_map(|suite| &suite.flows);
            let broken = || flows().filter(|flow| flow.is_broken).map(|flow| flow.name.clone());
            let is_broken = broken().next().is_some();
            let is_unknown = !is_broken && flows().any(|flow| flow.failure.is_some());
            let finding = failing(&suites).map(|text| {
                let id = if is_broken { "beyond_limit" } else { "not_judged" };
                let of_flows =
                    Subject { flows: broken().take(MOST_NAMED).collect(), ..subject.clone() };
                Finding::problem(id, of_flows, format!("{demand}: {text}"))
                    .with(COUNT, broken().count())
                    .with(OF, flows().count())
            });
            // What could not be judged neither begins nor ends.
            if !is_unknown {
                self.look(&demand.to_string(), finding.clone(), Patience::AFTERWARDS);
            }
            // A sample in doubt has an alert of its own.
            let unknown = finding.filter(|_| is_unknown && *standing == Standing::Counts);
            self.look(&format!("judge {demand}"), unknown, Patience::OF_DOUBT);
        }
    }

    fn find_drift(&mut self, run: &Run, case: &str) {
        let mut looks = Vec::new();
        for (metric, drift) in drift::METRICS.into_iter().zip(&mut self.drifts) {
            if let Some(figure) = of_run(run, metric) {
                looks.extend(drift.add(self.now, figure));
            }
        }
        for (key, found) in looks {
            let finding = found.map(|(text, data)| Finding {
                data,
                ..Finding::problem("drift", Subject::case(case), text)
            });
            self.look(&key, finding, Patience::NONE);
        }
    }

    /// Tells what is another at the nodes than in the sample before.
    fn find_changes(&mut self, result: &ResultFile) {
        let before = self.nodes.replace(result.with_cases(Vec::new()));
        for (nodes, text) in before
            .filter(|before| before.nodes != result.nodes)
            .map_or_else(Vec::new, |before| changes(&before, result))
        {
            let subject = Subject { nodes, ..Subject::default() };
            let finding = Finding::note("changed", subject, text);
            self.tell(&Alert::new(State::Once, finding, self.now));
        }
    }

    /// Writes what is not results, and tells whether all could be written.
    fn write(&mut self, results: Result<(), String>) {
        let metrics = self.options.open_metrics.as_ref().map_or(Ok(()), |path| {
            self.figures.write(path, self.conditions.standing()).map_err(|error| error.to_string())
        });
        let written = results.and(metrics).and(self.alerts.write());
        let finding =
            written.err().map(|text| Finding::problem("not_written", Subject::default(), text));
        self.look("not_written", finding, Patience::NONE);
        // With what has just begun or ended; a failure shows at the next sample.
        let _ = self.alerts.write();
        let complaints: Vec<String> =
            self.command.iter().flat_map(AlertCommand::complaints).collect();
        complaints.iter().for_each(|text| self.warn(text));
    }

    fn look(&mut self, key: &str, finding: Option<Finding>, patience: Patience) {
        if let Some(alert) = self.conditions.look(key, finding, patience, self.now) {
            self.tell(&alert);
        }
    }

    fn tell(&mut self, alert: &Alert) {
        self.figures.add_alert();
        self.screen.alert(&alert.line());
        // Texts and numbers are always JSON.
        let json = serde_json::to_string(alert).unwrap_or_default();
        self.alerts.add(&json);
        if let Some(command) = &self.command {
            command.add(&json);
        }
    }

    fn warn(&mut self, text: &str) {
        self.screen.alert(&format!("rocebench: warning: {text}"));
    }
}

/// `2026-11-28 12:34:56`.
fn moment(at: OffsetDateTime) -> String {
    let text = at.format(&Rfc3339).unwrap_or_default();
    text.chars().take(19).collect::<String>().replace('T', " ")
}

/// A sample in at most 80 columns: throughput of all flows, the worst p99, and whether it counts.
fn line(run: &Run, standing: &Standing, at: OffsetDateTime) -> String {
    let time = moment(at);
    let [rate, p99] = drift::METRICS.map(|metric| {
        of_run(run, metric).map_or_else(|| "-".to_owned(), |value| metric.text(value))
    });
    format!("{time}  {rate:>13}  p99 {p99:>9}  {}", printable(standing.words(), 28))
}
