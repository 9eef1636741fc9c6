//! Who is at either end: this process, the server at HOST, the servers that are nodes.

use crate::coordinator::interface::{Ends, Target};
use plan::{HostPort, Nodes};

use super::args::{ConnectionArgs, DEFAULT_PORT, EndpointArgs};
use super::endpoint::resources;
use super::terminal::errors::Failure;
use super::token::token;

/// This end, and the one at HOST, or in this process without HOST.
///
/// # Errors
/// Always bad input.
pub(super) fn ends(
    host: Option<HostPort>,
    connection: ConnectionArgs,
    endpoint: EndpointArgs,
) -> Result<Ends, Failure> {
    let target = match server(host, connection.port)? {
        Some((host, port)) => Target::Remote(host, port),
        None => Target::Local,
    };
    Ok(Ends { target, resources: resources(endpoint)?, token: token(connection.token)? })
}

/// Where the servers are that are the nodes, in the nodes' order; those without a port have that of `--port`.
pub(super) fn servers(nodes: &Nodes, port: Option<u16>) -> Result<Vec<(String, u16)>, Failure> {
    let Nodes::Hosts(hosts) = nodes else {
        return Ok(Vec::new());
    };
    let mut servers = Vec::with_capacity(hosts.len());
    for node in hosts {
        let HostPort { host, port: written } = &node.address;
        let server = (host.clone(), written.or(port).unwrap_or(DEFAULT_PORT));
        if servers.contains(&server) {
            let (host, port) = server;
            return Err(Failure::bad_input(format!(
                "two nodes name the same server, {host} at port {port}"
            ))
            .with_hint("start a server for each node, with a --port of its own"));
        }
        servers.push(server);
    }
    Ok(servers)
}

/// Where all nodes are servers, this process has no device and no workers.
pub(super) fn check_has_own_node(nodes: &Nodes, endpoint: &EndpointArgs) -> Result<(), Failure> {
    let options = [
        ("device", endpoint.device.is_some()),
        ("ib-port", endpoint.ib_port.is_some()),
        ("gid-index", endpoint.gid_index.is_some()),
        ("pkey-index", endpoint.pkey_index.is_some()),
        ("faults", endpoint.faults.is_some()),
        ("pcap", endpoint.pcap.is_some()),
        ("cores", endpoint.cores.is_some()),
    ];
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) if matches!(nodes, Nodes::Hosts(_)) => Err(Failure::bad_input(format!(
            "--{flag} applies to this process, which is not in --nodes"
        ))
        .with_hint(format!("give --{flag} to `rocebench serve`, or leave it out"))),
        _ => Ok(()),
    }
}

/// The server that HOST and `--port` name; `None` without HOST.
pub(super) fn server(
    host: Option<HostPort>,
    port: Option<u16>,
) -> Result<Option<(String, u16)>, Failure> {
    let Some(host) = host else { return Ok(None) };
    match (host.port, port) {
        (Some(written), Some(flag)) if written != flag => {
            Err(Failure::bad_input(format!("HOST has port {written}, --port is {flag}"))
                .with_hint("leave one of them out"))
        }
        (written, flag) => Ok(Some((host.host, written.or(flag).unwrap_or(DEFAULT_PORT)))),
    }
}
