//! Whether figures have become worse for good. Steps are looked for in the last samples, and among medians of many samples,
//! where what changes slowly is seen.

use std::collections::VecDeque;

use serde_json::{Map, Value};
use time::OffsetDateTime;

use super::moment;
use report::observe::Metric;
use statistics::{Verdict, median, steps, verdict};

/// Samples between two looks; their median is a figure of the long series.
const BLOCK: usize = 60;

/// Figures of a series that are looked at: two blocks of samples, and three days of blocks of an hour.
const MOST: [usize; 2] = [2 * BLOCK, 72];

/// Series that are judged together, so that at most 1 look in 100 is a false alarm.
const TOGETHER: usize = METRICS.len() * MOST.len();

pub const METRICS: [Metric; 2] = [Metric::GbitPerS, Metric::P99Ns];

/// What is worse, in words and in figures.
pub type Worse = (String, Map<String, Value>);

/// A metric in all samples that count.
#[derive(Debug)]
pub struct Drift {
    metric: Metric,
    since_look: usize,
    /// Of samples, and of blocks.
    series: [Series; 2],
}

#[derive(Debug, Default)]
struct Series {
    figures: VecDeque<(OffsetDateTime, f64)>,
    /// What was usual before a step that is not over, and when that was.
    before: Option<(OffsetDateTime, f64)>,
}

impl Drift {
    pub fn new(metric: Metric) -> Drift {
        Drift { metric, since_look: 0, series: Default::default() }
    }

    /// Adds a sample. Where that leads to a look: whether each of the series shows a step to worse, with its key.
    pub fn add(&mut self, at: OffsetDateTime, figure: f64) -> Vec<(String, Option<Worse>)> {
        let [samples, blocks] = &mut self.series;
        samples.add(MOST[0], at, figure);
        self.since_look += 1;
        if self.since_look < BLOCK {
            return Vec::new();
        }
        self.since_look = 0;
        let begun = samples.figures.iter().rev().nth(BLOCK - 1).map(|it| it.0);
        if let (Some(begun), Some(now)) = (begun, samples.latest(BLOCK)) {
            blocks.add(MOST[1], begun, now);
        }
        let looks = [("samples", samples, BLOCK), ("blocks", blocks, 1)];
        looks
            .map(|(name, series, latest)| {
                let key = format!("drift of {name}: {}", self.metric.name());
                (key, series.look(self.metric, latest))
            })
            .into()
    }

    /// How many figures it holds.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.series.iter().map(|it| it.figures.len()).sum()
    }
}

impl Series {
    fn add(&mut self, most: usize, at: OffsetDateTime, figure: f64) {
        if self.figures.len() == most {
            self.figures.pop_front();
        }
        self.figures.push_back((at, figure));
    }

    /// The median of the last figures.
    fn latest(&self, count: usize) -> Option<f64> {
        median(&self.figures.iter().rev().take(count).map(|it| it.1).collect::<Vec<_>>())
    }

    /// A step to worse, until the last figures are as those before it again.
    fn look(&mut self, metric: Metric, latest: usize) -> Option<Worse> {
        if self.before.is_none() {
            self.before = self.step(metric);
        }
        let (begun, before) = self.before?;
        let now = self.latest(latest)?;
        let change = if metric.higher_is_better() { before / now } else { now / before };
        if change <= 1.0 + metric.default_margin() {
            self.before = None;
            return None;
        }
        let since: String = moment(begun).chars().take(16).collect();
        let [old, new] = [before, now].map(|value| metric.text(value));
        let text = format!("Since {since} UTC {} is {new}; before it was {old}", metric.noun());
        let data = [("before", before), ("now", now)]
            .map(|(when, value)| (format!("{when}_{}", metric.name()), value.into()));
        Some((text, data.into_iter().collect()))
    }

    /// When the last step was, if it is one to worse, and the median before it.
    fn step(&self, metric: Metric) -> Option<(OffsetDateTime, f64)> {
        let figures: Vec<f64> = self.figures.iter().map(|it| it.1).collect();
        let found = steps(&figures, TOGETHER);
        let (last, earlier) = found.split_last()?;
        let margin = metric.default_margin();
        let is_worse = verdict(&last.estimate, margin, metric.higher_is_better()) == Verdict::Worse;
        let first = earlier.last().map_or(0, |step| step.at);
        let before = median(&figures[first..last.at]).filter(|_| is_worse)?;
        Some((self.figures[last.at].0, before))
    }
}
