//! What is chosen and refused, and what is said of it, on the adapters of `null-verbs/personas`.
#![allow(missing_docs, clippy::unwrap_used)]

use testing::null_library::persona;
use verbs::{
    Adapters, Network, Port, PortReason, PortRequest, Route, VerbsError, VerbsLibrary, select,
    select_or_embedded,
};

fn port_request(device: Option<&str>, gid_index: Option<u8>) -> PortRequest {
    PortRequest { device: device.map(str::to_owned), gid_index, ..PortRequest::default() }
}

#[test]
fn the_speed_is_of_the_best_source_and_not_the_clamped_code_or_one_member_of_a_bond() {
    for (name, gbit_per_s) in [
        ("connectx6dx", 100.0),
        ("connectx7", 400.0),
        ("connectx7_bond", 200.0),
        ("connectx8_xdr", 800.0),
        ("infiniband_ndr", 400.0),
        ("thor2", 400.0),
        ("siw", 10.0),
    ] {
        let machine = persona(name);
        let adapters = Adapters::open(machine.library(), None).unwrap();
        let speed = adapters.opened[0].ports[0].info.link_gbit_per_s;
        assert_eq!(speed, Some(gbit_per_s), "{name}");
    }
}

#[test]
fn a_code_that_stands_for_several_speeds_is_no_speed() {
    let machine = persona("connectx7");
    let library =
        Box::leak(Box::new(VerbsLibrary { root: "/there/is/no/sysfs", ..*machine.library() }));
    let adapters = Adapters::open(library, None).unwrap();
    let info = &adapters.opened[0].ports[0].info;
    assert_eq!((info.link_gbit_per_s, info.lanes), (None, Some(4)));
}

#[test]
fn roce_comes_before_infiniband_and_a_port_that_does_not_fit_ends_no_search() {
    let machine = persona("mixed");
    let chosen = |device, gid_index| {
        let port = select(machine.library(), &port_request(device, gid_index), None).unwrap();
        (port.context.name().to_owned(), port.gid.map(|entry| entry.index))
    };
    // mlx5_0 may not be opened, mlx5_1 is InfiniBand, mlx5_2 has no IP address, and no such entry.
    assert_eq!(chosen(None, None), ("mlx5_3".into(), Some(3)));
    assert_eq!(chosen(None, Some(3)), ("mlx5_3".into(), Some(3)));
    assert_eq!(chosen(Some("mlx5_2"), None), ("mlx5_2".into(), Some(1)));
    assert_eq!(chosen(Some("mlx5_1"), None), ("mlx5_1".into(), Some(0)));
    let refused =
        select(machine.library(), &port_request(Some("mlx5_0"), None), None).err().unwrap();
    let text = "ibv_open_device failed for mlx5_0: Permission denied (os error 13)";
    assert_eq!(refused.to_string(), text);
    let no_gid = select(machine.library(), &port_request(None, Some(9)), None);
    assert!(matches!(no_gid, Err(VerbsError::NoSuchGid { .. })));
    let inactive = select(machine.library(), &port_request(Some("mlx5_4"), None), None);
    let reason = "no usable RDMA port: mlx5_4 port 1 is INIT: no subnet manager, such as opensm, has set it up";
    assert_eq!(inactive.err().unwrap().to_string(), reason);
}

/// A route from this address with this common network.
fn route(local: &str, network: Option<&str>) -> Option<Route> {
    let network = network.map(|text| text.parse().unwrap());
    let route = Route::to(local.parse().unwrap());
    Some(Route { network, ..route })
}

#[test]
fn the_own_address_comes_before_the_common_network_and_both_before_the_first_port() {
    let machine = persona("rails");
    let network = |text: &str| text.parse::<Network>().unwrap();
    let (first, second) = ("198.51.100.0/24", "203.0.113.0/24");
    let common = PortReason::CommonNetwork(network(second));
    for (local, common_network, chosen) in [
        ("127.0.0.1", None, ("mlx5_0", PortReason::Routable)),
        ("127.0.0.1", Some(second), ("mlx5_1", common)),
        ("127.0.0.1", Some("192.0.2.0/24"), ("mlx5_0", PortReason::Routable)),
        ("203.0.113.10", Some(first), ("mlx5_1", PortReason::OwnAddress)),
    ] {
        let route = route(local, common_network);
        let port = select(machine.library(), &port_request(None, None), route).unwrap();
        let found = (port.context.name(), port.choice.reason);
        assert_eq!(found, chosen, "{local}, {common_network:?}");
        let other = if chosen.0 == "mlx5_0" { "mlx5_1" } else { "mlx5_0" };
        assert_eq!(port.choice.others, [other]);
    }
}

