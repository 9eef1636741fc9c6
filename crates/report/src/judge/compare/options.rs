//! What a user can choose about a comparison of files: metrics, margins, and what may differ.

use std::collections::BTreeMap;
use std::str::FromStr;

use results::metric::{Metric, UnknownMetric};
use settings::names;

/// What a gate compares where nothing is asked for: what few launches settle.
pub const GATE_METRICS: [Metric; 4] =
    [Metric::GbitPerS, Metric::P50Ns, Metric::ConnectionsPerS, Metric::HighestLoad];

/// How much does not matter to a gate, at least.
pub const GATE_MARGIN: f64 = 0.05;

#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub metrics: Vec<Metric>,
    /// How much does not matter.
    pub margins: Margins,
    /// Differences between the sides that do not stand in the way.
    pub across: Vec<Aspect>,
    /// The part of the chance of error that this look has: 1 of the only one, less where launches are added until it is
    /// clear.
    pub part: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            metrics: Metric::compared().collect(),
            margins: Margins::default(),
            across: Vec::new(),
            part: 1.0,
        }
    }
}

names! {
    /// A part of what was measured on what; results are comparable where all of it is the same.
    #[derive(PartialOrd, Ord)]
    Aspect {
        /// The machines: name, processor, cores, page size, NUMA nodes, kernel, system, governor, rdma-core.
        Host = "host",
        /// The devices: name, library, driver, firmware, whether they are software.
        Device = "device",
        /// The links: speed, lanes, link layer, PCI.
        Link = "link",
        /// MTU of the path, the port and the network interface.
        Mtu = "mtu",
        /// What went wrong with packets on purpose.
        Faults = "faults",
        /// What was asked for beyond the case's name, such as the length of the window.
        Settings = "settings",
        /// When: launches of both sides in turns, so that what changes with time meets both alike.
        Time = "time",
    }
}

/// A word on the command line that is none of those known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum OptionError {
    #[error(transparent)]
    Metric(#[from] UnknownMetric),
    #[error("\"{word}\" is not a difference to compare across; they are {}", aspect_names())]
    Aspect { word: String },
    /// Not of the form METRIC=PERCENT.
    #[error("\"{word}\" is not a margin; write it as METRIC=PERCENT, such as p99=10%")]
    Margin { word: String },
    /// Not a percentage above 0 and below 100.
    #[error("\"{word}\" is not a percentage above 0 and below 100; write 3% or 0.5%")]
    Percent { word: String },
    #[error("{name} is given twice; leave one out")]
    Twice { name: &'static str },
}

/// The names of all aspects with commas between them, as errors and help list them.
pub fn aspect_names() -> String {
    Aspect::ALL.iter().map(|aspect| aspect.name()).collect::<Vec<_>>().join(", ")
}

impl FromStr for Aspect {
    type Err = OptionError;

    fn from_str(word: &str) -> Result<Aspect, OptionError> {
        let mut aspects = Aspect::ALL.iter().copied();
        let found = aspects.find(|aspect| aspect.name() == word.trim());
        found.ok_or_else(|| OptionError::Aspect { word: word.to_owned() })
    }
}

/// How much of each metric does not matter; the default where nothing was said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Margins(BTreeMap<Metric, f64>);

impl Margins {
    /// The margin of a metric: 0.03 is 3 %.
    pub fn of(&self, metric: Metric) -> f64 {
        self.0.get(&metric).copied().unwrap_or_else(|| metric.default_margin())
    }

    /// The same with at least this of each metric for which nothing was said.
    #[must_use]
    pub fn or_at_least(mut self, least: f64) -> Margins {
        for metric in Metric::compared() {
            let usual = metric.default_margin().max(least);
            self.0.entry(metric).or_insert(usual);
        }
        self
    }
}

impl FromStr for Margins {
    type Err = OptionError;

    /// Reads `bandwidth=3%,p99=10%`: a metric and a percentage above 0 and below 100, each metric once.
    fn from_str(words: &str) -> Result<Margins, OptionError> {
        let mut margins = BTreeMap::new();
        for word in words.split(',') {
            let (name, percent) = word
                .split_once('=')
                .ok_or_else(|| OptionError::Margin { word: word.to_owned() })?;
            let metric: Metric = name.parse()?;
            let margin = percent
                .trim()
                .strip_suffix('%')
                .and_then(|number| number.trim().parse::<f64>().ok())
                .filter(|percent| *percent > 0.0 && *percent < 100.0)
                .ok_or_else(|| OptionError::Percent { word: percent.to_owned() })?;
            if margins.insert(metric, margin / 100.0).is_some() {
                return Err(OptionError::Twice { name: metric.short_name() });
            }
        }
        Ok(Margins(margins))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::has;

    #[test]
    fn margins_are_percentages_of_metrics() {
        let margins: Margins = "bandwidth=2.5%, latency_p99_ns=12 %".parse().unwrap();
        assert!((margins.of(Metric::GbitPerS) - 0.025).abs() < 1e-12);
        assert!((margins.of(Metric::P99Ns) - 0.12).abs() < 1e-12);
        assert!((margins.of(Metric::MmsgPerS) - 0.05).abs() < 1e-12);
        let margins = margins.or_at_least(0.05);
        let some = [Metric::GbitPerS, Metric::P50Ns, Metric::CpuSecondsPerGb];
        assert_eq!(some.map(|it| margins.of(it)), [0.025, 0.05, 0.1]);
    }

    #[test]
    fn what_is_no_margin_says_what_one_is() {
        for (words, text) in [
            ("3%", "p99=10%"),
            ("p98=3%", "p99.9"),
            ("p99=3", "3% or 0.5%"),
            ("p99=0%", "above 0"),
            ("p99=NaN%", "above 0"),
            ("p99=1%,p99=2%", "twice"),
        ] {
            has(words.parse::<Margins>().unwrap_err().to_string(), [text]);
        }
    }

    #[test]
    fn every_name_is_understood() {
        for metric in Metric::compared() {
            assert_eq!(metric.name().parse(), Ok(metric));
            assert_eq!(metric.short_name().parse(), Ok(metric));
        }
        for &aspect in Aspect::ALL {
            assert_eq!(aspect.name().parse(), Ok(aspect));
        }
        assert!("cpus".parse::<Metric>().is_err() && "all".parse::<Aspect>().is_err());
    }
}
