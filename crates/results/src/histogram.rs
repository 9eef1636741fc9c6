//! Histograms to and from what the result file says of them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use super::model::{Bandwidth, FlowResult, Latency};
use super::percentile::percentile;

/// A result's histogram could not be read back.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The file has percentiles only.
    #[error("the result has no histogram, only percentiles; run the case again to get one")]
    Missing,
    /// Not base64.
    #[error("the histogram is not base64 ({0}); the file was changed after it was written")]
    Base64(#[from] base64::DecodeError),
    /// Not an `HdrHistogram`.
    #[error(
        "the histogram is not an HdrHistogram V2 ({0:?}); the file was changed after it was written"
    )]
    Format(hdrhistogram::serialization::DeserializeError),
}

impl Latency {
    /// What the file says of a distribution of nanoseconds, `overflows` of whose samples were above
    /// its upper end; `None` for an empty one.
    pub fn from_histogram(histogram: &Histogram<u64>, overflows: u64) -> Option<Latency> {
        if histogram.is_empty() {
            return None;
        }
        let all = Latency {
            count: histogram.len(),
            min: histogram.min(),
            mean: histogram.mean(),
            stddev: histogram.stdev(),
            max: histogram.max(),
            overflows,
            histogram: encode(histogram),
            ..Latency::default()
        };
        Some(all.with_percentiles(|of, _| percentile(histogram, of.quantile)))
    }

    /// Times of all flows in one distribution: no percentile is averaged. `None` where a flow has none, or has one of
    /// another part of its messages.
    pub fn merged(
        flows: &[FlowResult],
        of: fn(&FlowResult) -> Option<&Latency>,
    ) -> Option<Latency> {
        let recorded = |flow: &FlowResult| flow.load.as_ref().map(|load| load.recorded_one_in);
        let mut all: Option<Histogram<u64>> = None;
        let mut overflows = 0;
        for flow in flows {
            let own = of(flow)?;
            if recorded(flow) != recorded(flows.first()?) {
                return None;
            }
            overflows += own.overflows;
            let histogram = own.histogram().ok()?;
            match &mut all {
                Some(all) => all.add(&histogram).ok()?,
                None => all = Some(histogram),
            }
        }
        Latency::from_histogram(&all?, overflows)
    }

    /// The whole distribution, in nanoseconds.
    ///
    /// # Errors
    /// When the file has none, or it is damaged.
    pub fn histogram(&self) -> Result<Histogram<u64>, HistogramError> {
        decode(self.histogram.as_deref())
    }
}

/// The fastest interval in range, in kilobits a second: 10 Tb/s.
const HIGHEST_KBIT_PER_S: u64 = 10_000_000_000;

impl Bandwidth {
    /// What the file says of the throughputs of a window's intervals, in gigabits a second; `None` of none.
    pub fn of_intervals(
        interval_seconds: f64,
        gbit_per_s: impl Iterator<Item = f64>,
    ) -> Option<Bandwidth> {
        let mut histogram = Histogram::new_with_bounds(1, HIGHEST_KBIT_PER_S, 3).ok()?;
        gbit_per_s.for_each(|rate| histogram.saturating_record((rate * KBIT).round() as u64));
        if histogram.is_empty() {
            return None;
        }
        let gbit = |kbit_per_s: u64| kbit_per_s as f64 / KBIT;
        Some(Bandwidth {
            interval_seconds,
            count: histogram.len(),
            min: gbit(histogram.min()),
            p1: percentile(&histogram, 0.01).map(gbit),
            p50: percentile(&histogram, 0.5).map(gbit),
            p99: percentile(&histogram, 0.99).map(gbit),
            max: gbit(histogram.max()),
            mean: histogram.mean() / KBIT,
            stddev: histogram.stdev() / KBIT,
            histogram_kbit_per_s: encode(&histogram),
        })
    }

    /// The whole distribution, in kilobits a second.
    ///
    /// # Errors
    /// When the file has none, or it is damaged.
    pub fn histogram_kbit_per_s(&self) -> Result<Histogram<u64>, HistogramError> {
        decode(self.histogram_kbit_per_s.as_deref())
    }
}

/// Kilobits of a gigabit.
const KBIT: f64 = 1e6;

