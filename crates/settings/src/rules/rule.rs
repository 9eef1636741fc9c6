//! What a rule is: which settings it is about, when it is broken, and what follows.

use crate::row::Scope;
use crate::table::Settings;

/// A rule on settings that do not go together.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The flags that it is about: one, or several that have no effect.
    pub(super) flags: &'static str,
    /// What follows where it is broken.
    pub kind: RuleKind,
    /// Its sentence, after "--flag has no effect" or "--flag cannot be used"; `{}` stands for `values`.
    pub(super) says: &'static str,
    /// Settings of what it judges: those of a flow, or those of the case as a whole.
    pub(super) scope: Scope,
    /// Whether these settings break it.
    pub(super) is_broken: fn(&Settings) -> bool,
    /// What the sentence says of these settings.
    pub(super) values: fn(&Settings) -> String,
    /// What to do about it, where that is not the usual; `{flag}` stands for the flag.
    pub(super) hint: fn(&Settings) -> String,
    /// The only other setting that it is about, where giving either replaces both.
    pub(super) instead_of: &'static str,
}

/// What follows from a broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// The setting has no effect, and may be given: other cases of the sweep, or another run of the command, have use
    /// for it.
    Ignored,
    /// The setting has no effect; a sweep in which no case has use for it is refused.
    NoEffect,
    /// The case is refused.
    Refused,
}

impl RuleKind {
    /// What tables of rules call it.
    pub fn word(self) -> &'static str {
        match self {
            RuleKind::Ignored => "ignored",
            RuleKind::NoEffect => "without effect",
            RuleKind::Refused => "refused",
        }
    }
}

impl Rule {
    pub(super) const IGNORED: Rule = Rule::new(RuleKind::Ignored);
    pub(super) const NO_EFFECT: Rule = Rule::new(RuleKind::NoEffect);
    pub(super) const REFUSED: Rule = Rule::new(RuleKind::Refused);

    const fn new(kind: RuleKind) -> Rule {
        Rule {
            flags: "",
            kind,
            says: "",
            scope: Scope::Flow,
            is_broken: |_| false,
            values: |_| String::new(),
            hint: |_| String::new(),
            instead_of: "",
        }
    }

    /// The flags that it is about.
    pub fn flags(&self) -> impl Iterator<Item = &'static str> {
        self.flags.split(' ')
    }

    /// Its sentence, whatever the settings are.
    pub fn sentence(&self) -> String {
        self.says.replace("{}", "")
    }

    /// Why a setting has no effect, after "--flag has no effect"; `None` where it is ignored, and of other rules.
    pub fn why_idle(&self) -> Option<&'static str> {
        (self.kind == RuleKind::NoEffect).then_some(self.says)
    }

    /// Two settings of which giving either replaces both.
    pub(crate) fn exclusive(&self) -> Option<[&'static str; 2]> {
        (!self.instead_of.is_empty()).then_some([self.flags, self.instead_of])
    }
}

/// Makes the rules of a file, each of a usual one and what differs.
macro_rules! rules {
    ($($usual:path { $($part:ident: $value:expr),* $(,)? })*) => {
        pub(super) static RULES: &[Rule] = &[$(Rule { $($part: $value,)* ..$usual },)*];
    };
}
pub(super) use rules;