#[test]
fn a_port_may_move_to_the_networks_of_all_that_fit_the_request_unless_it_has_the_own_address() {
    let machine = persona("rails");
    let choose = |request, route| select(machine.library(), &request, route).unwrap();
    let networks = |port: &Port| -> Vec<String> {
        port.choice.networks.iter().map(ToString::to_string).collect()
    };
    let (first, second) = ("198.51.100.0/24", "203.0.113.0/24");
    let free = choose(port_request(None, None), None);
    assert_eq!(networks(&free), [first, second]);
    assert!(free.may_move_to(second.parse().unwrap()));
    assert!(!free.may_move_to(first.parse().unwrap()), "it is there");
    assert!(!free.may_move_to("192.0.2.0/24".parse().unwrap()));
    assert_eq!(
        networks(&choose(port_request(None, None), route("127.0.0.1", Some(second)))),
        [second, first]
    );
    assert_eq!(networks(&choose(port_request(Some("mlx5_1"), None), None)), [second]);
    assert_eq!(networks(&choose(port_request(None, None), route("203.0.113.10", None))), [second]);
    // RoCE v1 has no IP network, and neither has an address without a prefix.
    assert!(networks(&choose(port_request(None, Some(2)), None)).is_empty());
    let library = Box::leak(Box::new(VerbsLibrary { prefixes: Vec::new, ..*machine.library() }));
    let unknown = select(library, &port_request(None, None), None).unwrap();
    assert!(networks(&unknown).is_empty());
}

#[test]
fn a_choice_is_told_in_a_line_and_nothing_is_told_where_there_was_none() {
    let machine = persona("mixed");
    let line = |device| {
        let port = select(machine.library(), &port_request(device, None), None).unwrap();
        port.choice_line()
    };
    let text = "mlx5_3 port 1 (192.0.2.10): it is the first active port with a RoCE v2 GID that is not link-local; \
                not mlx5_2, mlx5_1";
    assert_eq!(line(None).unwrap(), text);
    assert_eq!(line(Some("mlx5_1")), None);
    let with_one_port = persona("connectx7");
    let port = select(with_one_port.library(), &port_request(None, None), None).unwrap();
    assert_eq!(port.choice_line(), None);
    assert_eq!(port.choice.networks, ["192.0.2.0/24".parse().unwrap()]);
}

#[test]
fn gids_of_another_network_namespace_are_not_taken() {
    let machine = persona("connectx7_container");
    let port = select(machine.library(), &port_request(None, None), None).unwrap();
    let indices: Vec<_> = port.gids.iter().map(|entry| entry.index).collect();
    assert_eq!((indices, port.gid.unwrap().index), (vec![4, 5, 6, 7], 7));
}

#[test]
fn a_grh_is_used_where_the_port_requires_one() {
    for (name, wants_grh) in [("infiniband_ndr", false), ("infiniband_grh", true)] {
        let machine = persona(name);
        let port = select(machine.library(), &port_request(None, None), None).unwrap();
        assert_eq!((port.wants_grh, port.gid.is_some()), (wants_grh, true));
    }
}

#[test]
fn another_transport_is_named_as_what_it_is() {
    for (name, transport) in [
        ("irdma_iwarp", "irdma0 has iWARP"),
        ("siw", "siw0 has iWARP"),
        ("efa", "rdmap115s0 has SRD (EFA)"),
    ] {
        let machine = persona(name);
        let error = select(machine.library(), &port_request(None, None), None);
        let text =
            format!("no usable RDMA port: {transport}, but rocebench needs RoCE or InfiniBand");
        assert_eq!(error.err().unwrap().to_string(), text);
        let port = select_or_embedded(machine.library(), &port_request(None, None), None).unwrap();
        assert!(port.embedded.unwrap().is_in_place_of_others);
    }
}

#[test]
fn services_without_qps_are_known_before_a_run() {
    for (name, lacks) in [
        ("connectx7", vec![]),
        ("thor2", vec![("UC", libc::EINVAL)]),
        ("hns", vec![("UC", libc::EOPNOTSUPP)]),
        ("mana", vec![("UC", libc::EOPNOTSUPP), ("UD", libc::EOPNOTSUPP)]),
    ] {
        let machine = persona(name);
        let port = select(machine.library(), &port_request(None, None), None).unwrap();
        let refused: Vec<_> = port
            .adapter
            .refused_services()
            .iter()
            .map(|(service, error)| match error {
                VerbsError::Call { source, .. } => (service.name(), source.raw_os_error().unwrap()),
                other => unreachable!("{other}"),
            })
            .collect();
        assert_eq!(refused, lacks, "{name}");
    }
}

/// As with a library that is preloaded before libibverbs, and has QPs of its own.
#[test]
fn extended_verbs_of_contexts_whose_qps_are_anothers_are_not_used() {
    let embedded = VerbsLibrary::embedded();
    let system = VerbsLibrary::system();
    let overlaid = VerbsLibrary { create_qp: system.create_qp, ..*embedded };
    for (library, has_some) in [(embedded, true), (Box::leak(Box::new(overlaid)), false)] {
        let adapters = Adapters::open(library, Some("soft0")).unwrap();
        assert_eq!(adapters.opened[0].extensions().extended_poll, has_some);
    }
}
