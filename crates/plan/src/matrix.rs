//! The product of all lists: each cell is a case with a name of its own, or one for each round of its pattern.
//!
//! Order is that of the table of settings: what comes first there varies slowest; within each, as the list was given.
//! So a table reads downwards as scaling over QPs, size by size. What does not apply to a case makes no cases: rx
//! depth for WRITE and READ, inline for READ, settings of traffic where there is none, settings that each flow has for
//! itself.

use std::collections::HashSet;
use std::fmt::Write as _;

use settings::{Given, Id, Misfit, Pattern, ROWS, Row, SettingError, Settings, Takes};

use crate::config::FlowTable;
use crate::flow::Flow;
use crate::nodes::Nodes;
use crate::sweep::{Case, MOST_FLOWS, PlanError};

/// Cases of one sweep; with several flows each, flows of all cases.
const MOST_CASES: u64 = 100_000;

/// What stands in an id before the number of a pattern's round.
pub(crate) const ROUND: &str = "-round";

/// Flows that the id of a case names.
const NAMED_FLOWS: usize = 4;

/// A setting that was given, and its values.
struct Axis {
    row: &'static Row,
    values: Vec<String>,
    /// Some case has use for it, or none has for this reason.
    is_used: bool,
    why_not: Option<&'static str>,
}

impl Axis {
    fn read(given: &Given) -> Result<Vec<Axis>, SettingError> {
        let mut scratch = Settings::default();
        let mut axes = Vec::new();
        for row in ROWS {
            let values = given.values(row.flag);
            for value in values {
                row.read(&mut scratch, value)?;
            }
            if !values.is_empty() {
                axes.push(Axis { row, values: values.to_vec(), is_used: false, why_not: None });
            }
        }
        Ok(axes)
    }

    /// Whether it has an effect on a flow with these settings; remembers why not.
    fn has_effect(&mut self, settings: &Settings) -> bool {
        let idle_by = self.row.idle_by(settings);
        match idle_by.map(settings::Rule::why_idle) {
            Some(Some(why)) => self.why_not = Some(why),
            Some(None) => self.is_used = true,
            None => {}
        }
        idle_by.is_none()
    }

    /// Why no case has use for it.
    fn useless(&self) -> Option<PlanError> {
        let why = self.why_not.filter(|_| !self.is_used)?;
        let flag = self.row.flag;
        Some(PlanError::Misfit { misfit: Misfit::NoEffect { flag, why }, case: None })
    }
}

/// A `[[flow]]`: what it is in all cases, and which settings are its own.
struct OwnFlow {
    flow: Flow,
    own: Vec<Axis>,
}

impl OwnFlow {
    fn new(table: &FlowTable, nodes: &Nodes) -> Result<OwnFlow, PlanError> {
        let (from, to) =
            (node_number(nodes, "from", &table.from, 0)?, node_number(nodes, "to", &table.to, 1)?);
        if from == to {
            let node = nodes.names().swap_remove(from as usize);
            return Err(PlanError::ToItself { node });
        }
        let own = Axis::read(&table.given)?;
        let mut settings = Settings::default();
        for axis in &own {
            for value in &axis.values {
                axis.row.read(&mut settings, value)?;
            }
        }
        let flow = Flow {
            name: table.name.clone(),
            from,
            to,
            from_device: table.from_device.clone(),
            to_device: table.to_device.clone(),
            worker_set: 0,
            steps: 0,
            settings,
        };
        Ok(OwnFlow { flow, own })
    }
}

fn node_number(
    nodes: &Nodes,
    key: &'static str,
    name: &Option<String>,
    usual: u32,
) -> Result<u32, PlanError> {
    let Some(name) = name else { return Ok(usual) };
    nodes.number(name).map_err(|nearest| PlanError::UnknownNode {
        key,
        name: name.clone(),
        nearest,
        names: nodes.names_in_short(),
    })
}

