//! How long flows took until they shared evenly again, after flows began or ended, or a link failed or came back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::names;

/// What became of the flows' shares after an event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Convergence {
    /// When it was, in seconds from the opening of the window.
    pub at_seconds: f64,
    /// Names of the flows that began to send then.
    pub starts: Vec<String>,
    /// Flows that ended or paused then.
    pub stops: Vec<String>,
    /// What a fault did to a link of an embedded device then; `null` for nothing.
    pub link: Option<LinkEvent>,
    /// Flows in a closed loop that are on until the next event.
    pub flows: u32,
    /// Time from the event to the first of five intervals in a row in which each of these flows is within 10 % of its fair share:
    /// an equal part of what they move together in the second half of the time to the next event, in bytes. `null` if unknown.
    pub seconds: Option<f64>,
    /// Why it is not known; `null` if it is.
    pub unknown: Option<String>,
}

names! {
    /// What happens to a link.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    LinkEvent {
        /// It loses all packets from now on.
        Fails = "the link fails",
        /// It carries packets again, as the fault is over.
        Returns = "the link returns",
    }
}

impl Convergence {
    /// The event, for a person: `flow3 and flow4 start`.
    pub fn event(&self) -> String {
        let flows = [(&self.starts, "starts", "start"), (&self.stops, "stops", "stop")];
        let mut parts: Vec<String> = flows
            .into_iter()
            .filter(|(names, ..)| !names.is_empty())
            .map(|(names, one, many)| match &names[..] {
                [name] => format!("{name} {one}"),
                [name, other] => format!("{name} and {other} {many}"),
                several => format!("{} flows {many}", several.len()),
            })
            .collect();
        parts.extend(self.link.map(|link| link.to_string()));
        parts.join(", ")
    }
}
