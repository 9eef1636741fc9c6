//! What the last sample says, and all before it together, as OpenMetrics for node_exporter's textfile collector, whose parser
//! knows neither `info` nor `stateset`.

use std::{collections::BTreeMap, fmt, path::Path};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _, text::encode},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};
use time::OffsetDateTime;

use report::{judge::finding::Finding, observe::standing::Standing};
use results::{
    model::{ResultFile, Run},
    whole_file::{WriteError, write_whole},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    Up,
    Samples,
    Messages,
    Payload,
    Throughput,
    Latency,
    Away,
    Alerts,
    Standing,
    LastSample,
}

impl Family {
    /// Its name without unit and `_total`, and what it is.
    fn descriptor(self) -> (&'static str, &'static str, Option<Unit>, MetricType) {
        use MetricType::{Counter, Gauge};
        let seconds = Some(Unit::Seconds);
        match self {
            Family::Up => ("up", "Whether the node is there.", None, Gauge),
            Family::Samples => ("samples", "Samples by what they are worth.", None, Counter),
            Family::Messages => ("messages", "Messages in all windows.", None, Counter),
            Family::Payload => ("payload", "Payload in all windows.", Some(Unit::Bytes), Counter),
            Family::Throughput => {
                ("throughput_bytes_per_second", "Payload in the last window.", None, Gauge)
            }
            Family::Latency => ("latency", "Quantiles of the last window.", seconds, Gauge),
            Family::Away => ("away", "Time without a node.", seconds, Counter),
            Family::Alerts => ("alerts", "Alerts that were told.", None, Counter),
            Family::Standing => ("alerts_standing", "Alerts that are not over.", None, Gauge),
            Family::LastSample => {
                ("last_sample_timestamp", "End of the last window.", seconds, Gauge)
            }
        }
    }
}

type Labels = Vec<(&'static str, String)>;
type Values = BTreeMap<Family, BTreeMap<Labels, f64>>;

/// What is known of all samples; as much as the case has flows and nodes.
#[derive(Debug, Default)]
pub struct Figures {
    case: String,
    values: Values,
}

impl Figures {
    pub fn add(&mut self, result: &ResultFile, run: &Run, standing: &Standing, at: OffsetDateTime) {
        self.case = result.cases.first().map_or_else(String::new, |case| case.id.clone());
        self.clear(&[Family::Up, Family::Throughput, Family::Latency]);
        for node in &result.nodes {
            *self.value(Family::Up, &[("node", &node.name)]) = 1.0;
        }
        let worth = match standing {
            Standing::Counts => "counts",
            Standing::Doubtful(_) => "doubtful",
            Standing::Bad(_) | Standing::Stopped => "failed",
        };
        *self.value(Family::Samples, &[("standing", worth)]) += 1.0;
        *self.value(Family::LastSample, &[]) = at.unix_timestamp_nanos() as f64 / 1e9;
        for flow in &run.flows {
            let name = ("flow", &*flow.name);
            *self.value(Family::Messages, &[name]) += flow.totals.messages as f64;
            *self.value(Family::Payload, &[name]) += flow.totals.bytes as f64;
            if let Some(gbit_per_s) = flow.gbit_per_s().filter(|_| standing.has_figures()) {
                *self.value(Family::Throughput, &[name]) = gbit_per_s * 1e9 / 8.0;
            }
            let latency = flow.latency_ns.as_ref().filter(|_| standing.has_figures());
            let quantiles = latency.map_or([None; 3], |it| [it.p50, it.p99, it.p99_9]);
            for (quantile, ns) in ["0.5", "0.99", "0.999"].into_iter().zip(quantiles) {
                if let Some(ns) = ns {
                    *self.value(Family::Latency, &[name, ("quantile", quantile)]) = ns as f64 / 1e9;
                }
            }
        }
    }

    /// Nothing is measured for so long, since these nodes are away; all, if none is named.
    pub fn add_away(&mut self, away: &[String], seconds: f64) {
        *self.value(Family::Away, &[]) += seconds;
        self.clear(&[Family::Throughput, Family::Latency]);
        for (labels, is_up) in self.values.entry(Family::Up).or_default() {
            let is_away = away.is_empty() || labels.iter().any(|(_, node)| away.contains(node));
            *is_up = f64::from(u8::from(!is_away));
        }
    }

    pub fn add_alert(&mut self) {
        *self.value(Family::Alerts, &[]) += 1.0;
    }

    /// Writes all of it whole, with the alerts that are not over.
    ///
    /// # Errors
    /// The step that failed.
    pub fn write<'f>(
        &mut self,
        path: &Path,
        standing: impl Iterator<Item = &'f Finding>,
    ) -> Result<(), WriteError> {
        let text = self.text(standing);
        write_whole(path, |out| out.write_all(text.as_bytes()))
    }

    pub fn text<'f>(&mut self, standing: impl Iterator<Item = &'f Finding>) -> String {
        self.clear(&[Family::Standing]);
        for finding in standing {
            *self.value(Family::Standing, &[("id", finding.id)]) += 1.0;
        }
        let mut registry = Registry::with_prefix("rocebench");
        let case = ("case".into(), self.case.clone().into());
        registry
            .sub_registry_with_label(case)
            .register_collector(Box::new(Page(self.values.clone())));
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &registry);
        text
    }

    fn value(&mut self, family: Family, labels: &[(&'static str, &str)]) -> &mut f64 {
        let owned = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.values.entry(family).or_default().entry(owned).or_default()
    }

    fn clear(&mut self, families: &[Family]) {
        self.values.retain(|family, _| !families.contains(family));
    }

    /// How many values it holds.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.values.values().map(BTreeMap::len).sum()
    }
}

#[derive(Debug)]
struct Page(Values);

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (family, values) in &self.0 {
            let (name, help, unit, kind) = family.descriptor();
            let mut lines = encoder.encode_descriptor(name, help, unit.as_ref(), kind)?;
            for (labels, value) in values {
                let line = lines.encode_family(labels)?;
                match kind {
                    MetricType::Counter => ConstCounter::new(*value).encode(line)?,
                    _ => ConstGauge::new(*value).encode(line)?,
                }
            }
        }
        Ok(())
    }
}
