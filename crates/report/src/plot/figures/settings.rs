//! What a case was measured with, setting by setting, so that figures can say what differs between their lines
//! and what does not. It must not know figures of any kind.

use std::path::Path;

use crate::plot::draw::number;
use crate::results::load::Loaded;
use crate::results::model::{CaseResult, Device, ResultFile};
use crate::text;

/// A setting, or another fact by which cases differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Setting {
    Machine,
    Device,
    Link,
    Faults,
    Op,
    Direction,
    Cq,
    Poll,
    Connect,
    Qps,
    TrafficQps,
    Size,
    Workers,
    Mtu,
    TxDepth,
    RxDepth,
    SignalEvery,
    PostList,
    Inline,
    Verify,
    Window,
    Sitting,
}

impl Setting {
    pub(super) const ALL: [Setting; 22] = [
        Setting::Machine,
        Setting::Device,
        Setting::Link,
        Setting::Faults,
        Setting::Op,
        Setting::Direction,
        Setting::Cq,
        Setting::Poll,
        Setting::Connect,
        Setting::Qps,
        Setting::TrafficQps,
        Setting::Size,
        Setting::Workers,
        Setting::Mtu,
        Setting::TxDepth,
        Setting::RxDepth,
        Setting::SignalEvery,
        Setting::PostList,
        Setting::Inline,
        Setting::Verify,
        Setting::Window,
        Setting::Sitting,
    ];

    /// Those that may follow from others by themselves, as the moderation does from the size.
    pub(super) fn may_follow(self) -> bool {
        matches!(
            self,
            Setting::TxDepth
                | Setting::RxDepth
                | Setting::SignalEvery
                | Setting::PostList
                | Setting::Inline
                | Setting::Window
                | Setting::Sitting
        )
    }

    /// What it is when it differs within a line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Setting::Machine => "hosts",
            Setting::Device => "devices",
            Setting::Link => "link",
            Setting::Faults => "faults",
            Setting::Op => "operation",
            Setting::Direction => "direction",
            Setting::Cq => "CQ mode",
            Setting::Poll => "polling",
            Setting::Connect => "connecting",
            Setting::Qps => "QPs",
            Setting::TrafficQps => "traffic",
            Setting::Size => "message size",
            Setting::Workers => "workers",
            Setting::Mtu => "MTU",
            Setting::TxDepth => "send depth",
            Setting::RxDepth => "receive depth",
            Setting::SignalEvery => "signalling",
            Setting::PostList => "post list",
            Setting::Inline => "inline",
            Setting::Verify => "payload check",
            Setting::Window => "window",
            Setting::Sitting => "date",
        }
    }

    fn value(self, loaded: &Loaded, case: &CaseResult) -> Value {
        let (file, config) = (&loaded.result, &case.config);
        match self {
            Setting::Machine => Value::words(machines(file)),
            Setting::Device => Value::words(devices(file, case)),
            Setting::Link => match device(file).and_then(|device| device.link_gbit_per_s) {
                Some(speed) => Value::number(speed, format!("link {} Gb/s", trimmed(speed))),
                None => Value::words(String::new()),
            },
            Setting::Faults => Value::words(faults(file)),
            Setting::Op => {
                let order = ["send", "write", "read", "connect"]
                    .iter()
                    .position(|op| *op == config.op);
                Value::number(order.map_or(9.0, |order| order as f64), config.op.clone())
            }
            Setting::Direction => Value::words(
                if config.bidirectional {
                    "bidirectional, forward shown"
                } else {
                    ""
                }
                .to_owned(),
            ),
            Setting::Cq => Value::words(format!("CQ {}", config.cq)),
            Setting::Poll => Value::words(unless("busy", &config.poll)),
            Setting::Connect => Value::words(unless("tcp", &config.connect)),
            Setting::Qps => count(config.qps.into(), "QP", "QPs"),
            Setting::TrafficQps => match config.traffic_qps {
                Some(qps) => count(qps.into(), "QP with traffic", "QPs with traffic"),
                None => Value::words(String::new()),
            },
            Setting::Size => Value::number(config.size as f64, number::bytes(config.size)),
            Setting::Workers => count(config.workers.into(), "worker", "workers"),
            Setting::Mtu => match config.mtu {
                Some(mtu) => Value::number(mtu.into(), format!("MTU {mtu}")),
                None => Value::words(String::new()),
            },
            Setting::TxDepth => labelled("send depth", config.tx_depth),
            Setting::RxDepth => labelled("receive depth", config.rx_depth),
            Setting::SignalEvery => labelled("signalled 1 in", config.signal_every),
            Setting::PostList => labelled("post list", config.post_list),
            Setting::Inline => match config.inline {
                0 => Value::words(String::new()),
                bytes => labelled("inline up to", bytes),
            },
            Setting::Verify => {
                Value::words(if config.verify { "payload checked" } else { "" }.to_owned())
            }
            Setting::Window => match (config.duration_seconds, config.iterations_per_qp) {
                (Some(seconds), _) => Value::number(
                    seconds,
                    format!("windows of {}", number::time(seconds * 1e9)),
                ),
                (None, Some(messages)) => {
                    Value::number(messages as f64, format!("{messages} messages a QP"))
                }
                (None, None) => Value::words(String::new()),
            },
            Setting::Sitting => Value::words(sitting(loaded)),
        }
    }
}

/// A setting's value: how it is sorted, and the words for it; none where there is nothing to say.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Value {
    order: f64,
    pub(super) words: String,
}

