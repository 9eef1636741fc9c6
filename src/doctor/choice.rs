//! Describes which port and GID rocebench would use, and why. `verbs` makes the choice.

use serde::Serialize;

use verbs::{GidReason, LinkLayer, Port, PortRequest, Route, VerbsError, choose_gid_because};

/// The port and GID that rocebench would use.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Choice {
    /// Device name.
    pub device: String,
    /// Library of the device: `libibverbs` or `embedded`.
    pub library: String,
    /// Port number.
    pub port: u8,
    /// It is the embedded device, and there are others, none of which can be used.
    pub is_in_place_of_another: bool,
    /// Index of the GID; `null` on InfiniBand without one.
    pub gid_index: Option<u32>,
    /// Why this device and port.
    pub device_because: String,
    /// Why this GID.
    pub gid_because: String,
    /// The services of which the device makes no QP, each with what it answered.
    pub lacks: Vec<String>,
    /// The extended verbs that the device has; empty if it has none.
    pub extended_verbs: Vec<&'static str>,
}

impl Choice {
    /// Describes a selected port.
    pub fn of(port: &Port, request: &PortRequest, route: Route) -> Choice {
        let address = port.gid.map(|entry| entry.gid.address());
        let device_because = match (&request.device, &port.embedded) {
            (Some(_), _) => "it was requested".to_owned(),
            (None, Some(embedded)) => match &embedded.because {
                Some(because) => format!("{because}, so the embedded device is taken"),
                None => "the embedded device is taken".to_owned(),
            },
            (None, None) if address == Some(route.local) => {
                "it has the address of the control connection".to_owned()
            }
            (None, None) => match port.info.link_layer {
                LinkLayer::Ethernet if port.gid.is_some_and(|it| !it.gid.is_link_local()) => {
                    "it is the first active port with a RoCE v2 GID that is not link-local"
                        .to_owned()
                }
                LinkLayer::Ethernet => "it is the first active port with a RoCE v2 GID".to_owned(),
                LinkLayer::Infiniband => {
                    "it is the first active port, and none is of RoCE".to_owned()
                }
            },
        };
        let reason = choose_gid_because(&port.gids, Some(route.local)).map(|(_, reason)| reason);
        let gid_because = match (request.gid_index, port.info.link_layer) {
            (Some(_), _) => "it was requested",
            (None, LinkLayer::Infiniband) if port.info.grh_required => {
                "it is the first, and the port requires one"
            }
            (None, LinkLayer::Infiniband) => "it is the first, and InfiniBand needs none",
            (None, LinkLayer::Ethernet) => match reason {
                _ if port.gids.len() == 1 => "it is the only one",
                Some(GidReason::OwnAddress) => "it has the address of the control connection",
                Some(GidReason::SameFamily) if route.local.is_ipv4() => {
                    "it is the first of RoCE v2 with an IPv4 address"
                }
                Some(GidReason::SameFamily) => {
                    "it is the first of RoCE v2 with an IPv6 address that is not link-local"
                }
                Some(GidReason::NotLinkLocal) => {
                    "it is the first of RoCE v2 that is not link-local"
                }
                _ => "it is the first of RoCE v2, and all are link-local",
            },
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
            gid_because: gid_because.to_owned(),
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
    let refused = port.adapter.refused_services().iter();
    let told = refused.map(|(service, error)| {
        let answer = match error {
            VerbsError::Call { source, .. } => source.to_string(),
            other => other.to_string(),
        };
        let words = answer.split(" (os error").next();
        format!("no {}: {}", service.name(), words.unwrap_or(&answer))
    });
    told.collect()
}

fn extended_verbs(port: &Port) -> Vec<&'static str> {
    let has = port.adapter.extensions();
    let all = [
        (has.extended_post, "extended posting"),
        (has.extended_poll, "extended polling"),
        (has.thread_domains, "thread domains"),
        (has.stamps, "time stamps of completions"),
    ];
    let has = all.into_iter().filter(|(has, _)| *has);
    has.map(|(_, name)| name).collect()
}
