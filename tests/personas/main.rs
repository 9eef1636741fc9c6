//! The first day with an adapter: what the program says of it and does with it, for each table of `null-verbs/personas`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod kinds_of_2026;
mod networks;
mod path_events;
mod ping_pong;
mod rails;

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use machine::threads::CoreLocks;
use node::resources::{NodeOptions, PortRequest, Route};
use protocol::handshake::Approach;
use protocol::node_report::State;
use results::model::Host;
use rocebench::doctor::examine::ExaminationEvent;
use rocebench::doctor::{Examination, Finding, Inventory, Machine, examine, text as doctor_text};
use testing::null_library::{PersonaMachine, persona};

/// What `devices` and `doctor` print, without what is of the machine that runs this.
fn first_day(persona: &PersonaMachine) -> String {
    let machine = || Machine::below(persona.root());
    let request = PortRequest::default();
    let loopback = "127.0.0.1".parse().unwrap();
    let route = Route::between(loopback, loopback);
    let mut text = format!("{}\n\nrocebench devices\n", persona.about());
    match Inventory::read(&machine(), persona.library(), &request, route) {
        Ok(mut inventory) => {
            inventory.devices.retain(|device| !device.is_embedded());
            inventory.host = Host::default();
            text += &doctor_text::inventory_text(&inventory, None);
        }
        Err(error) => writeln!(text, "{error}").unwrap(),
    }
    let locks = tempfile::tempdir().unwrap();
    let examination = Examination {
        machine: machine(),
        resources: NodeOptions {
            library: persona.library(),
            core_locks: CoreLocks::within(locks.path().to_owned()),
            ..NodeOptions::system(request, None)
        },
        host: None,
        port: 18515,
        token: None,
        approach: Approach::default(),
    };
    text += "\nrocebench doctor\n";
    // The rest is of the machine.
    let of_adapter = |finding: &Finding| {
        let is_chosen = ["device used", "services", "extended verbs"].contains(&&*finding.check)
            || finding.check.starts_with("GPU");
        is_chosen || finding.subject.is_some() && finding.check != "NUMA"
    };
    examine(
        &examination,
        &AtomicBool::new(false),
        &mut |event: ExaminationEvent<'_>| match event {
            ExaminationEvent::Finding(finding) if !of_adapter(finding) => {}
            ExaminationEvent::Section(_) => {}
            // Without the numbers of its QP and its peer's port.
            ExaminationEvent::Finding(finding)
                if finding.check == "transfer" && finding.state == State::Broken =>
            {
                let remedy = finding.remedy.as_deref().unwrap_or_default();
                writeln!(text, "broken   {}\n  try: {remedy}", finding.label()).unwrap();
            }
            event => text += &doctor_text::event_lines(&event, false, usize::MAX),
        },
    )
    .unwrap();
    text
}

#[test]
fn the_first_day_of_each() {
    for name in PersonaMachine::names() {
        let persona = persona(name);
        insta::assert_snapshot!(name, first_day(&persona));
    }
}
