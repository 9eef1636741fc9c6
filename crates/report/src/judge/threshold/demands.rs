//! All that is demanded of the flows of a sweep.

use std::fmt;

use super::condition::Condition;

/// What each flow must keep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demands {
    /// A throughput that it must reach.
    pub below: Option<Condition>,
    /// Conditions that must not be true of it.
    pub fail_if: Vec<Condition>,
}

impl Demands {
    pub fn are_none(&self) -> bool {
        self.conditions().next().is_none()
    }

    /// All conditions, that of throughput first.
    pub(super) fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.below.iter().chain(&self.fail_if)
    }

    /// Each as an option without its dashes, and its value.
    pub(crate) fn options(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        let below = self.below.iter().map(|it| ("fail-below", it.to_string()));
        let fail_if = self.fail_if.iter().map(|it| ("fail-if", it.to_string()));
        below.chain(fail_if)
    }
}

impl fmt::Display for Demands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.options().map(|(option, value)| format!("--{option} {value}"));
        f.write_str(&options.collect::<Vec<_>>().join(" "))
    }
}
