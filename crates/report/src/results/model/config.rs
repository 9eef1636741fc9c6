//! The settings of a case.

use std::ops::{Deref, DerefMut};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::Settings;

/// The settings of a case, as both ends applied them, which are fields of it, and what they came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseConfig {
    /// Every setting.
    #[serde(flatten)]
    pub settings: Settings,
    /// Path MTU in use, in bytes; `null` when no connection was made.
    pub path_mtu: Option<u32>,
    /// Verbs name of the device at the end that ran the sweep.
    pub device: Option<String>,
    /// Verbs name of the device at the other end.
    pub peer_device: Option<String>,
}

impl From<Settings> for CaseConfig {
    /// Before a connection was made.
    fn from(settings: Settings) -> CaseConfig {
        CaseConfig {
            settings,
            path_mtu: None,
            device: None,
            peer_device: None,
        }
    }
}

impl Deref for CaseConfig {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl DerefMut for CaseConfig {
    fn deref_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }
}