/// What was given, setting by setting, and flow by flow.
pub(crate) struct Axes<'a> {
    axes: Vec<Axis>,
    flows: Vec<OwnFlow>,
    nodes: &'a Nodes,
}

impl<'a> Axes<'a> {
    /// Reads every value.
    ///
    /// # Errors
    /// The first that is out of its range, or names no node.
    pub(crate) fn new(
        given: &Given,
        tables: &[FlowTable],
        nodes: &'a Nodes,
    ) -> Result<Axes<'a>, PlanError> {
        if tables.len() > MOST_FLOWS {
            return Err(PlanError::TooManyFlows { flows: tables.len() });
        }
        let axes = Axis::read(given)?;
        let flows = tables
            .iter()
            .map(|table| OwnFlow::new(table, nodes).map_err(|error| error.in_flow(&table.name)))
            .collect::<Result<_, _>>()?;
        Ok(Axes { axes, flows, nodes })
    }

    /// All cases.
    ///
    /// # Errors
    /// Too many cases, or a setting that no case has use for.
    pub(crate) fn cases(mut self) -> Result<Vec<Case>, PlanError> {
        let cells = self.cells()?;
        let mut cases = Vec::new();
        let mut ids = HashSet::new();
        let mut all_flows = 0;
        for cell in 0..cells {
            let Some(case_of_cell) = self.case(cell)? else {
                continue;
            };
            for case in self.patterned(case_of_cell)? {
                // A share is of what the closed loop moves, which is measured first.
                let closed = case.closed_loop().map(|closed| self.named(closed, &case));
                for added in [closed, Some(case)]
                    .into_iter()
                    .flatten()
                    .filter(|added| ids.insert(added.id.clone()))
                {
                    all_flows += added.flows.len() as u64;
                    if all_flows > MOST_CASES {
                        return Err(PlanError::TooManyFlowsInAll {
                            flows: all_flows,
                            most: MOST_CASES,
                        });
                    }
                    cases.push(added);
                }
            }
        }
        if let Some(error) = self.axes.iter().find_map(Axis::useless) {
            return Err(error);
        }
        for flow in &self.flows {
            if let Some(error) = flow.own.iter().find_map(Axis::useless) {
                return Err(error.in_flow(&flow.flow.name));
            }
        }
        Ok(cases)
    }

    /// How many cells the product has.
    fn cells(&self) -> Result<u64, PlanError> {
        let cases = self
            .axes
            .iter()
            .map(|axis| u64::try_from(axis.values.len()).unwrap_or(u64::MAX))
            .fold(1, u64::saturating_mul);
        let most = MOST_CASES / self.flows.len().max(1) as u64;
        if cases <= most {
            return Ok(cases);
        }
        let longest = self.axes.iter().rev().max_by_key(|axis| axis.values.len());
        Err(PlanError::TooManyCases {
            cases,
            most,
            longest: longest.map_or("qps", |axis| axis.row.flag),
        })
    }

    /// The cell number `index`, or nothing if its case is another cell's case too.
    fn case(&mut self, index: u64) -> Result<Option<Case>, PlanError> {
        let mut settings = Settings::unfitted();
        let mut rest = index;
        let mut is_first = Vec::with_capacity(self.axes.len());
        // The last setting varies fastest.
        for axis in self.axes.iter().rev() {
            let length = axis.values.len() as u64;
            let value = (rest % length) as usize;
            rest /= length;
            if let Some(text) = axis.values.get(value) {
                axis.row.read(&mut settings, text)?;
            }
            is_first.push(value == 0);
        }
        is_first.reverse();
        let mut is_needed = vec![false; self.axes.len()];
        let mut flows = Vec::with_capacity(self.flows.len());
        for OwnFlow { flow, own } in &mut self.flows {
            let mut of_flow = settings.clone();
            if own.iter().any(|axis| axis.row.flag == "size") {
                // A flow's own size stands for the sizes above it.
                of_flow.size_mix = None;
            }
            for axis in own.iter() {
                axis.row.copy(&mut of_flow, &flow.settings);
            }
            if of_flow.is_set_up() {
                return Err(PlanError::ConnectWithFlows);
            }
            keep_what_matters(&mut of_flow, own, &mut self.axes, &mut is_needed);
            flows.push(Flow { settings: of_flow, ..flow.clone() });
        }
        match flows.as_slice() {
            [] => keep_what_matters(&mut settings, &mut [], &mut self.axes, &mut is_needed),
            [only] => settings.clone_from(&only.settings),
            _ => {
                for (axis, _) in self.axes.iter().zip(&is_needed).filter(|it| !it.1) {
                    axis.row.copy(&mut settings, &Settings::default());
                }
                settings.fit();
            }
        }
        if is_first.iter().zip(&is_needed).any(|it| it == (&false, &false)) {
            return Ok(None);
        }
        if flows.is_empty() {
            return Ok(Some(Case::new(self.id(&settings), settings)));
        }
        Ok(Some(Case { id: self.id_of_flows(&settings, &is_needed), settings, flows, check: None }))
    }

    /// The cases of a cell: those of its pattern where it has one, and itself otherwise.
    fn patterned(&self, case: Case) -> Result<Vec<Case>, PlanError> {
        let Some(pattern) = &case.pattern else {
            return Ok(vec![case]);
        };
        let names = self.nodes.names();
        let rounds = rounds_of(pattern, &case.settings, self.nodes)?;
        let digits = rounds.len().to_string().len();
        let mut cases = Vec::with_capacity(rounds.len());
        for (number, round) in (1..).zip(&rounds) {
            let flows = round.iter().map(|(from, to)| {
                let (steps, settings) = of_step(&case.settings, names.len() as u32, *to);
                Flow {
                    name: format!("{}>{}", name_of(&names, *from), name_of(&names, *to)),
                    from: *from,
                    to: *to,
                    steps,
                    ..Flow::forward(settings)
                }
            });
            let suffix = match rounds.len() {
                1 => String::new(),
                _ => format!("{ROUND}{number:0digits$}"),
            };
            cases.push(Case {
                id: format!("{}{suffix}", case.id),
                flows: flows.collect(),
                settings: case.settings.clone(),
                check: None,
            });
        }
        Ok(cases)
    }

    /// The closed loop of a case, by a name of its own.
    fn named(&self, mut closed: Case, of: &Case) -> Case {
        let round = of.id.rfind(ROUND).map_or("", |at| &of.id[at..]);
        closed.id = if self.flows.is_empty() {
            format!("{}{round}", self.id(&closed.settings))
        } else {
            format!("{}-closed", closed.id)
        };
        closed
    }

    /// `small+bulk`, and then each setting that varies within the sweep.
    fn id_of_flows(&self, settings: &Settings, is_needed: &[bool]) -> String {
        let mut id = self
            .flows
            .iter()
            .map(|it| it.flow.name.as_str())
            .take(NAMED_FLOWS)
            .collect::<Vec<_>>()
            .join("+");
        if let Some(more) = self.flows.len().checked_sub(NAMED_FLOWS + 1) {
            id += &format!("+{}more", more + 1);
        }
        for (axis, _) in self
            .axes
            .iter()
            .zip(is_needed)
            .filter(|(axis, needed)| **needed && axis.values.len() > 1)
        {
            let text = axis.row.text(settings);
            let is_count = axis.row.has_range() && !axis.row.is_size;
            // Writing to a String cannot fail.
            let _ = match axis.row.id {
                Id::Letter(letter) => write!(id, "-{letter}{text}"),
                Id::Head if is_count => write!(id, "-q{text}"),
                _ => write!(id, "-{text}"),
            };
        }
        id
    }

    /// `send-shared-q16-64KiB`, and then each setting that varies within the sweep or is not the default.
    fn id(&self, settings: &Settings) -> String {
        let usual = Settings {
            tx_depth: settings.fitted_tx_depth(),
            signal_every: settings.fitted_signal_every(),
            rx_depth: settings.fitted_rx_depth(),
            ..Settings::default()
        };
        let mut id = if settings.has_traffic() {
            let sizes = settings.sizes_text().replace(',', "+");
            format!("{}-{}-q{}-{sizes}", settings.op, settings.cq, settings.qps)
        } else {
            format!("{}-q{}", settings.op, settings.qps)
        };
        for row in ROWS {
            if !row.has_effect(settings) {
                continue;
            }
            let is_usual = row.is_equal(settings, &usual);
            let varies =
                self.axes.iter().any(|axis| axis.row.flag == row.flag && axis.values.len() > 1);
            // Writing to a String cannot fail.
            let _ = match row.id {
                Id::Letter(letter) if row.takes == Takes::Switch && !is_usual => {
                    write!(id, "-{letter}")
                }
                Id::Letter(letter) if row.takes == Takes::List && (!is_usual || varies) => {
                    write!(id, "-{letter}{}", row.text(settings))
                }
                // A comma would end the id where ids are listed.
                Id::Word if !is_usual => write!(id, "-{}", row.text(settings).replace(',', "+")),
                _ => Ok(()),
            };
        }
        id
    }
}

