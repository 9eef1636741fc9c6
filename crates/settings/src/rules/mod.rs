//! Which settings go together: each rule is a row, said once, in the files below by subject. What a setting is to a
//! case ([`Row::idle_by`]) and what is wrong with a case ([`Settings::misfit`]) are answers of them. A new rule is a
//! row there and its example in the tests.

mod case;
mod load;
mod messages;
mod rule;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use rule::{Rule, RuleKind};

use super::row::{Scope, Takes};
use super::table::{ROWS, Row, Settings};

/// A rule that settings break.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum Misfit {
    #[error("--{flag} has no effect {why}")]
    NoEffect { flag: &'static str, why: &'static str },
    #[error("{setting} cannot be used {why}")]
    Refused {
        flag: &'static str,
        /// The flag with its value.
        setting: String,
        why: String,
        hint: String,
    },
}

impl Misfit {
    /// The option to change first.
    pub fn flag(&self) -> &'static str {
        match self {
            Misfit::NoEffect { flag, .. } | Misfit::Refused { flag, .. } => flag,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Misfit::NoEffect { flag, .. } => format!("leave --{flag} out"),
            Misfit::Refused { flag, hint, .. } if hint.is_empty() => {
                format!("change --{flag}, or leave it out")
            }
            Misfit::Refused { hint, .. } => hint.clone(),
        }
    }
}

/// All rules. Of several on one flag, the first one that is broken counts.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [case::RULES, messages::RULES, load::RULES].into_iter().flatten()
}

/// The rules by which a flag has no effect.
fn on_effect_of(flag: &str) -> &'static [&'static Rule] {
    static BY_FLAG: LazyLock<HashMap<&str, Vec<&Rule>>> = LazyLock::new(|| {
        let mut by_flag: HashMap<&str, Vec<&Rule>> = HashMap::new();
        for rule in rules().filter(|rule| rule.kind != RuleKind::Refused) {
            for flag in rule.flags() {
                by_flag.entry(flag).or_default().push(rule);
            }
        }
        by_flag
    });
    BY_FLAG.get(flag).map_or(&[], Vec::as_slice)
}

impl Row {
    /// The rule by which it has no effect on a case, or on a flow, with these settings; `None` where it has one.
    pub fn idle_by(&self, settings: &Settings) -> Option<&'static Rule> {
        let mut rules = on_effect_of(self.flag).iter().copied();
        rules.find(|rule| (rule.is_broken)(settings))
    }

    /// Whether it has an effect on a case, or on a flow, with these settings.
    pub fn has_effect(&self, settings: &Settings) -> bool {
        self.idle_by(settings).is_none()
    }
}

impl Settings {
    /// What is wrong with them as those of a flow, or of a case as a whole: the first rule that they break. A setting
    /// without effect breaks one if it is not at its default, which no plan leaves it at.
    pub fn misfit(&self, scope: Scope) -> Option<Misfit> {
        self.refused(scope).or_else(|| self.idle(scope))
    }

    fn refused_by(&self, scope: Scope) -> Option<&'static Rule> {
        let mut of_scope = rules().filter(|it| it.kind == RuleKind::Refused && it.scope == scope);
        of_scope.find(|rule| (rule.is_broken)(self))
    }

    fn refused(&self, scope: Scope) -> Option<Misfit> {
        let rule = self.refused_by(scope)?;
        let row = Settings::row(rule.flags)?;
        let value = match row.takes {
            Takes::Switch => String::new(),
            _ => row.text(self),
        };
        Some(Misfit::Refused {
            flag: row.flag,
            setting: format!("--{} {value}", row.flag).trim_end().to_owned(),
            why: rule.says.replace("{}", &(rule.values)(self)),
            hint: (rule.hint)(self).replace("{flag}", row.flag),
        })
    }

    fn idle(&self, scope: Scope) -> Option<Misfit> {
        let mut usual = self.clone();
        usual.drop_idle();
        ROWS.iter().find_map(|row| {
            let rule = row.idle_by(self).filter(|rule| rule.scope == scope)?;
            let why = rule.why_idle().filter(|_| !row.is_equal(self, &usual))?;
            let flag = row.flag;
            Some(Misfit::NoEffect { flag, why })
        })
    }

    /// Gives what has no effect its default.
    pub fn drop_idle(&mut self) {
        let unfitted = Settings::unfitted();
        let requested = self.clone();
        for row in ROWS.iter().filter(|row| !row.has_effect(&requested)) {
            row.copy(self, &unfitted);
        }
        self.fit();
    }
}

#[cfg(test)]
mod tests;
