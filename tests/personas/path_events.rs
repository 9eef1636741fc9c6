//! What the counters of each driver say of a run: they grow in the machine's files while it runs, each by the same.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use machine::threads::CoreLocks;
use metrics::counters::{CounterWatch, Reading, why_loss_is_unknown};
use node::resources::{NodeOptions, PortRequest};
use plan::{Nodes, Sweep};
use results::model::{Device, PathEventKind};
use rocebench::coordinator::interface::Observer;
use rocebench::coordinator::interface::{Ends, SweepOptions, Target};
use rocebench::coordinator::sweep::run_sweep;
use settings::Given;
use testing::null_library::{PersonaMachine, persona};

/// By how much each counter grows.
const STEP: u64 = 10;

/// A machine, and how its driver's counters are before.
struct Planted {
    persona: &'static str,
    /// What it is besides the adapter of the table.
    variant: &'static str,
    /// Counters of the driver's other adapters and releases.
    others: &'static [&'static str],
    /// Those that begin near the end of 32 bits, by the beginning of their names. The others begin at 0.
    near_the_end: &'static [&'static str],
}

/// The adapter of the table.
const fn usual(persona: &'static str) -> Planted {
    Planted { persona, variant: "", others: &[], near_the_end: &[] }
}

/// Those with which rocebench runs.
const RUN: [Planted; 11] = [
    usual("connectx7"),
    Planted {
        variant: ", the Q counters wrap",
        near_the_end: &["rx_write", "out_of", "packet_seq", "roce_", "local_ack", "req_"],
        ..usual("connectx7")
    },
    usual("thor2"),
    Planted {
        variant: ", and older names",
        others: &[
            "oos_drop_count",
            "seq_err_naks_rcvd",
            "missing_resp",
            "to_retransmits",
            "dup_req",
            "rnr_naks_rcvd",
            "rx_out_of_buffer",
        ],
        ..usual("thor2")
    },
    usual("irdma_roce"),
    Planted {
        variant: ", and counters of later adapters",
        others: &[
            "Rcvd Out of order packets",
            "Nak Sequence Error",
            "Nak Sequence Error Implied",
            "RTO",
            "RNR sent",
            "RNR received",
            "CRC errors",
        ],
        ..usual("irdma_roce")
    },
    usual("hns"),
    usual("mana"),
    usual("ionic"),
    usual("qedr"),
    usual("connectx7_container"),
];

/// Those that it only knows.
const KNOWN: [Planted; 2] = [usual("efa"), usual("erdma")];

#[test]
fn runs_tell_what_each_drivers_counters_mean() {
    let texts: Vec<String> = RUN.iter().map(of_run).chain(KNOWN.iter().map(of_watch)).collect();
    insta::assert_snapshot!(texts.join("\n"));
}

impl Planted {
    fn machine(&self) -> (PersonaMachine, Counters) {
        let machine = persona(self.persona);
        let device = folder_of_device(&machine);
        let port = device.join("ports/1");
        let is_near = |name: &str| self.near_the_end.iter().any(|it| name.starts_with(it));
        let mut counters = Counters(Vec::new());
        for folder in [port.join("hw_counters"), device.join("hw_counters"), port.join("counters")]
        {
            for name in fs::read_dir(&folder)
                .into_iter()
                .flatten()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter(|name| name != "lifespan")
            {
                let (before, after) =
                    if is_near(&name) { (u64::from(u32::MAX) - 5, STEP - 6) } else { (0, STEP) };
                counters.0.push((folder.join(name), before, after));
            }
        }
        let others = self.others.iter();
        let folder = port.join("hw_counters");
        counters.0.extend(others.map(|name| (folder.join(name), 0, STEP)));
        counters.write(|before, _| before);
        (machine, counters)
    }

    fn head(&self, machine: &PersonaMachine) -> String {
        format!("{}{}\n", machine.about(), self.variant)
    }
}

/// Files of counters, with their values before and after.
struct Counters(Vec<(PathBuf, u64, u64)>);

impl Counters {
    fn write(&self, value: impl Fn(u64, u64) -> u64) {
        for (path, before, after) in &self.0 {
            // Whole or not at all, as a file of the kernel is.
            let next = path.ancestors().nth(2).unwrap().join("next");
            fs::write(&next, format!("{}\n", value(*before, *after))).unwrap();
            fs::rename(next, path).unwrap();
        }
    }

