//! A flow of a case with its settings, to be looked up in the case's runs. It is in no file.

use settings::Settings;

use super::config::{CLIENT, CaseConfig, FORWARD, FlowConfig, SERVER};
use super::file::{CaseResult, ResultFile};
use super::flow::FlowResult;
use super::host::Device;
use super::run::Run;

/// A flow of a case.
#[derive(Clone, Debug)]
pub struct CaseFlow<'a> {
    /// The case.
    pub case: &'a CaseResult,
    /// The flow; `None` of a case without one, which measured set-up alone.
    pub config: Option<&'a FlowConfig>,
    /// Its place among them, and in each run.
    index: usize,
    /// Its settings; those of the case where it measured set-up, whose traffic the flow is.
    pub settings: Settings,
}

impl CaseResult {
    /// Each flow; a case without one has one place still.
    pub fn flows(&self) -> impl Iterator<Item = CaseFlow<'_>> {
        (0..self.config.flows.len().max(1)).map(|index| CaseFlow {
            case: self,
            config: self.config.flows.get(index),
            index,
            settings: self.config.shown(index),
        })
    }
}

impl CaseConfig {
    /// The settings shown with figures of a flow: its own, or the case's if that measured set-up.
    pub fn shown(&self, index: usize) -> Settings {
        if self.is_set_up() { self.settings.clone() } else { self.flow(index) }
    }

    /// The flow's name, if a case needs it to distinguish its flows; else empty.
    pub fn flow_label<'a>(&self, name: &'a str) -> &'a str {
        if self.flows.len() < 2 && name == FORWARD { "" } else { name }
    }
}

/// The case `id`, with its flow's name if the case needs it: `ID, flow NAME`.
pub fn subject(config: &CaseConfig, id: &str, name: &str) -> String {
    match config.flow_label(name) {
        "" => id.to_owned(),
        label => format!("{id}, flow {label}"),
    }
}

impl CaseFlow<'_> {
    /// Its name; empty where there is none.
    pub fn name(&self) -> &str {
        self.config.map_or("", |config| &config.name)
    }

    /// The node that posts it; where there is no flow, that which runs the sweep.
    pub fn from(&self) -> &str {
        self.config.map_or(CLIENT, |config| &config.from)
    }

    /// The node at its other end.
    pub fn to(&self) -> &str {
        self.config.map_or(SERVER, |config| &config.to)
    }

    /// The devices at `from` and at `to`, as far as the file has them.
    pub fn devices<'r>(&self, file: &'r ResultFile) -> [Option<&'r Device>; 2] {
        let device = |node: &str, name: Option<&String>| {
            let mut devices = file.node(node)?.devices.iter();
            devices.find(|device| name.is_none_or(|name| device.name == *name))
        };
        let config = self.config;
        [
            device(self.from(), config.and_then(|it| it.from_device.as_ref())),
            device(self.to(), config.and_then(|it| it.to_device.as_ref())),
        ]
    }

    /// What it moved in a run of its case.
    pub fn result<'r>(&self, run: &'r Run) -> Option<&'r FlowResult> {
        let at_place = run.flows.get(self.index);
        at_place.filter(|flow| flow.name == self.name())
    }

    /// Its name, if the case needs it to distinguish its flows; else empty.
    pub fn label(&self) -> &str {
        self.case.config.flow_label(self.name())
    }

    /// The case, with the flow's name if the case needs it: `ID, flow NAME`.
    pub fn subject(&self) -> String {
        subject(&self.case.config, &self.case.id, self.name())
    }

    /// Whether it is the first of its case: its row also has what belongs to the whole run.
    pub fn is_first(&self) -> bool {
        self.index == 0
    }
}
