//! What a case was measured with, setting by setting, so that figures can say what differs between their lines and
//! what does not.

use results::{
    load::Loaded,
    model::{CaseFlow, Device, ResultFile},
};
use settings::{ROWS, Row, Settings, Takes, Workload};

use crate::show::plot::{draw::text, rows::ALL_FLOWS};

/// A setting, or another fact by which cases differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Setting {
    Machine,
    Device,
    Link,
    Faults,
    /// That of the table of settings with this number.
    Row(usize),
    PathMtu,
    /// Which of its case's flows it is.
    Flow,
    Revision,
    Side,
    /// Which files it is of: those of one revision that have the same cases are one.
    Files,
}

impl Setting {
    /// All that a case has; [`Setting::Files`] follows from the others.
    pub(crate) fn each() -> Vec<Setting> {
        use Setting::{Device, Faults, Flow, Link, Machine, PathMtu, Revision, Side};
        // The path's MTU stands for the requested one: it is also known where none was requested.
        let rows = (ROWS.iter().enumerate())
            .filter(|(_, row)| (!row.title.is_empty() || !row.may_differ) && row.flag != "mtu")
            .map(|(number, _)| number);
        let before = [Machine, Device, Link, Faults].into_iter();
        let behind = [PathMtu, Flow, Revision, Side];
        before.chain(rows.map(Setting::Row)).chain(behind).collect()
    }

    pub(crate) fn from_flag(flag: &str) -> Setting {
        let row = ROWS.iter().position(|row| row.flag == flag);
        debug_assert!(row.is_some(), "{flag}");
        Setting::Row(row.unwrap_or_default())
    }

    /// Its value as a place on an axis; `None` of words, of 0, and where it does not apply; a closed loop is at 0.
    pub(crate) fn number(self, settings: &Settings) -> Option<f64> {
        let row = self.row().filter(|row| row.has_effect(settings))?;
        match row.flag {
            "rate" => Some(rate(settings).unwrap_or(0.0)),
            _ => row.number(settings).filter(|number| *number > 0.0),
        }
    }

    pub(crate) fn text(self, settings: &Settings) -> String {
        let row = self.row();
        row.map_or_else(String::new, |row| row.text(settings))
    }

    fn row(self) -> Option<&'static Row> {
        match self {
            Setting::Row(number) => ROWS.get(number),
            _ => None,
        }
    }

    /// Those that may follow from others by themselves, as the moderation does from the size.
    pub(crate) fn may_follow(self) -> bool {
        match self.row() {
            Some(row) => row.may_follow || row.title.is_empty(),
            None => matches!(self, Setting::Revision | Setting::Link),
        }
    }

    pub(crate) fn may_differ(self) -> bool {
        self.row().is_some_and(|row| row.may_differ)
    }

    pub(crate) fn always_has_words(self) -> bool {
        self.row().is_some_and(|row| {
            !row.is_quiet && !row.title.is_empty() && !row.text(&Settings::default()).is_empty()
        })
    }

    /// What it is when it differs within a line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Setting::Machine => "hosts",
            Setting::Device => "devices",
            Setting::Link => "link",
            Setting::Faults => "faults",
            Setting::Row(_) => self.row().map_or("", |row| match row.title {
                "" => row.flag,
                title => title,
            }),
            Setting::PathMtu => "MTU",
            Setting::Flow => "flow",
            Setting::Revision => "revision",
            Setting::Side => "side",
            Setting::Files => "files",
        }
    }

    /// The words for a value that has none: what is usual.
    pub(crate) fn usual(self) -> String {
        match (self, self.row()) {
            (Setting::Faults, _) => "no faults".to_owned(),
            (Setting::Flow, _) => "the only flow".to_owned(),
            (Setting::Revision, _) => "no revision".to_owned(),
            (_, Some(row)) if row.title.is_empty() => format!("usual {}", row.flag),
            (_, Some(row)) if row.flag == "rate" => "closed loop".to_owned(),
            (_, Some(row)) if row.takes == Takes::Switch => format!("without {}", row.title),
            (_, Some(row)) => row.labelled(&row.text(&Settings::default())),
            _ => String::new(),
        }
    }

    pub(crate) fn value(self, loaded: &Loaded, flow: &CaseFlow<'_>, is_base: bool) -> Value {
        let file = &loaded.result;
        let [here, _] = flow.devices(file);
        let words = match self {
            Setting::Machine => machines(file),
            Setting::Device => devices(file, flow),
            Setting::Link => {
                let speed = here.and_then(|device| device.link_gbit_per_s);
                return Value::new(speed, |speed| format!("link {} Gb/s", trimmed(speed)));
            }
            Setting::Faults => faults(file),
            Setting::Row(_) => {
                return (self.row()).map_or(Value::NONE, |row| of_row(row, &flow.settings));
            }
            Setting::PathMtu => {
                let mtu = flow.config.and_then(|config| config.path_mtu);
                return Value::new(mtu.map(f64::from), |mtu| format!("MTU {mtu}"));
            }
            Setting::Flow => match flow.label() {
                label @ ("" | ALL_FLOWS) => label.to_owned(),
                name => format!("flow {name}"),
            },
            Setting::Revision => {
                revision(file).map_or_else(String::new, |revision| format!("rev {revision}"))
            }
            Setting::Side if is_base => "base".to_owned(),
            // After the base.
            Setting::Side => return Value::number(1.0, "new".to_owned()),
            Setting::Files => String::new(),
        };
        Value { order: 0.0, words }
    }
}