/// Steps of an iteration, and the settings of a flow to this node, with the bytes that go there in a step on each QP. A ring
/// passes each of its chunks on to all other nodes to sum it, and to all again with the sum (P. Patarasuk and X. Yuan,
/// Bandwidth optimal all-reduce algorithms, 2009).
fn of_step(settings: &Settings, nodes: u32, to: u32) -> (u32, Settings) {
    let (steps, bytes) = match &settings.pattern {
        _ if !settings.lock_step => return (0, settings.clone()),
        Some(Pattern::Ring) => {
            (2 * nodes.saturating_sub(1).max(1), settings.size_bytes / nodes.max(1))
        }
        _ => (1, settings.split.bytes_for(settings.size_bytes, to, nodes)),
    };
    (steps, Settings { size_bytes: (bytes / settings.qps.max(1)).max(1), ..settings.clone() })
}

fn name_of(names: &[String], node: u32) -> &str {
    names.get(node as usize).map_or("", String::as_str)
}

/// Gives a flow the defaults where what was asked for has no effect on it, also since something else had none. `own` are
/// its own settings; `axes` are those above it, of which `is_needed` tells those that have an effect on some flow.
fn keep_what_matters(
    settings: &mut Settings,
    own: &mut [Axis],
    axes: &mut [Axis],
    is_needed: &mut [bool],
) {
    let mut left: Vec<(&mut Axis, Option<&mut bool>)> = Vec::new();
    for (axis, is_axis_needed) in axes.iter_mut().zip(is_needed) {
        if own.iter().any(|it| it.row.flag == axis.row.flag) {
            let why = "since every [[flow]] has its own";
            axis.why_not = axis.why_not.or(Some(why));
        } else {
            left.push((axis, Some(is_axis_needed)));
        }
    }
    left.extend(own.iter_mut().map(|axis| (axis, None)));
    let usual = Settings::unfitted();
    loop {
        let (requested, before) = (settings.clone(), left.len());
        left.retain_mut(|(axis, _)| {
            let has_effect = axis.has_effect(&requested);
            if !has_effect {
                axis.row.copy(settings, &usual);
            }
            has_effect
        });
        if left.len() == before {
            break;
        }
    }
    for (axis, is_axis_needed) in left {
        axis.is_used = true;
        if let Some(is_axis_needed) = is_axis_needed {
            *is_axis_needed = true;
        }
    }
    settings.fit();
}