impl Value {
    fn words(words: String) -> Value {
        Value { order: 0.0, words }
    }

    fn number(order: f64, words: String) -> Value {
        Value { order, words }
    }

    /// As people sort them: figures by size.
    pub(super) fn compare(&self, other: &Value) -> std::cmp::Ordering {
        let order = self.order.total_cmp(&other.order);
        order.then_with(|| self.words.cmp(&other.words))
    }
}

/// The word, but for the usual one.
fn unless(usual: &str, word: &str) -> String {
    if word == usual {
        String::new()
    } else {
        word.to_owned()
    }
}

fn count(number: u64, one: &str, many: &str) -> Value {
    let name = if number == 1 { one } else { many };
    Value::number(number as f64, format!("{number} {name}"))
}

fn labelled(name: &str, number: u32) -> Value {
    Value::number(number.into(), format!("{name} {number}"))
}

fn trimmed(value: f64) -> String {
    let text = number::fixed(value, 2);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn device(file: &ResultFile) -> Option<&Device> {
    file.host.device.as_ref()
}

fn machines(file: &ResultFile) -> String {
    let name = |name: &str| {
        if name.is_empty() {
            "a host without name".to_owned()
        } else {
            name.to_owned()
        }
    };
    match &file.peer {
        Some(peer) => format!("{} → {}", name(&file.host.hostname), name(&peer.hostname)),
        None => format!("both ends on {}", name(&file.host.hostname)),
    }
}

fn devices(file: &ResultFile, case: &CaseResult) -> String {
    let marked = |device: Option<&Device>, name: Option<&String>| {
        let name = name.or(device.map(|device| &device.name));
        let kind = match device {
            Some(device) if device.library == "embedded" => " (embedded software device)",
            Some(device) if device.software => " (software device)",
            _ => "",
        };
        name.map(|name| format!("{name}{kind}"))
    };
    let here = marked(device(file), case.config.device.as_ref());
    let peer = file.peer.as_ref().and_then(|peer| peer.device.as_ref());
    let there = marked(peer.or(device(file)), case.config.peer_device.as_ref());
    match (here, there) {
        (Some(here), Some(there)) if here != there => format!("{here} → {there}"),
        (Some(one), _) | (None, Some(one)) => one,
        (None, None) => String::new(),
    }
}

fn faults(file: &ResultFile) -> String {
    let of = |device: Option<&Device>| device.and_then(|device| device.faults.clone());
    let peer = file.peer.as_ref().and_then(|peer| peer.device.as_ref());
    match (of(device(file)), of(peer)) {
        (Some(here), Some(there)) if here != there => {
            format!("FAULTS ON PURPOSE {here}; at the peer {there}")
        }
        (Some(one), _) => format!("FAULTS ON PURPOSE {one}"),
        (None, Some(there)) => format!("FAULTS ON PURPOSE at the peer {there}"),
        (None, None) => String::new(),
    }
}

/// The first characters of a time as the file has it, such as `2026-11-20 12:00`.
pub(super) fn minute(started_at: &str) -> String {
    let text: String = started_at.chars().take(16).collect();
    text.replace('T', " ")
}

/// A revision as short as git shows it.
pub(super) fn revision(file: &ResultFile) -> Option<String> {
    let git = file.tool.git.as_ref()?;
    let (hash, dirty) = match git.strip_suffix("-dirty") {
        Some(hash) => (hash, "-dirty"),
        None => (git.as_str(), ""),
    };
    Some(format!(
        "{}{dirty}",
        hash.chars().take(9).collect::<String>()
    ))
}

fn sitting(loaded: &Loaded) -> String {
    let name = text::path(Path::new(loaded.path.file_stem().unwrap_or_default()));
    let minute = minute(&loaded.result.started_at);
    match revision(&loaded.result) {
        Some(revision) => format!("{minute} {revision} ({name})"),
        None => format!("{minute} ({name})"),
    }
}

/// A case of a file and its settings.
#[derive(Clone, Debug)]
pub(super) struct Sample<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) case: &'a CaseResult,
    values: Vec<Value>,
}

impl<'a> Sample<'a> {
    pub(super) fn new(loaded: &'a Loaded, case: &'a CaseResult) -> Sample<'a> {
        let values = Setting::ALL
            .map(|setting| setting.value(loaded, case))
            .to_vec();
        Sample {
            loaded,
            case,
            values,
        }
    }

    /// All cases of all files.
    pub(super) fn all(results: &'a [Loaded]) -> Vec<Sample<'a>> {
        let of = |loaded: &'a Loaded| {
            let cases = loaded.result.cases.iter();
            cases.map(move |case| Sample::new(loaded, case))
        };
        results.iter().flat_map(of).collect()
    }

    /// Those that moved data for its own sake.
    pub(super) fn transfers(results: &'a [Loaded]) -> Vec<Sample<'a>> {
        let mut all = Sample::all(results);
        all.retain(|sample| !sample.case.config.is_set_up());
        all
    }

    /// Those that measured set-up.
    pub(super) fn set_ups(results: &'a [Loaded]) -> Vec<Sample<'a>> {
        let mut all = Sample::all(results);
        all.retain(|sample| sample.case.config.is_set_up());
        all
    }

    pub(super) fn value(&self, setting: Setting) -> &Value {
        // There is one value for each, in their order.
        &self.values[setting as usize]
    }
}
