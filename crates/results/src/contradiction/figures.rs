//! Figures that cannot be: that lack though what they follow from is there, or that others deny.

use serde::Serialize;
use serde_json::{Value, to_value};

use crate::model::{Bandwidth, Latency};
use crate::percentile::can_tell;

/// By how much a figure may differ from what it follows from, as a part of it.
pub(super) const TOLERANCE: f64 = 0.02;

/// Times on two clocks, the CPU's and the wall's, may differ by this part, and by this many seconds.
const CLOCK_TOLERANCE: f64 = 0.1;
const CLOCK_TOLERANCE_SECONDS: f64 = 0.05;

/// What was found, as what the run "has" or "says".
pub(super) type Found = Result<(), String>;

/// What was found, where it was.
pub(super) fn unless(is_possible: bool, told: impl FnOnce() -> String) -> Found {
    is_possible.then_some(()).ok_or_else(told)
}

/// No figure is below 0, but the difference of two clocks. JSON has none that is not a number.
pub(super) fn none_below_zero(of: &impl Serialize) -> Found {
    fn first(value: &Value) -> Option<String> {
        match value {
            Value::Number(it) => {
                (it.as_f64()? < 0.0).then(|| format!(" of {it}, which is below 0"))
            }
            Value::Array(items) => {
                let mut items = items.iter().enumerate();
                items.find_map(|(at, item)| Some(format!("[{at}]{}", first(item)?)))
            }
            Value::Object(fields) => {
                let mut fields = fields.iter().filter(|(name, _)| *name != "clock");
                fields.find_map(|(name, field)| Some(format!(".{name}{}", first(field)?)))
            }
            _ => None,
        }
    }
    let found = first(&to_value(of).unwrap_or_default());
    found.map_or(Ok(()), |told| Err(format!("has {}", told.trim_start_matches('.'))))
}

/// A figure that is there is above 0.
pub(super) fn positive(what: &str, told: impl Into<Option<f64>>) -> Found {
    let told = told.into().unwrap_or(f64::INFINITY);
    unless(told > 0.0, || format!("has {what} of {told}, which is not above 0"))
}

/// A time on one clock is not longer than one on another.
pub(super) fn not_longer(what: &str, seconds: f64, window: f64) -> Found {
    let most = window * (1.0 + CLOCK_TOLERANCE) + CLOCK_TOLERANCE_SECONDS;
    unless(seconds <= most, || format!("has {what} of {seconds:.3} s in a window of {window:.3} s"))
}

/// There are not more of them than of those that they are a part of.
pub(super) fn at_most(what: &str, count: u64, of: &str, all: u64) -> Found {
    unless(count <= all, || format!("has {count} {what} of {all} {of}"))
}

pub(super) fn equals(what: &str, told: impl Into<u128>, parts: &str, sum: u128) -> Found {
    let told = told.into();
    unless(told == sum, || format!("has {told} {what}, and {parts} {sum}"))
}

/// A figure is what others in the file say, but for this part of it.
pub(super) fn near(what: &str, told: f64, expected: f64, tolerance: f64) -> Found {
    unless((told - expected).abs() <= tolerance * expected.abs(), || {
        format!("has {what} of {told:.4}, and its other figures give {expected:.4}")
    })
}

/// A figure that follows from others in the file, which say `expected`; it may lack only where it `is_needed` not.
pub(super) fn follows(
    what: &str,
    told: Option<f64>,
    expected: Option<f64>,
    is_needed: bool,
) -> Found {
    match (told, expected) {
        (Some(told), Some(expected)) => near(what, told, expected, TOLERANCE),
        (Some(told), None) => Err(format!("has {what} of {told} in a time of 0 s")),
        (None, Some(expected)) if is_needed => {
            Err(format!("lacks {what}, which is {expected:.4} by its other figures"))
        }
        (None, _) => Ok(()),
    }
}

pub(super) fn latency(what: &str, told: Option<&Latency>) -> Found {
    let Some(told) = told else { return Ok(()) };
    let (count, overflows) = (told.count, told.overflows);
    unless(overflows <= count, || {
        format!("has {what} with {overflows} overflows of {count} samples")
    })?;
    let percentiles = told.percentiles().map(|(of, ns)| (of.percent, ns.map(|ns| ns as f64)));
    let mut rising = vec![(0.0, Some(told.min as f64))];
    rising.extend(percentiles);
    rising.push((100.0, Some(told.max as f64)));
    distribution(what, "ns", (count, told.mean), &rising)
}

pub(super) fn bandwidth(told: Option<&Bandwidth>) -> Found {
    let Some(told) = told else { return Ok(()) };
    positive("an interval of bandwidth (s)", told.interval_seconds)?;
    let rising = [
        (0.0, Some(told.min)),
        (1.0, told.p1),
        (50.0, told.p50),
        (99.0, told.p99),
        (100.0, Some(told.max)),
    ];
    distribution("bandwidth", "Gb/s", (told.count, told.mean), &rising)
}

/// There are samples, and the percentiles for which they suffice; these rise, and the mean is between the ends.
fn distribution(
    what: &str,
    unit: &str,
    (count, mean): (u64, f64),
    rising: &[(f64, Option<f64>)],
) -> Found {
    unless(count > 0, || format!("has {what} without a sample"))?;
    let name = |percent: f64| match percent {
        ..=0.0 => "min".to_owned(),
        100.0.. => "max".to_owned(),
        _ => format!("p{percent}"),
    };
    let (mut least, mut below) = (f64::INFINITY, (0.0, f64::NEG_INFINITY));
    for &(percent, value) in rising {
        let Some(value) = value else {
            unless(!can_tell(count, percent / 100.0), || {
                format!("lacks {} of {what} with {count} samples", name(percent))
            })?;
            continue;
        };
        let (low, low_value) = below;
        unless(low_value <= value, || {
            let [low, high] = [low, percent].map(name);
            format!("has {what} with {low} {low_value} {unit} above {high} {value} {unit}")
        })?;
        (least, below) = (least.min(value), (percent, value));
    }
    // A histogram knows its samples to 1 %.
    unless((least * 0.99..=below.1 * 1.01).contains(&mean), || {
        format!("has a mean {what} of {mean} {unit}, outside its samples")
    })
}