/// A flow by the numbers of its nodes: from, to.
type Link = (u32, u32);

/// Rounds of flows, one after the other, with the settings of one case; of all patterns but pairs there is one.
///
/// # Errors
/// A node that is none, more senders or receivers than there are, a pattern that these nodes have not, or too many flows.
fn rounds_of(
    pattern: &Pattern,
    settings: &Settings,
    nodes: &Nodes,
) -> Result<Vec<Vec<Link>>, PlanError> {
    let count = u32::try_from(nodes.count()).unwrap_or(u32::MAX);
    let one = match pattern {
        Pattern::Pairs => return Ok(tournament(count, settings.bidirectional)),
        Pattern::Ring => (0..count).map(|node| (node, further(count, node, 1))).collect(),
        Pattern::Loop => (0..count).map(|node| (node, node)).collect(),
        Pattern::Incast(name) => {
            let to = node_of(name.as_deref(), nodes)?;
            let senders = fan("fan-in", settings.fan_in, pattern, nodes)?;
            (1..=senders).map(|step| (further(count, to, step), to)).collect()
        }
        Pattern::Outcast(name) => {
            let from = node_of(name.as_deref(), nodes)?;
            let receivers = fan("fan-out", settings.fan_out, pattern, nodes)?;
            (1..=receivers).map(|step| (from, further(count, from, step))).collect()
        }
        Pattern::AllToAll => {
            let flows = u64::from(count) * u64::from(count.saturating_sub(1));
            if flows > MOST_FLOWS as u64 {
                let flows = usize::try_from(flows).unwrap_or(usize::MAX);
                return Err(PlanError::TooManyFlows { flows });
            }
            // Step by step, so that the flows of a node do not stand together.
            (1..count)
                .flat_map(|step| (0..count).map(move |node| (node, further(count, node, step))))
                .collect()
        }
        Pattern::Bisection => {
            if count % 2 == 1 {
                return Err(PlanError::OddNodes { nodes: nodes.count() });
            }
            let half = count / 2;
            (0..count).map(|node| (node, further(count, node, half))).collect()
        }
    };
    Ok(vec![one])
}

