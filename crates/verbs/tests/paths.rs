//! What a QP's packets and an MR's writes are like, on the adapters of `null-verbs/personas`.
#![allow(missing_docs, clippy::unwrap_used)]

use std::os::raw::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;

use null_verbs::personas::ALL;
use rdma_sys::{ibv_access_flags, ibv_mr, ibv_pd};
use testing::null_library::{PersonaMachine, persona};
use verbs::{
    Access, Adapters, CompletionQueue, LinkLayer, Mapping, MemoryRegion, Ordering, Path, Place,
    Port, PortRequest, ProtectionDomain, QpCapacity, QueuePair, Registration, Reliability,
    RemoteQp, Transport, VerbsLibrary, select,
};

fn port(machine: &PersonaMachine) -> Port {
    select(machine.library(), &PortRequest::default(), None).unwrap()
}

/// A QP in RTS that is connected with itself.
fn connected(port: &Port, flow_label: u32) -> Arc<QueuePair> {
    let pd = ProtectionDomain::new(&port.context).unwrap();
    let cq = CompletionQueue::new(&port.context, 2).unwrap();
    let capacity = QpCapacity { send_wr: 1, recv_wr: 1, inline_bytes: 0, sges: 1 };
    let qp = QueuePair::new(&pd, &cq, &cq, capacity).unwrap();
    qp.to_init(port.info.port, port.pkey_index, Access::RemoteWrite).unwrap();
    let path = Path {
        port: port.info.port,
        link_layer: port.info.link_layer,
        gid_index: port.gid.map(|entry| entry.index),
        service_level: 0,
        traffic_class: 0,
        flow_label,
        hop_limit: 64,
        mtu_code: Path::mtu_code(1024),
    };
    let remote = RemoteQp { qpn: qp.qpn(), psn: 1, lid: port.info.lid, gid: port.gid.unwrap().gid };
    let reliability = Reliability {
        timeout: 14,
        retry_cnt: 7,
        rnr_retry: 7,
        min_rnr_timer: 12,
        initiator_reads: 1,
        responder_reads: 1,
    };
    qp.to_rtr(&path, &remote, &reliability).unwrap();
    qp.to_rts(1, &reliability).unwrap();
    qp
}

#[test]
fn the_udp_source_port_is_known_where_the_driver_computes_it() {
    for (name, of_label_1) in [
        ("connectx6dx", Some(0xc001)),
        ("connectx7_vf", Some(0xc001)),
        ("irdma_roce", Some(0xc001)),
        ("hns", Some(0xc001)),
        ("mana", Some(0xc001)),
        ("ionic", Some(0xc001)),
        ("thor2", None),
    ] {
        let machine = persona(name);
        let port = port(&machine);
        let udp_port = |label| connected(&port, label).udp_source_port();
        assert_eq!(udp_port(1), of_label_1, "{name}");
        assert_eq!(udp_port(0).is_some(), of_label_1.is_some(), "{name}");
    }
}

#[test]
fn only_mlx5_takes_a_udp_source_port() {
    let machine = persona("connectx7");
    let nvidia = port(&machine);
    let qp = connected(&nvidia, 0);
    qp.set_udp_source_port(50_000).unwrap();
    assert_eq!(qp.udp_source_port(), Some(50_000));
    let other_machine = persona("thor2");
    let error = connected(&port(&other_machine), 0).set_udp_source_port(50_000).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("mlx5dv_modify_qp_udp_sport failed for"), "{text}");
    assert!(error.hint().unwrap().contains("--flow-label"));
}

/// What the drivers are known for is what the adapters' tables say.
#[test]
fn drivers_do_what_their_adapters_tables_say() {
    let mut compared = 0;
    for entry in ALL {
        let machine = persona(entry.name);
        let Ok(adapters) = Adapters::open(machine.library(), None) else {
            continue;
        };
        for adapter in &adapters.opened {
            let Some(driver) = adapter.context.driver() else {
                continue;
            };
            let devices = &(entry.persona)().device;
            let table = devices.iter().find(|device| device.name == adapter.name()).unwrap();
            let name = entry.name;
            assert_eq!(driver.relaxed_ordering, table.relaxed_ordering, "{name}");
            let is_ethernet = adapter.ports[0].info.link_layer == LinkLayer::Ethernet;
            if adapter.transport == Transport::Infiniband && is_ethernet {
                let port = driver.udp_source_port(1, 2, 3);
                assert_eq!(port.is_some(), table.flow_label, "{name}");
                assert_eq!(driver.takes_udp_ports, table.udp_sport.0.is_ok(), "{name}");
            }
            compared += 1;
        }
    }
    assert!(compared >= 15, "{compared}");
}

#[test]
fn a_pkey_is_one_of_the_ports_table() {
    let machine = persona("infiniband_ndr");
    let with = |index| {
        let request = PortRequest { pkey_index: index, ..PortRequest::default() };
        select(machine.library(), &request, None).map(|port| port.pkey_index)
    };
    assert_eq!((with(None).unwrap(), with(Some(5)).unwrap()), (0, 5));
    let refused = with(Some(128)).unwrap_err().to_string();
    let expected = "no usable RDMA port: mlx5_0 port 1 has P_Key indices 0 to 127, not 128";
    assert_eq!(refused, expected);
}

static ACCESS: AtomicI32 = AtomicI32::new(0);

unsafe extern "C" fn remembering(
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    access: c_int,
) -> *mut ibv_mr {
    ACCESS.store(access, Relaxed);
    // SAFETY: forwarded as it came.
    unsafe { null_verbs::reg_mr(pd, address, length, access) }
}

#[test]
fn relaxed_ordering_is_asked_for_where_the_setting_says_so() {
    let machine = persona("connectx7");
    let library = Box::leak(Box::new(VerbsLibrary { reg_mr: remembering, ..*machine.library() }));
    let port = select(library, &PortRequest::default(), None).unwrap();
    let pd = ProtectionDomain::new(&port.context).unwrap();
    let mapping = Mapping::new(4096, Place::Ordinary, None).unwrap();
    let bit = ibv_access_flags::IBV_ACCESS_RELAXED_ORDERING.0.cast_signed();
    for (ordering, is_asked) in [(Ordering::Relaxed, true), (Ordering::Strict, false)] {
        let rights = (Access::RemoteWrite, ordering);
        MemoryRegion::within(&pd, &mapping, (0, 64), rights, Registration::Address).unwrap();
        assert_eq!(ACCESS.load(Relaxed) & bit != 0, is_asked, "{ordering:?}");
    }
}
