//! Several flows at once over several devices: of two nodes, and in a ring of three.

use results::model::FlowConfig;

use testing::program::{SERVER_ADDRESS, Server, sweep};

fn devices(flow: &FlowConfig) -> [&str; 2] {
    [&flow.from_device, &flow.to_device].map(|device| device.as_deref().unwrap())
}

#[test]
fn two_devices_at_each_node() {
    let server = Server::start();
    let config = "iters = 50\nwarmup = '0s'\nqps = 2\nsize = '8K'\ntx-depth = 8\n\
         [[flow]]\nname = 'own'\nop = 'write'\n\
         [[flow]]\nname = 'others'\nop = 'read'\nfrom-device = 'rxe1'\nto-device = 'rxe0'\n\
         [[flow]]\nname = 'back'\nop = 'send'\nfrom = 'server'\nto = 'client'\nto-device = 'rxe0'\n";
    let call = server.call("--config flows.toml --verify --workers 2");
    let result = call.with_file("flows.toml", config).is_whole(1).result();
    let flows = result.cases[0].config.flows.iter().map(devices);
    let wanted = [["rxe0", "rxe1"], ["rxe1", "rxe0"], ["rxe1", "rxe0"]];
    assert_eq!(flows.collect::<Vec<_>>(), wanted);
    for (node, names) in result.nodes.iter().zip(wanted) {
        let used = node.devices.iter().map(|it| &*it.name);
        assert_eq!(used.collect::<Vec<_>>(), names, "{}", node.name);
    }
    server.serves_the_next();
    server.end();
}

/// The flows of a ring go from each of three servers to the next.
#[test]
fn three_servers_in_a_ring() {
    let servers = [
        Server::start(),
        Server::on("192.0.2.1", "rxe0", ""),
        Server::on(SERVER_ADDRESS, "rxe1", ""),
    ];
    let names = servers.each_ref().map(|server| server.name.clone());
    let how = "--verify --connect tcp,cm --op send -n 40 --warmup 0 -q 3 -s 4K -t 8";
    let line = format!("--nodes {} --config flows.toml {how}", names.join(","));
    let call = sweep(&line).with_file(
        "flows.toml",
        &[0, 1, 2]
            .map(|from| {
                let (from, to) = (&names[from], &names[(from + 1) % 3]);
                format!("[[flow]]\nfrom = '{from}'\nto = '{to}'\n")
            })
            .concat(),
    );
    let result = call.is_whole(2).result();
    let of_result: Vec<&str> = result.nodes.iter().map(|node| &*node.name).collect();
    assert_eq!(of_result, names);
    for case in &result.cases {
        let flows = case.config.flows.iter().map(devices);
        let wanted = [["rxe1", "rxe0"], ["rxe0", "rxe1"], ["rxe1", "rxe1"]];
        assert_eq!(flows.collect::<Vec<_>>(), wanted, "{}", case.id);
    }
    for server in servers {
        server.end();
    }
}
