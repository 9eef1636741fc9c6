//! Variables of the environment, read by name. It must not know which launcher sets which.

use std::collections::BTreeMap;

use super::error::LaunchError;
use super::launcher::Launcher;

pub type Variables = BTreeMap<String, String>;

pub(super) struct Reader<'a> {
    variables: &'a Variables,
}

impl<'a> Reader<'a> {
    pub(super) fn new(variables: &'a Variables) -> Reader<'a> {
        Reader { variables }
    }

    /// One that is there and not empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let text = self.variables.get(name).map(|it| it.trim());
        text.filter(|text| !text.is_empty())
    }

    pub(super) fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    pub(super) fn number(
        &self,
        launcher: Launcher,
        name: &'static str,
    ) -> Result<Option<u32>, LaunchError> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let number = text.parse().map_err(|_| LaunchError::NoNumber {
            launcher,
            name,
            value: report::text::printable(text, 40),
        })?;
        Ok(Some(number))
    }

    /// The job and step of Slurm that this process is in.
    pub(super) fn slurm_step(&self) -> Option<String> {
        let job = self.text("SLURM_JOB_ID")?;
        let step = self.text("SLURM_STEP_ID")?;
        Some(format!("{job}.{step}"))
    }
}
