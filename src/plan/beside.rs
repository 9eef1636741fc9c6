//! A victim beside attackers: the only case of a sweep becomes one in which it is alone, and one for each attacker, whose
//! flows it has besides. It must not know how these are run and compared.

use std::path::Path;

use settings::{ROWS, Scope, Settings, nearest};

use super::case::Case;
use super::config::ConfigFile;
use super::flow::Flow;
use super::nodes::Nodes;
use super::sweep::Sweep;

/// Names the attackers that the program carries, all of them.
const ALL: &str = "all";

/// The victim's only flow, beside others.
const VICTIM: &str = "victim";

macro_rules! carried {
    ($($name:literal),*) => {
        /// The attackers that the program carries: their names and files.
        const CARRIED: &[(&str, &str)] = &[$(
            ($name, include_str!(concat!("../../bench-configs/attackers/", $name, ".toml")))
        ),*];
    };
}

carried!(
    "bandwidth",
    "packets",
    "qp-cache",
    "mr-cache",
    "reads",
    "writes-and-reads"
);

/// Attackers, each beside the same victim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// Their names. The sweep's first case is the victim alone, and the next ones are it beside each of these.
    pub attackers: Vec<String>,
}

/// Why there are no such cases.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--beside: {why}")]
pub struct BesideError {
    why: String,
    /// What to do about it.
    pub hint: String,
}

fn refused(why: impl Into<String>, hint: impl Into<String>) -> BesideError {
    BesideError {
        why: why.into(),
        hint: hint.into(),
    }
}

impl Beside {
    /// The victim is the only case of `sweep`. An attacker is one of its flows, which is then no victim, one that the program
    /// carries, all of those, or a file.
    ///
    /// # Errors
    /// It is no victim, or one is no attacker.
    pub fn new(sweep: Sweep, entries: &[String]) -> Result<(Sweep, Beside), BesideError> {
        let Sweep { cases, nodes } = sweep;
        let mut victim = victim(cases)?;
        let names = entries.iter().flat_map(|entry| match &**entry {
            ALL => CARRIED.iter().map(|(name, _)| *name).collect(),
            entry => vec![entry],
        });
        let mut attackers: Vec<(String, Vec<Flow>)> = Vec::new();
        for name in names {
            let of_file = |flow: &Flow| flow.name != name;
            let (others, own): (Vec<Flow>, Vec<Flow>) =
                victim.flows.iter().cloned().partition(of_file);
            let attacker = match own.is_empty() {
                true => attacker(name, &victim, &nodes)?,
                false => {
                    let names: Vec<&str> = others.iter().map(|flow| &*flow.name).collect();
                    victim.id = names.join("+");
                    victim.flows = others;
                    (name.to_owned(), own)
                }
            };
            if attackers.iter().any(|(known, _)| *known == attacker.0) {
                let why = format!("{} is listed twice", attacker.0);
                return Err(refused(why, "list each attacker once"));
            }
            attackers.push(attacker);
        }
        if victim.flows.is_empty() {
            let hint = "name the other flows of the file, or a file of their own";
            return Err(refused("no flow is left for the victim", hint));
        }
        let (attackers, mut cases): (Vec<String>, Vec<Case>) = attackers
            .into_iter()
            .map(|(name, flows)| {
                let case = beside(&victim, &name, flows)?;
                Ok((name, case))
            })
            .collect::<Result<Vec<_>, BesideError>>()?
            .into_iter()
            .unzip();
        cases.insert(0, victim);
        Ok((Sweep { cases, nodes }, Beside { attackers }))
    }
}

/// The only case, if it can be a victim.
fn victim(mut cases: Vec<Case>) -> Result<Case, BesideError> {
    let count = cases.len();
    let Some(victim) = cases.pop().filter(|_| count == 1) else {
        let why = format!("the victim is one case, and there are {count}");
        let hint = "give each option one value, and --rate in messages or bits a second";
        return Err(refused(why, hint));
    };
    let (why, hint) = if victim.is_set_up() {
        (
            "--op connect sets QPs up, and a victim moves messages",
            "choose another --op",
        )
    } else if victim.pattern.is_some() {
        (
            "--pattern makes the flows of many nodes",
            "write the victim's [[flow]] tables in a file",
        )
    } else if victim.iterations_per_qp.is_some() {
        (
            "with -n the victim and an attacker would end at different times",
            "give -D",
        )
    } else {
        return Ok(victim);
    };
    Err(refused(why, hint))
}

