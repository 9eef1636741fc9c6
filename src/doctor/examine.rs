//! The whole examination in order: this machine, the other end if there is one, then transfers. A node that is one of many
//! tells what its own checks find and the facts that are compared.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::AtomicBool;

use machine::threads;
use node::{outcome, ports::agree, resources::NodeOptions};
use plan::FlowDevice;
use protocol::{
    handshake::Approach,
    link::Link,
    node_report::{Check, Finding, NodeExamination, State},
    token::Token,
};
use results::model::{Device, Host, Tool};
use serde::Serialize;
use verbs::{Port, PortRequest, Route, VerbsError, select_or_embedded};

use super::checks::{SETUP_RXE, Subject};
use super::inventory::{Choice, EMBEDDED, Inventory, NoChoice, SCHEMA_VERSION};
use super::machine::Machine;
use super::peer::TransferCheck;
use super::{checks, peer};
use crate::coordinator::interface::{Target, tool};

const DEVICE: Check =
    Check::new("device used", "all traffic uses this port and GID; -d, -i and -x choose others");

const SERVICES: Check =
    Check::new("services", "each QP uses one of them (--service); a sweep with another is refused");

const EXTENDED: Check = Check::new(
    "extended verbs",
    "--post extended, --poll-api extended, --domains thread and --timestamps device need \
     them; a sweep with one that is missing is refused",
);

pub struct Examination {
    pub machine: Machine,
    /// This end: its verbs library and the requested port.
    pub resources: NodeOptions,
    /// The other end's host; `None` is this machine.
    pub host: Option<String>,
    /// TCP port of the control connection.
    pub port: u16,
    /// The token shared with the server.
    pub token: Option<Token>,
    /// How the server is reached.
    pub approach: Approach,
}

/// The result of an examination.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub schema_version: u32,
    pub tool: Tool,
    /// When, RFC 3339 in UTC.
    pub started_at: String,
    pub host: Host,
    /// The other end, as `host:port`; `null` without one.
    pub target: Option<String>,
    /// The port and GID that rocebench used.
    pub choice: Option<Choice>,
    pub findings: Vec<Finding>,
    /// Whether the user stopped it.
    pub interrupted: bool,
}

/// An event of an examination.
pub enum ExaminationEvent<'a> {
    /// The heading of the findings that follow.
    Section(&'a str),
    Finding(&'a Finding),
}

impl Report {
    /// How many findings have this state.
    pub fn count(&self, state: State) -> usize {
        self.findings.iter().filter(|finding| finding.state == state).count()
    }
}

/// Collects the findings, and reports each to a listener.
struct ReportBuilder<'a> {
    report: Report,
    tell: &'a mut dyn FnMut(ExaminationEvent<'_>),
}

impl ReportBuilder<'_> {
    fn section(&mut self, text: &str) {
        (self.tell)(ExaminationEvent::Section(text));
    }

    fn add(&mut self, findings: impl IntoIterator<Item = Finding>) {
        for finding in findings {
            (self.tell)(ExaminationEvent::Finding(&finding));
            self.report.findings.push(finding);
        }
    }
}

