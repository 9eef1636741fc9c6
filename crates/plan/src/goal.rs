//! What a search over loads is for: limits of latency, or the knee of its curve.

use std::fmt;
use std::str::FromStr;

use results::model::{LatencyLimit, Percentile};
use settings::TimeSpan;

/// What the highest load is searched for.
#[derive(Clone, Debug, PartialEq)]
pub enum Goal {
    /// That keeps these limits.
    Slo(Slo),
    /// Whose p99 is at most so many times that at 10 % load.
    Knee(Factor),
}

impl Goal {
    /// The percentile that takes the most messages to be told, 0 to 100.
    pub fn rarest(&self) -> f64 {
        match self {
            Goal::Slo(slo) => slo.limits.iter().map(|it| it.percentile).fold(0.0, f64::max),
            Goal::Knee(_) => 99.0,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::Slo(slo) => f.write_str(&slo.text),
            Goal::Knee(factor) => write!(f, "knee {}", factor.0),
        }
    }
}

/// Limits of latency that hold together: `p99<20us,p99.9<100us`.
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    text: String,
    /// At least one; percentiles differ.
    pub limits: Vec<LatencyLimit>,
}

/// Why a text gives no limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum SloError {
    #[error("`{0}` is not a limit of latency: write p99<20us, or several as p99<20us,p99.9<100us")]
    Syntax(String),
    #[error("`{0}` is not a percentile of a limit: they are p50, p90, p95, p99, p99.9 and p99.99")]
    Percentile(String),
    #[error("`{0}` is not a time of a limit: write a number with ns, us, ms or s, above 0")]
    Time(String),
    #[error("{0} has two limits: leave the higher one out")]
    Twice(String),
}

impl FromStr for Slo {
    type Err = SloError;

    fn from_str(text: &str) -> Result<Slo, SloError> {
        let mut limits: Vec<LatencyLimit> = Vec::new();
        for part in text.split(',') {
            let (name, time) =
                part.split_once('<').ok_or_else(|| SloError::Syntax(part.to_owned()))?;
            let (name, time) = (name.trim(), time.trim());
            let known = Percentile::ALL
                .iter()
                .find(|it| it.name == name)
                .ok_or_else(|| SloError::Percentile(name.to_owned()))?;
            if limits.iter().any(|it| it.percentile == known.percent) {
                return Err(SloError::Twice(name.to_owned()));
            }
            let span = time
                .parse::<TimeSpan>()
                .ok()
                .filter(|it| it.ns() > 0)
                // A bare number would be seconds.
                .filter(|_| time.ends_with('s'));
            limits.push(LatencyLimit {
                percentile: known.percent,
                below_ns: span.ok_or_else(|| SloError::Time(time.to_owned()))?.ns(),
            });
        }
        Ok(Slo { text: text.split_whitespace().collect(), limits })
    }
}

/// How many times the latency at 10 % load: above 1, at most 1000.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor(f64);

impl Factor {
    pub fn value(self) -> f64 {
        self.0
    }
}

impl FromStr for Factor {
    type Err = String;

    fn from_str(text: &str) -> Result<Factor, String> {
        match text.parse::<f64>() {
            Ok(factor) if factor > 1.0 && factor <= 1_000.0 => Ok(Factor(factor)),
            _ => Err(format!("`{text}` is not a number above 1, at most 1000")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read() {
        let slo: Slo = "p99<20us, p99.9 < 0.1ms".parse().unwrap();
        let limits = slo.limits.iter().map(|it| (it.percentile, it.below_ns));
        assert!(limits.eq([(99.0, 20_000), (99.9, 100_000)]), "{slo:?}");
        let knee = Goal::Knee("2.5".parse().unwrap());
        for (goal, text, rarest) in
            [(Goal::Slo(slo), "p99<20us,p99.9<0.1ms", 99.9), (knee, "knee 2.5", 99.0)]
        {
            assert_eq!((&*goal.to_string(), goal.rarest()), (text, rarest));
        }
        for (text, ns) in [("p50<1s", 1_000_000_000), ("p90<700ns", 700), ("p99.99<1.5µs", 1_500)]
        {
            assert_eq!(text.parse::<Slo>().unwrap().limits[0].below_ns, ns);
        }
    }

    #[test]
    fn what_is_no_limit_is_said() {
        let error = |text: &str| text.parse::<Slo>().unwrap_err();
        for text in ["", "p99", "p99>20us", "p99<20us,"] {
            assert!(matches!(error(text), SloError::Syntax(_)), "{text}");
        }
        for text in ["p80<20us", "<20us", "99<20us", "p99.999<1us", "P99<1us"] {
            assert!(matches!(error(text), SloError::Percentile(_)), "{text}");
        }
        let times = "p99< p99<20 p99<=20us p99<0us p99<-1us p99<20m p99<20h p99<1e3us";
        for text in times.split(' ') {
            assert!(matches!(error(text), SloError::Time(_)), "{text}");
        }
        assert_eq!(error("p99<1us,p99<2us"), SloError::Twice("p99".into()));
        for text in ["1", "0", "-3", "nan", "inf", "1001", "x", ""] {
            assert!(text.parse::<Factor>().is_err(), "{text}");
        }
    }
}