/// The node so many places further around the ring.
fn further(count: u32, node: u32, step: u32) -> u32 {
    (node + step) % count
}

/// The number of the node that a pattern names; the first one where it names none.
fn node_of(name: Option<&str>, nodes: &Nodes) -> Result<u32, PlanError> {
    let Some(name) = name else { return Ok(0) };
    nodes.number(name).map_err(|nearest| PlanError::UnknownNode {
        key: "pattern",
        name: name.to_owned(),
        nearest,
        names: nodes.names_in_short(),
    })
}

/// So many others, as asked for, or all.
fn fan(
    flag: &'static str,
    requested: Option<u32>,
    pattern: &Pattern,
    nodes: &Nodes,
) -> Result<u32, PlanError> {
    let others = u32::try_from(nodes.count().saturating_sub(1)).unwrap_or(u32::MAX);
    match requested {
        Some(value) if value > others => {
            Err(PlanError::FanTooWide { flag, value, others, pattern: pattern.word() })
        }
        requested => Ok(requested.unwrap_or(others)),
    }
}

/// Each node to each other one, once, in rounds in which no node has more than one flow: the rounds of a tournament by
/// the circle method (T. P. Kirkman, 1847), each of them there and back. With an odd number one node has a rest in
/// each. Where a flow has traffic both ways there is no way back.
fn tournament(count: u32, are_both_ways: bool) -> Vec<Vec<Link>> {
    let seats = count.next_multiple_of(2);
    let mut rounds = Vec::new();
    for round in 0..seats.saturating_sub(1) {
        let there: Vec<Link> = (0..seats / 2)
            .map(|seat| (seated(seats, round, seat), seated(seats, round, seats - 1 - seat)))
            .filter(|(one, other)| *one.max(other) < count)
            .collect();
        let back = there.iter().map(|(from, to)| (*to, *from)).collect();
        rounds.push(there);
        if !are_both_ways {
            rounds.push(back);
        }
    }
    rounds
}

/// The last seat stays, and the others turn around it.
fn seated(seats: u32, round: u32, seat: u32) -> u32 {
    if seat == seats - 1 { seat } else { (seat + round) % (seats - 1) }
}

#[cfg(test)]
#[path = "matrix_tests.rs"]
mod tests;