/// Fails only for counts above `i64::MAX`: the percentiles are then all there is.
fn encode(histogram: &Histogram<u64>) -> Option<String> {
    let mut encoded = Vec::new();
    let serialised = V2DeflateSerializer::new().serialize(histogram, &mut encoded);
    serialised.is_ok().then(|| STANDARD.encode(&encoded))
}

fn decode(text: Option<&str>) -> Result<Histogram<u64>, HistogramError> {
    let encoded = STANDARD.decode(text.ok_or(HistogramError::Missing)?)?;
    Deserializer::new().deserialize(&mut encoded.as_slice()).map_err(HistogramError::Format)
}

#[cfg(test)]
mod tests {
    use crate::sample::has;
    use proptest::prelude::*;

    use super::*;

    fn histogram(digits: u8, values: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 60_000_000_000, digits).unwrap();
        values.iter().for_each(|&value| histogram.saturating_record(value));
        histogram
    }

    #[test]
    fn percentiles_are_the_distributions() {
        let values: Vec<u64> = (1..=100_000).collect();
        let latency = Latency::from_histogram(&histogram(3, &values), 2).unwrap();
        let counts = (latency.count, latency.min, latency.overflows);
        assert_eq!(counts, (100_000, 1, 2));
        for (told, exact) in [
            (latency.p50, 50_000.0),
            (latency.p90, 90_000.0),
            (latency.p95, 95_000.0),
            (latency.p99, 99_000.0),
            (latency.p99_9, 99_900.0),
            (latency.p99_99, 99_990.0),
            (Some(latency.max), 100_000.0),
        ] {
            let told = told.unwrap();
            let error = (told as f64 / exact - 1.0).abs();
            assert!(error < 0.001, "{told} for {exact}");
        }
        assert!((latency.mean / 50_000.5 - 1.0).abs() < 0.001);
        assert!((latency.stddev / 28_867.5 - 1.0).abs() < 0.001);
        let few = Latency::from_histogram(&histogram(3, &values[..9_999]), 0).unwrap();
        assert!(few.p99.is_some() && few.p99_9.is_none(), "{few:?}");
        assert_eq!(Latency::from_histogram(&histogram(3, &[]), 0), None);
    }

    #[test]
    fn bandwidth_is_of_intervals_and_keeps_those_without_a_message() {
        let rates = (0..=2000).map(|index| f64::from(index) * 0.05);
        let told = Bandwidth::of_intervals(0.01, rates).unwrap();
        assert_eq!((told.count, told.interval_seconds), (2001, 0.01));
        assert_eq!(told.min, 0.0);
        for (told, exact) in [
            (told.p1, 1.0),
            (told.p50, 50.0),
            (told.p99, 99.0),
            (Some(told.max), 100.0),
            (Some(told.mean), 50.0),
            (Some(told.stddev), 28.88),
        ] {
            let told = told.unwrap();
            assert!((told / exact - 1.0).abs() < 0.002, "{told} for {exact}");
        }
        let all = told.histogram_kbit_per_s().unwrap();
        assert_eq!((all.len(), all.count_at(0)), (2001, 1));
        let few = Bandwidth::of_intervals(0.01, [0.0, 1e-6, 400.0].into_iter()).unwrap();
        assert_eq!((few.p1, few.p50, few.p99), (None, None, None));
        assert_eq!(Bandwidth::of_intervals(0.01, std::iter::empty()), None);
    }

    #[test]
    fn damage_is_told() {
        let mut latency = Latency::from_histogram(&histogram(2, &[5, 7]), 0).unwrap();
        latency.histogram = Some("not base64!".to_owned());
        has(latency.histogram().unwrap_err().to_string(), ["base64"]);
        latency.histogram = Some(STANDARD.encode("something else"));
        let error = latency.histogram();
        assert!(matches!(error, Err(HistogramError::Format(_))));
        latency.histogram = None;
        assert!(matches!(latency.histogram(), Err(HistogramError::Missing)));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_read_back(
            values in proptest::collection::vec(1..80_000_000_000u64, 1..300),
            digits in 2u8..=3,
        ) {
            let histogram = histogram(digits, &values);
            let read = Latency::from_histogram(&histogram, 0).unwrap().histogram().unwrap();
            prop_assert_eq!(read, histogram);
        }
    }
}