    fn grow(&self) {
        self.write(|_, after| after);
    }
}

/// What a run says, from the second node to the first: that one's window ends with the other's, when the coordinator says so.
fn of_run(planted: &Planted) -> String {
    let (machine, counters) = planted.machine();
    let given = Given::from([
        ("op", "write"),
        ("size", "64"),
        ("tx-depth", "4"),
        ("iters", "10"),
        ("warmup", "0"),
    ]);
    let mut sweep = Sweep::with_flows(&given, &[], Nodes::TwoEnds).unwrap();
    let flow = &mut sweep.cases[0].flows[0];
    std::mem::swap(&mut flow.from, &mut flow.to);
    let locks = tempfile::tempdir().unwrap();
    let resources = NodeOptions {
        library: machine.library(),
        core_locks: CoreLocks::within(locks.path().to_owned()),
        ..NodeOptions::system(PortRequest::default(), None)
    };
    let options = SweepOptions::new(sweep, Ends::new(Target::Local, resources));
    let outcome = run_sweep(&options, &AtomicBool::new(false), &mut Grower(counters));
    let result = outcome.unwrap_or_else(|error| panic!("{error}")).result;
    let run = &result.cases[0].runs[0];
    assert!(run.complete, "{}: {:?}", planted.persona, run.failure);
    let mut text = planted.head(&machine);
    text += &of_device(&result.nodes[0].devices[0]);
    for event in &run.path_events {
        assert_eq!(event.node, "client");
        text += &line(event.kind, event.count, &event.counters);
    }
    for unknown in &run.loss_unknown {
        text += &format!("  loss unknown at {}: {}\n", unknown.node, unknown.words());
    }
    text
}

/// What a watch of the counters says.
fn of_watch(planted: &Planted) -> String {
    let (machine, counters) = planted.machine();
    let name = folder_of_device(&machine).file_name().unwrap().to_owned().into_string().unwrap();
    let root = machine.root().to_owned();
    let driver = verbs::kernel_driver(&root, &name);
    let watch = CounterWatch::start(move || Reading::of_kernel(&root, driver.as_deref(), &name, 1))
        .unwrap();
    counters.grow();
    let growth = watch.finish().unwrap();
    let mut text = planted.head(&machine);
    for (kind, (count, names)) in growth.by_meaning() {
        text += &line(kind, count, &names);
    }
    if let Some(reason) = why_loss_is_unknown(Some(growth.last()), false) {
        text += &format!("  loss unknown: its driver {reason}\n");
    }
    text
}

/// Where the kernel's files of its only device are.
fn folder_of_device(machine: &PersonaMachine) -> PathBuf {
    let devices = fs::read_dir(machine.root().join("sys/class/infiniband"));
    devices.unwrap().next().unwrap().unwrap().path()
}

fn line(kind: PathEventKind, count: u64, counters: &[String]) -> String {
    format!("  {}: {count}: {}\n", kind.words(), counters.join(", "))
}

/// The facts that come from the machine's files.
fn of_device(device: &Device) -> String {
    let fact = |what: &str, value: Option<String>| value.map(|it| format!("{what} {it}"));
    let number = |number: Option<u32>| number.map(|it| it.to_string());
    let facts = [
        fact("driver", device.driver.clone()),
        fact("firmware", device.firmware.clone()),
        fact("Gb/s", device.link_gbit_per_s.map(|it| it.to_string())),
        fact("GID", device.gid.clone()),
        fact("type", device.gid_type.clone()),
        fact("on", device.netdev.clone()),
        fact("of MTU", number(device.netdev_mtu_bytes)),
        fact("NUMA node", number(device.numa_node)),
        fact("PCI", device.pci_address.clone()),
        fact("GT/s", device.pci_gtransfer_per_s.map(|it| it.to_string())),
        fact("lanes", number(device.pci_width_lanes)),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    format!("  {}: {}\n", device.name, facts.join(", "))
}

/// Lets the counters grow when all windows are closed and nobody was told to read the end.
struct Grower(Counters);

impl Observer for Grower {
    fn phase(&mut self, name: &str, _: Option<Duration>) {
        if name == "drain" {
            self.0.grow();
        }
    }
}