/// Examines, and reports each finding as it is made.
///
/// # Errors
/// The request names a device or GID that does not exist.
pub fn examine(
    examination: &Examination,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(ExaminationEvent<'_>),
) -> Result<Report, VerbsError> {
    let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
    let within_host = Route::between(loopback, loopback);
    let request = &examination.resources.request;
    let mut inventory =
        Inventory::read(&examination.machine, examination.resources.library, request, within_host)?;
    let only_embedded = match &request.device {
        Some(name) => inventory.keep_only(name),
        None => false,
    };
    let mut builder = ReportBuilder {
        report: Report {
            schema_version: SCHEMA_VERSION,
            tool: tool(),
            started_at: results::utc_now(),
            host: inventory.host.clone(),
            target: examination.host.as_ref().map(|host| target_text(host, examination.port)),
            choice: None,
            findings: Vec::new(),
            interrupted: false,
        },
        tell,
    };
    let name = inventory.host.hostname.clone();
    builder.section(&format!("this machine, {name}"));
    builder.add(checks::run_all(&Subject {
        machine: &examination.machine,
        inventory: &inventory,
        control_port: examination.port,
        only_embedded,
    }));
    match &examination.host {
        None => {
            let device = device_used(&inventory.choice, inventory.no_choice.as_ref());
            builder.add([device]);
            builder.add(inventory.choice.as_ref().map(services));
            builder.add(inventory.choice.as_ref().map(extended_verbs));
            builder.report.choice = inventory.choice;
            if builder.report.choice.is_some() {
                builder.section("transfers between two ends on this machine");
                transfers(examination, Target::Local, &mut builder, stop);
            }
        }
        Some(host) => other_end(examination, host, &mut builder, stop),
    }
    Ok(builder.report)
}

/// `host:port`, with an IPv6 address in brackets.
fn target_text(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn other_end(
    examination: &Examination,
    host: &str,
    builder: &mut ReportBuilder<'_>,
    stop: &AtomicBool,
) {
    builder.section(&format!("the other end, {}", target_text(host, examination.port)));
    let facts = serde_json::to_value(&builder.report.host).unwrap_or_default();
    let reached = match peer::reach(host, examination, &facts, stop) {
        Ok(reached) => reached,
        Err(unreached) => {
            builder.report.interrupted = unreached.interrupted;
            builder.add([unreached.finding]);
            return;
        }
    };
    builder.add(reached.findings);
    let (choice, no_choice) =
        match choose(&examination.resources, &reached.link, reached.route, stop) {
            Ok(choice) => (Some(choice), None),
            Err(error) => (None, Some(NoChoice::from(error))),
        };
    Link::part([&reached.link], stop);
    builder.add([device_used(&choice, no_choice.as_ref())]);
    builder.add(choice.as_ref().map(services));
    builder.add(choice.as_ref().map(extended_verbs));
    builder.report.choice = choice;
    if builder.report.choice.is_none() {
        return;
    }
    builder.section("transfers with it");
    let target = Target::Remote(host.to_owned(), examination.port);
    transfers(examination, target, builder, stop);
}

/// The choice of a run with the other end.
fn choose(
    resources: &NodeOptions,
    link: &Link,
    route: Route,
    stop: &AtomicBool,
) -> Result<Choice, VerbsError> {
    let mut port = select(resources, route)?;
    // If the other end cannot serve, the transfers say why.
    let network = agree(link, &port, stop).ok().flatten();
    if network.is_some() {
        port = select(resources, Route { network, ..route })?;
    }
    Ok(Choice::new(&port))
}

fn select(resources: &NodeOptions, route: Route) -> Result<Port, VerbsError> {
    select_or_embedded(resources.library, &resources.request, Some(route))
}

pub(super) fn device_used(choice: &Option<Choice>, no_choice: Option<&NoChoice>) -> Finding {
    let Some(choice) = choice else {
        let because = no_choice.map_or("none could be opened", |it| it.because.as_str());
        let remedy = no_choice.and_then(|it| it.remedy.as_deref());
        return DEVICE.broken(because, remedy.unwrap_or(SETUP_RXE));
    };
    let gid = match choice.gid_index {
        Some(index) => format!("; GID index {index}: {}", choice.gid_because),
        None => String::new(),
    };
    let found = format!("{} port {}: {}{gid}", choice.device, choice.port, choice.device_because);
    if choice.is_in_place_of_another {
        // Figures of it are not the adapter's.
        DEVICE.warning(
            found,
            "fix the adapter's port, or give --device soft0: its figures are this machine's, not the adapter's",
        )
    } else {
        DEVICE.ok(found)
    }
}

/// Not a problem: most adapters lack one, and a sweep of it is refused.
fn services(choice: &Choice) -> Finding {
    let found =
        if choice.lacks.is_empty() { "RC, UC and UD".to_owned() } else { choice.lacks.join("; ") };
    SERVICES.ok(found)
}

/// Not a problem: every sweep without those options runs on a device that has none of them.
fn extended_verbs(choice: &Choice) -> Finding {
    let found = if choice.extended_verbs.is_empty() {
        "none".to_owned()
    } else {
        choice.extended_verbs.join(", ")
    };
    EXTENDED.ok(found)
}

fn transfers(
    examination: &Examination,
    target: Target,
    builder: &mut ReportBuilder<'_>,
    stop: &AtomicBool,
) {
    let is_remote = matches!(target, Target::Remote(..));
    let transfer = TransferCheck {
        target,
        resources: &examination.resources,
        token: examination.token.as_ref(),
        service: match &builder.report.choice {
            Some(choice) if choice.needs_uc => "uc",
            _ => "rc",
        },
        stop,
    };
    let done = transfer.run();
    builder.report.interrupted |= done.interrupted;
    builder.add(done.findings);
    if let (true, Some(result)) = (is_remote, &done.result) {
        builder.add(peer::path_mtu(result, done.full_packets_passed));
    }
}

/// Examines this machine as a node whose device is asked for by `options`, or is `device`, and whose control connection
/// runs along `route` to the port `control_port`.
pub fn examine_node(
    machine: &Machine,
    options: &NodeOptions,
    route: Route,
    device: Option<&FlowDevice>,
    control_port: u16,
) -> NodeExamination {
    let request = match device {
        Some(device) => PortRequest {
            device: Some(device.name.clone()),
            ib_port: device.ib_port,
            gid_index: None,
            ..options.request.clone()
        },
        None => options.request.clone(),
    };
    let mut examination = NodeExamination {
        usable_cores: threads::allowed_cores()
            .ok()
            .and_then(|cores| u32::try_from(cores.len()).ok()),
        locked_memory: checks::locked_memory(machine),
        clock_is_kept: clock_is_kept(machine),
        ..NodeExamination::default()
    };
    let mut inventory = match Inventory::read(machine, options.library, &request, route) {
        Ok(inventory) => inventory,
        Err(error) => {
            note_no_device(&mut examination, error);
            return examination;
        }
    };
    let only_embedded = match &request.device {
        Some(name) => inventory.keep_only(name),
        None => false,
    };
    examination.findings =
        checks::run_all(&Subject { machine, inventory: &inventory, control_port, only_embedded });
    match select_or_embedded(options.library, &request, Some(route)) {
        Ok(port) => {
            let own = with_interface(outcome::device(&port), &inventory);
            if let Some(netdev) = &own.netdev {
                examination.lossless = checks::lossless(machine, (&own.name, own.port), netdev);
            }
            examination.device = Some(own);
        }
        Err(error) => note_no_device(&mut examination, error),
    }
    examination
}

fn note_no_device(examination: &mut NodeExamination, error: VerbsError) {
    examination.no_device = Some(error.to_string());
    let no_choice = NoChoice::from(error);
    examination.findings.push(device_used(&None, Some(&no_choice)));
}

/// With the interface below an embedded device, which the kernel does not tell.
fn with_interface(mut device: Device, inventory: &Inventory) -> Device {
    let entry = inventory
        .devices
        .iter()
        .find(|entry| entry.name == device.name && entry.library == device.library);
    let ports = entry.into_iter().flat_map(|entry| &entry.ports);
    if let Some(port) = ports.into_iter().find(|port| port.port == device.port) {
        device.netdev = device.netdev.or_else(|| port.netdev.clone());
        device.netdev_mtu_bytes = device.netdev_mtu_bytes.or(port.netdev_mtu_bytes);
        if device.library == EMBEDDED {
            // It has no link with a meaningful speed.
            (device.link_gbit_per_s, device.width_lanes) = (None, None);
        }
    }
    device
}

/// Whether the kernel counts the clock as synchronised (`timedatectl`), or whoever keeps it says so.
fn clock_is_kept(machine: &Machine) -> Option<bool> {
    let arguments = ["show", "--property=NTPSynchronized", "--value"];
    match machine.tool("timedatectl", &arguments).as_deref().map(str::trim) {
        Some("yes") => return Some(true),
        Some("no") => return Some(false),
        _ => {}
    }
    if let Some(tracking) = machine.tool("chronyc", &["-n", "tracking"]) {
        let leap = tracking.lines().find(|line| line.starts_with("Leap status"));
        return leap.map(|line| !line.contains("Not synchronised"));
    }
    machine.has("run/systemd/timesync/synchronized").then_some(true)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::super::machine::made_up::Tree;
    use super::*;

    #[test]
    fn targets_are_written_as_they_are_given() {
        assert_eq!(target_text("node1", 18515), "node1:18515");
        assert_eq!(target_text("2001:db8::1", 99), "[2001:db8::1]:99");
    }

    #[test]
    fn no_device_at_all_is_broken() {
        let taken =
            NoChoice { because: "UDP port 4791 is taken".into(), remedy: Some("end it".into()) };
        let found = device_used(&None, Some(&taken));
        assert_eq!(found.state, State::Broken);
        assert_eq!(found.found, "UDP port 4791 is taken");
        assert_eq!(found.remedy.as_deref(), Some("end it"));
    }

    #[test]
    fn a_clock_is_kept_where_something_says_so() {
        let tree = Tree::new(&[]);
        assert_eq!(clock_is_kept(&tree.machine), None);
        tree.add("run/systemd/timesync", &[("synchronized", "")]);
        assert_eq!(clock_is_kept(&tree.machine), Some(true));
        let unsynchronised = "Leap status     : Not synchronised\n";
        for (program, output, kept) in [
            ("timedatectl", "no\n", Some(false)),
            ("timedatectl", "yes\n", Some(true)),
            ("chronyc", "Leap status     : Normal\n", Some(true)),
            ("chronyc", unsynchronised, Some(false)),
        ] {
            let other = Tree::new(&[]).with_tools(move |name: &str, _: &[&str]| {
                (name == program).then(|| output.to_owned())
            });
            assert_eq!(clock_is_kept(&other.machine), kept, "{output}");
        }
    }

    #[test]
    fn a_node_without_its_device_says_so_and_tells_the_rest() {
        let request = PortRequest { device: Some("nope".into()), ..PortRequest::default() };
        let options = NodeOptions::system(request, None);
        let route = Route::to(IpAddr::from(Ipv4Addr::LOCALHOST));
        let lacking = examine_node(&Machine::this(), &options, route, None, 18515);
        assert_eq!(lacking.device, None);
        assert!(lacking.no_device.unwrap().contains("nope"));
        assert!(lacking.usable_cores.is_some());
        assert_eq!(lacking.findings.last().unwrap().check, "device used");
        let embedded = FlowDevice { name: "soft0".into(), ib_port: None };
        let found = examine_node(&Machine::this(), &options, route, Some(&embedded), 18515);
        let device = found.device.unwrap();
        let names = (&*device.name, device.netdev.as_deref());
        assert_eq!(names, ("soft0", Some("lo")));
    }
}