/// The flows of an attacker that is none of the victim's file, by the name that it has in results.
fn attacker(entry: &str, victim: &Case, nodes: &Nodes) -> Result<(String, Vec<Flow>), BesideError> {
    let carried = CARRIED.iter().find(|(name, _)| *name == entry);
    let path = Path::new(entry);
    let is_path = || path.components().count() > 1 || path.extension().is_some();
    let read = match carried {
        Some((_, text)) => ConfigFile::parse(text, path, &[]),
        None if is_path() => ConfigFile::read(path, &[]),
        None => return Err(unknown(entry, victim)),
    };
    let file = read.map_err(|error| {
        let hint = "an attacker is a file with [[flow]] tables, as in docs/beside.md";
        refused(error.to_string(), hint)
    })?;
    let wrong = |why: &str, hint: &str| Err(refused(format!("{entry}: {why}"), hint));
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    if !Flow::is_name(&stem) {
        let hint = "name it with at most 32 letters, digits, dots, dashes and underscores";
        return wrong("its name cannot be that of an attacker", hint);
    }
    let of_case = |row: &&settings::Row| row.scope == Scope::Case && file.given.has(row.flag);
    if let Some(row) = ROWS.iter().find(of_case) {
        let why = format!("`{}` holds for the victim too", row.flag);
        return wrong(&why, "give it as an option of the victim");
    }
    if file.flows.is_empty() || file.nodes.is_some() {
        let hint = "an attacker's flows go between the victim's nodes";
        return wrong("an attacker has [[flow]] tables and no `nodes`", hint);
    }
    let sweep = Sweep::with_flows(&file.given, &file.flows, nodes.clone());
    let mut sweep = sweep.map_err(|error| {
        let place = file.place_of(&error, false);
        let place = place.map_or(String::new(), |place| format!(":{place}"));
        refused(format!("{entry}{place}: {error}"), error.hint())
    })?;
    match (sweep.cases.pop(), sweep.cases.len()) {
        (Some(case), 0) => Ok((stem.into_owned(), case.flows)),
        _ => wrong(
            "lists make several cases, and an attacker is one",
            "give one value to each key",
        ),
    }
}

fn unknown(entry: &str, victim: &Case) -> BesideError {
    let carried = CARRIED.iter().map(|(name, _)| *name);
    let flows = victim.flows.iter().map(|flow| &*flow.name);
    let own = flows.filter(|name| *name != Flow::FORWARD);
    let known: Vec<&str> = carried.chain(own).chain([ALL]).collect();
    let meant = nearest(entry, &known);
    let meant = meant.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
    let why = format!("no attacker is named `{entry}`{meant}");
    let hint = format!(
        "there are {}, and files such as ./mine.toml",
        known.join(", ")
    );
    refused(why, hint)
}

/// The victim with the flows of an attacker, which other workers serve.
fn beside(victim: &Case, name: &str, attacker: Vec<Flow>) -> Result<Case, BesideError> {
    let mut case = Case {
        id: format!("{}+{name}", victim.id),
        ..victim.clone()
    };
    for flow in &mut case.flows {
        if flow.name == Flow::FORWARD {
            VICTIM.clone_into(&mut flow.name);
        }
    }
    for mut flow in attacker {
        flow.worker_set = 1;
        copy_case(&mut flow.settings, &case.settings);
        if case.flows.iter().any(|known| known.name == flow.name) {
            flow.name = format!("{name}-{}", flow.name);
        }
        case.flows.push(flow);
    }
    match Sweep::check(&case) {
        Ok(()) => Ok(case),
        Err(error) => Err(refused(format!("{name}: {error}"), error.hint())),
    }
}

/// What holds for all flows of a case is the victim's.
fn copy_case(settings: &mut Settings, from: &Settings) {
    for row in ROWS.iter().filter(|row| row.scope == Scope::Case) {
        row.copy(settings, from);
    }
}

#[cfg(test)]
#[path = "beside_tests.rs"]
mod tests;