fn of_row(row: &Row, config: &Settings) -> Value {
    if !row.has_effect(config) {
        return Value::NONE;
    }
    let number = row.number(config);
    let text = match number {
        Some(bytes) if row.is_size => text::bytes(bytes as u64),
        _ => row.text(config),
    };
    let words = match row.title {
        "" if row.is_equal(config, &Settings::default()) => String::new(),
        "" => format!("{} {text}", row.flag),
        _ => row.words(config, &text),
    };
    Value::number(
        number.unwrap_or_else(|| match row.flag {
            "op" => Workload::ALL
                .iter()
                .position(|op| *op == config.op)
                .map_or(0.0, |order| order as f64),
            // The closed loop is the last.
            "rate" => rate(config).unwrap_or(f64::INFINITY),
            _ => 0.0,
        }),
        words,
    )
}

/// Shares of the closed loop's maximum, which are before all messages a second; `None` of a closed loop.
fn rate(config: &Settings) -> Option<f64> {
    let share = config.rate.share();
    share.or_else(|| config.rate.messages_per_second(config.mean_bytes()))
}

/// A setting's value: how it is sorted, and the words for it; none where there is nothing to say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Value {
    order: f64,
    pub(crate) words: String,
}

impl Value {
    pub(crate) const NONE: Value = Value { order: 0.0, words: String::new() };

    pub(crate) fn number(order: f64, words: String) -> Value {
        Value { order, words }
    }

    fn new(number: Option<f64>, words: impl Fn(f64) -> String) -> Value {
        number.map_or(Value::NONE, |number| Value::number(number, words(number)))
    }

    /// As people sort them: figures by size.
    pub(crate) fn compare(&self, other: &Value) -> std::cmp::Ordering {
        let order = self.order.total_cmp(&other.order);
        order.then_with(|| self.words.cmp(&other.words))
    }
}

fn trimmed(value: f64) -> String {
    let text = text::fixed(value, 2);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Machines up to which each is named.
const MOST_MACHINES: usize = 4;

fn machines(file: &ResultFile) -> String {
    let mut names: Vec<&str> = file
        .nodes
        .iter()
        .map(|node| match &*node.host.hostname {
            "" => "a host without name",
            name => name,
        })
        .collect();
    names.dedup();
    match names[..] {
        [] => "a host without name".to_owned(),
        [only] if file.nodes.len() == 2 => format!("both ends on {only}"),
        [only] => format!("all nodes on {only}"),
        [first, .., last] if names.len() > MOST_MACHINES => {
            format!("{} hosts, {first} to {last}", names.len())
        }
        _ => names.join(" → "),
    }
}

fn devices(file: &ResultFile, flow: &CaseFlow<'_>) -> String {
    let [here, there] = flow.devices(file);
    let here_words =
        here.map(device_words).or_else(|| flow.config.and_then(|it| it.from_device.clone()));
    let there_words =
        there.map(device_words).or_else(|| flow.config.and_then(|it| it.to_device.clone()));
    match (here_words, there_words) {
        (Some(from), Some(to)) if from != to => format!("{from} → {to}"),
        (from, to) => from.or(to).unwrap_or_default(),
    }
}

/// A device's name, and in words when there is no hardware.
pub(crate) fn device_words(device: &Device) -> String {
    let kind = match (device.software, &*device.library) {
        (_, "embedded") => " (embedded software device)",
        (true, _) => " (software device)",
        _ => "",
    };
    format!("{}{kind}", device.name)
}

fn faults(file: &ResultFile) -> String {
    let mut found: Vec<(String, &String)> = Vec::new();
    for (number, node) in file.nodes.iter().enumerate() {
        let whose = match number {
            0 => String::new(),
            _ => format!("at the {} ", node.name),
        };
        for faults in node.devices.iter().filter_map(|it| it.faults.as_ref()) {
            if !found.iter().any(|(_, known)| *known == faults) {
                found.push((whose.clone(), faults));
            }
        }
    }
    if found.is_empty() {
        return String::new();
    }
    let words: Vec<String> = found.iter().map(|(whose, it)| format!("{whose}{it}")).collect();
    format!("FAULTS ON PURPOSE {}", words.join("; "))
}

/// The first characters of a time as the file has it, such as `2026-11-20 12:00`.
pub(crate) fn minute(started_at: &str) -> String {
    let text: String = started_at.chars().take(16).collect();
    text.replace('T', " ")
}

/// A revision as short as git shows it.
pub(crate) fn revision(file: &ResultFile) -> Option<String> {
    let git = file.tool.git.as_ref()?;
    let hash = git.strip_suffix("-dirty").unwrap_or(git);
    Some(format!("{hash:.9}{}", &git[hash.len()..]))
}
