//! Results of a soak: one an hour in a folder as `rocebench history` has it, the hour under way as a journal. What cannot be
//! written waits in memory.

use std::{collections::VecDeque, fs, path::PathBuf};

use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use results::{
    history::{self, Added},
    journal::Journal,
    model::ResultFile,
};

/// Samples of a file, so that also short ones take little memory.
const MOST_SAMPLES: usize = 360;

/// A larger sample, as of thousands of QPs, is kept without its single QPs and distributions.
const MOST_BYTES: usize = 256 << 10;

/// Hours that wait for room on the disk.
const MOST_WAITING: usize = 24;

const HOUR_SECONDS: i64 = 3_600;

#[derive(Debug)]
struct Hour {
    /// Since 1970.
    number: i64,
    result: ResultFile,
    /// None where it could not be made.
    journal: Option<Journal>,
}

#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
    keep: usize,
    under_way: Option<Hour>,
    waiting: VecDeque<Hour>,
    /// Names of the files that were written and are kept, the oldest first.
    written: VecDeque<String>,
}

impl Files {
    /// In a folder of which the last `keep` files that are written are kept; others are left alone.
    pub fn new(folder: PathBuf, keep: usize) -> Files {
        let (waiting, written) = (VecDeque::new(), VecDeque::new());
        Files { folder, keep, under_way: None, waiting, written }
    }

    /// Adds the one run of a sample. All of it is in memory, whatever could not be written.
    ///
    /// # Errors
    /// Why something is not on the disk.
    pub fn add(&mut self, mut sample: ResultFile, at: OffsetDateTime) -> Result<(), String> {
        if serde_json::to_vec(&sample).is_ok_and(|json| json.len() > MOST_BYTES) {
            sample = history::lean(&sample);
        }
        let number = at.unix_timestamp().div_euclid(HOUR_SECONDS);
        if self.under_way.as_ref().is_some_and(|hour| !hour.takes(number, &sample)) {
            self.close();
        }
        let runs = self.under_way.as_ref().map_or(0, |hour| runs(&hour.result));
        for run in sample.cases.iter_mut().flat_map(|case| &mut case.runs) {
            run.run = u32::try_from(runs + 1).unwrap_or(u32::MAX);
        }
        let (year, month, day, hour) = (at.year(), u8::from(at.month()), at.day(), at.hour());
        let stem = format!("soak-{year:04}{month:02}{day:02}T{hour:02}Z");
        let under_way = self.under_way.get_or_insert_with(|| Hour {
            number,
            result: ResultFile {
                started_at: at.format(&Rfc3339).unwrap_or_default(),
                ..sample.with_cases(Vec::new())
            },
            journal: None,
        });
        sample.started_at.clone_from(&under_way.result.started_at);
        let id = sample.cases.first().map_or_else(String::new, |case| case.id.clone());
        let journal = match &mut under_way.journal {
            Some(journal) => Ok(journal),
            None => Journal::reserve(&self.folder, &stem, &[])
                .map(|journal| under_way.journal.insert(journal)),
        };
        let kept = journal.and_then(|journal| journal.add(&sample, &id));
        match under_way.result.cases.first_mut() {
            Some(case) => case.runs.extend(sample.cases.into_iter().flat_map(|it| it.runs)),
            None => under_way.result.cases = sample.cases,
        }
        self.write().and(kept.map_err(|error| error.to_string()))
    }

    /// Ends the hour under way, and writes what can be written.
    ///
    /// # Errors
    /// Why something is not on the disk.
    pub fn finish(&mut self) -> Result<(), String> {
        self.close();
        self.write()
    }

    fn close(&mut self) {
        self.waiting.extend(self.under_way.take());
        if self.waiting.len() > MOST_WAITING {
            // Its journal stays, with what could be written of it.
            self.waiting.pop_front();
        }
    }

    /// Writes the hours that wait, the oldest first; those that have to wait longer are made small.
    ///
    /// # Errors
    /// Why one still waits.
    pub fn write(&mut self) -> Result<(), String> {
        while let Some(hour) = self.waiting.front_mut() {
            match history::add(&self.folder, &hour.result) {
                Ok(added) => {
                    if let Some(journal) = &mut hour.journal {
                        journal.remove();
                    }
                    self.waiting.pop_front();
                    if let Added::New(name) = added {
                        self.written.push_back(name);
                    }
                }
                Err(error) => {
                    if let Some(last) = self.waiting.back_mut() {
                        last.result = history::lean(&last.result);
                    }
                    return Err(error.to_string());
                }
            }
        }
        while self.written.len() > self.keep {
            if let Some(name) = self.written.pop_front() {
                // Somebody may have removed it.
                let _ = fs::remove_file(self.folder.join(name));
            }
        }
        Ok(())
    }

    /// How much it holds: runs, hours that wait, and names.
    #[cfg(test)]
    pub fn held(&self) -> [usize; 3] {
        let under_way = self.under_way.as_ref().map_or(0, |hour| runs(&hour.result));
        [under_way, self.waiting.len(), self.written.len()]
    }
}

impl Hour {
    /// Whether a sample of this hour belongs to it: the nodes are as they were.
    fn takes(&self, number: i64, sample: &ResultFile) -> bool {
        let [own, others] =
            [&self.result, sample].map(|it| it.cases.first().map(|case| &case.config));
        number == self.number
            && runs(&self.result) < MOST_SAMPLES
            && self.result.nodes == sample.nodes
            && own == others
    }
}

fn runs(result: &ResultFile) -> usize {
    result.cases.iter().map(|case| case.runs.len()).sum()
}
