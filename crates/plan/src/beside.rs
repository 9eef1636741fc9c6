//! A victim beside attackers: the only case of a sweep becomes one in which it is alone, and one for each attacker,
//! whose flows it has besides.

use std::path::Path;

use settings::{ROWS, Scope, nearest};

use crate::config::ConfigFile;
use crate::flow::Flow;
use crate::nodes::Nodes;
use crate::sweep::Case;
use crate::sweep::Sweep;

/// Names the attackers that the program carries, all of them.
const ALL: &str = "all";

/// The victim's only flow, beside others.
const VICTIM: &str = "victim";

macro_rules! carried {
    ($($name:literal)*) => {
        /// The attackers that the program carries: their names and files.
        const CARRIED: &[(&str, &str)] = &[$(
            ($name, include_str!(concat!("../../../bench-configs/attackers/", $name, ".toml")))
        ),*];
    };
}

carried! { "bandwidth" "packets" "qp-cache" "mr-cache" "reads" "writes-and-reads" }

/// The name of an attacker, and its flows.
type Attacker = (String, Vec<Flow>);

/// The only case of `sweep`, the victim, alone, and beside each attacker, whose names come in the same order. An attacker is a
/// flow of the victim, which it then is no part of, one that the program carries, all of those, or a file.
///
/// # Errors
/// It is no victim, or one is no attacker.
pub fn beside(sweep: Sweep, entries: &[String]) -> Result<(Sweep, Vec<String>), String> {
    let Sweep { cases, nodes } = sweep;
    let mut victim = victim(cases)?;
    let names = entries.iter().flat_map(|entry| match &**entry {
        ALL => CARRIED.iter().map(|(name, _)| *name).collect(),
        entry => vec![entry],
    });
    let mut attackers: Vec<Attacker> = Vec::new();
    for name in names {
        let (own, others): (Vec<Flow>, Vec<Flow>) =
            victim.flows.iter().cloned().partition(|flow| flow.name == name);
        let attacker = if own.is_empty() {
            attacker(name, &victim, &nodes)?
        } else {
            let left: Vec<&str> = others.iter().map(|flow| &*flow.name).collect();
            (victim.id, victim.flows) = (left.join("+"), others);
            (name.to_owned(), own)
        };
        if attackers.iter().any(|(known, _)| *known == attacker.0) {
            return Err(format!("{} is listed twice", attacker.0));
        }
        attackers.push(attacker);
    }
    if victim.flows.is_empty() {
        return Err("no flow is left for the victim".to_owned());
    }
    let attacker_names = attackers.iter().map(|(name, _)| name.clone()).collect();
    let attacked = attackers.into_iter().map(|attacker| with_attacker(&victim, attacker));
    let with_victim = std::iter::once(Ok(victim.clone())).chain(attacked);
    Ok((Sweep { cases: with_victim.collect::<Result<_, _>>()?, nodes }, attacker_names))
}

/// The only case, if it can be a victim.
fn victim(mut cases: Vec<Case>) -> Result<Case, String> {
    let why = match (cases.pop(), cases.len()) {
        (Some(case), 0) if case.is_set_up() => "a victim moves messages, not --op connect",
        (Some(case), 0) if case.pattern.is_some() => {
            "--pattern makes flows of its own, not a victim's"
        }
        (Some(case), 0) if case.iterations_per_qp.is_some() => {
            "give -D, not -n: victim and attacker must end at the same time"
        }
        (Some(case), 0) => return Ok(case),
        _ => "a victim is one case: give each option one value, and --rate without %",
    };
    Err(why.to_owned())
}

/// An attacker that is no flow of the victim's file.
fn attacker(entry: &str, victim: &Case, nodes: &Nodes) -> Result<Attacker, String> {
    let path = Path::new(entry);
    let is_path = path.components().count() > 1 || path.extension().is_some();
    let read = match CARRIED.iter().find(|(name, _)| *name == entry) {
        Some((_, text)) => ConfigFile::parse(text, path, &[]),
        None if is_path => ConfigFile::read(path, &[]),
        None => return unknown(entry, victim),
    };
    let file = read.map_err(|error| error.to_string())?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut of_case = ROWS.iter().filter(|row| row.scope == Scope::Case);
    if let Some(row) = of_case.find(|row| file.given.has(row.flag)) {
        return Err(format!(
            "{entry}: `{}` holds for the victim too: give it as an option",
            row.flag
        ));
    }
    if file.flows.is_empty() || file.nodes.is_some() || !Flow::is_name(&stem) {
        return Err(format!(
            "{entry}: an attacker's file needs a plain name and [[flow]] tables, and no `nodes`"
        ));
    }
    let sweep = Sweep::with_flows(&file.given, &file.flows, nodes.clone());
    let mut cases = sweep.map_err(|error| {
        let place = file.place_of(&error, false).map_or(String::new(), |place| format!(":{place}"));
        format!("{entry}{place}: {error}")
    })?;
    match (cases.cases.pop(), cases.cases.len()) {
        (Some(case), 0) => Ok((stem.into_owned(), case.flows)),
        _ => Err(format!("{entry}: an attacker is one case, without lists")),
    }
}

fn unknown<T>(entry: &str, victim: &Case) -> Result<T, String> {
    let carried = CARRIED.iter().map(|(name, _)| *name);
    let own = victim.flows.iter().map(|flow| &*flow.name).filter(|name| *name != Flow::FORWARD);
    let known: Vec<&str> = carried.chain(own).chain([ALL]).collect();
    let meant =
        nearest(entry, &known).map_or(String::new(), |name| format!("; did you mean `{name}`?"));
    Err(format!(
        "no attacker is named `{entry}`{meant}; there are {}, and files such as ./mine.toml",
        known.join(", ")
    ))
}

/// The victim with the flows of an attacker, which other workers serve. What holds for all flows of a case is the victim's.
fn with_attacker(victim: &Case, (name, flows): Attacker) -> Result<Case, String> {
    let mut case = victim.clone();
    case.id = format!("{}+{name}", victim.id);
    case.flows
        .iter_mut()
        .filter(|it| it.name == Flow::FORWARD)
        .for_each(|flow| VICTIM.clone_into(&mut flow.name));
    for mut flow in flows {
        flow.worker_set = 1;
        for row in ROWS.iter().filter(|row| row.scope == Scope::Case) {
            row.copy(&mut flow.settings, &case.settings);
        }
        if case.flows.iter().any(|known| known.name == flow.name) {
            flow.name = format!("{name}-{}", flow.name);
        }
        case.flows.push(flow);
    }
    let checked = Sweep::check(&case);
    checked.map_err(|error| format!("{name}: {error}"))?;
    Ok(case)
}

#[cfg(test)]
#[path = "beside_tests.rs"]
mod tests;
