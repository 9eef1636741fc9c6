//! Describes which port and GID rocebench would use, and why. `verbs` makes the choice, and has the reasons.

use serde::Serialize;

use verbs::{GidReason, Port, VerbsError};

/// The port and GID that rocebench would use.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Choice {
    pub device: String,
    /// Library of the device: `libibverbs` or `embedded`.
    pub library: String,
    pub port: u8,
    /// It is the embedded device, and there are others, none of which can be used.
    pub is_in_place_of_another: bool,
    /// Index of the GID; `null` on InfiniBand without one.
    pub gid_index: Option<u32>,
    /// Why this device and port, and which others could have been chosen.
    pub device_because: String,
    pub gid_because: String,
    /// The services of which the device makes no QP, each with what it answered.
    pub lacks: Vec<String>,
    /// The extended verbs that the device has; empty if it has none.
    pub extended_verbs: Vec<&'static str>,
}

impl Choice {
    pub fn new(port: &Port) -> Choice {
        let because = port.embedded.as_ref().and_then(|it| it.because.as_ref());
        let device_because = match because {
            Some(because) => format!("{because}, so the embedded device is used"),
            None => port.choice.sentence(),
        };
        let gid_because = match port.choice.gid_reason {
            GidReason::Infiniband if port.info.grh_required => {
                "it is the first, and the port requires one".to_owned()
            }
            reason @ (GidReason::Requested | GidReason::Infiniband) => reason.to_string(),
            _ if port.gids.len() == 1 => "it is the only one".to_owned(),
            reason => reason.to_string(),
        };
        Choice {
            device: port.context.name().to_owned(),
            library: port.context.library().name.to_owned(),
            port: port.info.port,
            is_in_place_of_another: port
                .embedded
                .as_ref()
                .is_some_and(|it| it.is_in_place_of_others),
            gid_index: port.gid.map(|entry| entry.index.into()),
            device_because,
            gid_because,
            lacks: lacks(port),
            extended_verbs: extended_verbs(port),
        }
    }

    /// Whether it is this GID of this port of this device.
    pub fn is(&self, device: &str, port: u8, gid_index: u32) -> bool {
        self.device == device && self.port == port && self.gid_index == Some(gid_index)
    }
}

fn lacks(port: &Port) -> Vec<String> {
    port.adapter
        .refused_services()
        .iter()
        .map(|(service, error)| {
            let answer = match error {
                VerbsError::Call { source, .. } => source.to_string(),
                other => other.to_string(),
            };
            let words = answer.split(" (os error").next();
            format!("no {}: {}", service.name(), words.unwrap_or(&answer))
        })
        .collect()
}

fn extended_verbs(port: &Port) -> Vec<&'static str> {
    let has = port.adapter.extensions();
    let extensions = [
        (has.extended_post, "extended posting"),
        (has.extended_poll, "extended polling"),
        (has.thread_domains, "thread domains"),
        (has.stamps, "time stamps of completions"),
    ];
    extensions.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect()
}
