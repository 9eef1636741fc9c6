//! Who is at either end: this process, with its device, faults, capture and cores, the server at HOST, the servers that
//! are nodes; and the secret that both ends share, from a flag, a file or the environment, in this order, which is never
//! printed.

use std::{
    io::{self, Read as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener},
    path::PathBuf,
};

use crate::{
    cli::{
        args::{ConnectionArgs, DEFAULT_PORT, EndpointArgs, FaultsOfDevices, TokenArgs, Wire},
        sweep::plan::nodes_here,
        terminal::Failure,
    },
    coordinator::interface::{Ends, Target},
};
use machine::threads::check_cores;
use node::resources::{NodeOptions, PlacedFaults, PortRequest, is_shared};
use plan::{Devices, HostPort, Nodes};
use protocol::{connection, token::Token};
use settings::listed;
use verbs::{WireRequest, address_of_environment, embedded_device};

/// This end, and the one at HOST, or in this process without HOST; `nodes` are those of the session.
///
/// # Errors
/// Always bad input.
pub(super) fn ends(
    host: Option<HostPort>,
    connection: ConnectionArgs,
    endpoint: EndpointArgs,
    nodes: &Nodes,
) -> Result<Ends, Failure> {
    let target = match server(host, connection.port)? {
        Some((host, port)) => Target::Remote(host, port),
        None => Target::Local,
    };
    let mut here = nodes.names();
    here.truncate(nodes_here(nodes, &target) as usize);
    Ok(Ends {
        target,
        resources: resources(endpoint, &here)?,
        approach: connection.approach(),
        token: token(connection.token)?,
    })
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
            return Err(Failure::bad_input(format!(
                "two nodes name the same server, {} at port {}",
                server.0, server.1
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
        ("wire", endpoint.wire != Wire::Auto),
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

/// The variable from which every program on the embedded device takes its faults.
const FAULTS_VARIABLE: &str = "SOFTROCE_FAULTS";
/// The variable from which every program on it takes the file for a capture.
const CAPTURE_VARIABLE: &str = "SOFTROCE_PCAP";

/// The variable from which every program on it takes how packets go between devices of its own.
const WIRE_VARIABLE: &str = "SOFTROCE_WIRE";

/// Checks what the environment says about the embedded device's address, before any device is touched.
pub(super) fn check_environment() -> Result<(), Failure> {
    address_of_environment().map(drop).map_err(Failure::bad_input)
}

/// This end as flags ask for it, on the system's verbs library; faults and capture otherwise by the environment. `nodes` are
/// the names of those of this process where there are several.
///
/// # Errors
/// When the environment's faults or address are none, or faults are at a place that is not here.
pub(super) fn resources(args: EndpointArgs, nodes: &[String]) -> Result<NodeOptions, Failure> {
    check_environment()?;
    if let Some(cores) = &args.cores {
        check_cores(&cores.0).map_err(Failure::bad_input)?;
    }
    let mut faults = args.faults.unwrap_or_default();
    if let (true, Some(text)) =
        (faults == FaultsOfDevices::default(), std::env::var_os(FAULTS_VARIABLE))
        && !text.is_empty()
    {
        faults.default = Some(text.to_string_lossy().parse().map_err(|error| {
            Failure::bad_input(format!("the variable {FAULTS_VARIABLE}: {error}"))
        })?);
    }
    let placed_faults = faults
        .of
        .iter()
        .map(|(place, faults)| {
            let (node, device) = placed(place, nodes, args.device.as_ref()).map_err(|why| {
                Failure::bad_input(format!("--faults names {place}, {why}"))
                    .with_hint(places(nodes))
            })?;
            Ok(PlacedFaults { node, device, faults: *faults })
        })
        .collect::<Result<_, Failure>>()?;
    let variable = std::env::var(WIRE_VARIABLE).unwrap_or_default();
    let wire = match (args.wire, &*variable) {
        (Wire::Memory, _) | (Wire::Auto, "memory") => WireRequest::Memory,
        (Wire::Udp, _) | (Wire::Auto, "udp") => WireRequest::Udp,
        (Wire::Auto, "" | "auto") => WireRequest::Auto,
        (Wire::Auto, other) => {
            return Err(Failure::bad_input(format!("the variable {WIRE_VARIABLE}: \"{other}\""))
                .with_hint("write auto, memory or udp"));
        }
    };
    let capture = std::env::var_os(CAPTURE_VARIABLE).filter(|path| !path.is_empty());
    let pcap = args.pcap.or_else(|| capture.map(PathBuf::from));
    let request = PortRequest {
        device: args.device.as_ref().and_then(|it| Some(it.only()?.to_owned())),
        ib_port: args.ib_port,
        gid_index: args.gid_index,
        pkey_index: args.pkey_index,
        faults: faults.default,
        pcap,
        wire,
    };
    Ok(NodeOptions {
        rails: args.device.filter(|devices| devices.only().is_none()),
        placed_faults,
        ..NodeOptions::system(request, args.cores.map(|cores| cores.0))
    })
}

/// The node's number and the device of a place of `--faults`: `soft1`, `node3` or `node3/soft1`.
fn placed(
    place: &str,
    nodes: &[String],
    devices: Option<&Devices>,
) -> Result<(usize, Option<String>), &'static str> {
    let (node, device) = match place.split_once('/') {
        Some((node, device)) => (Some(node), Some(device)),
        None if nodes.iter().any(|name| name == place) => (Some(place), None),
        None => (None, Some(place)),
    };
    let mut named = match devices {
        Some(Devices::Named(names)) => names.iter().map(String::as_str),
        Some(Devices::All) | None => [].iter().map(String::as_str),
    };
    let Some(number) = node.map_or(Some(0), |node| nodes.iter().position(|it| it == node)) else {
        return Err("which is at no node of this process");
    };
    if let Some(name) = device {
        if named.len() > 0 && !named.clone().any(|it| it == name) {
            return Err("which is not in --device");
        }
        if embedded_device(name).ok().flatten().is_none() {
            return Err("which is no embedded device of this machine");
        }
    }
    let is_shared = device.map_or_else(|| named.any(is_shared), is_shared);
    if node.is_some() && is_shared {
        return Err("but all nodes of this process share the device's address: take -d soft0");
    }
    Ok((number, device.map(str::to_owned)))
}

/// What to write in place of a place that is not there.
fn places(nodes: &[String]) -> String {
    match nodes {
        [] => "name a device as in soft0:drop=1%; for another node's packets start its server with `rocebench serve --faults drop=1%`".to_owned(),
        [first, .., last] if nodes.len() > 8 => format!("the nodes of this process are {first} to {last}: write {last}:drop=1%"),
        [first, ..] => format!("the nodes of this process are {}: write {first}:drop=1%, {first}/soft0:drop=1%, or soft0:drop=1% for this end's own", listed(nodes)),
    }
}

/// Refuses several devices, where `what` needs one.
pub(super) fn check_one_device(endpoint: &EndpointArgs, what: &str) -> Result<(), Failure> {
    if endpoint.device.as_ref().is_some_and(|it| it.only().is_none()) {
        Err(Failure::bad_input(format!(
            "`rocebench {what}` takes one device, but --device names several"
        ))
        .with_hint("name one of them"))
    } else {
        Ok(())
    }
}

/// The environment variable that is read when no flag gives a token.
pub const TOKEN_VARIABLE: &str = "ROCEBENCH_TOKEN";

const MAX_BYTES: usize = 4096;

/// Why there is no usable token although one was given.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum TokenError {
    #[error("the token from {0} is empty: give it a secret, or leave it out")]
    Empty(String),
    #[error("the token from {0} is longer than {MAX_BYTES} bytes")]
    TooLong(String),
    #[error("cannot read the token file {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Unusable(#[from] protocol::token::TokenError),
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Failure {
        Failure::bad_input(error).with_hint("generate one with: openssl rand -hex 32")
    }
}

/// The token that flags or environment give, if any.
///
/// # Errors
/// When one is given that cannot be read, is empty or far too long.
pub fn token(args: TokenArgs) -> Result<Option<Token>, TokenError> {
    let secret = secret(args)?;
    Ok(secret.map(Token::new).transpose()?)
}

fn secret(args: TokenArgs) -> Result<Option<Vec<u8>>, TokenError> {
    if let Some(text) = args.token {
        return sound(text.into_bytes(), || "--token".into()).map(Some);
    }
    if let Some(path) = args.token_file {
        let mut bytes = Vec::new();
        // Two more for the line's end, one to notice what is too long.
        let most = u64::try_from(MAX_BYTES + 3).unwrap_or(u64::MAX);
        std::fs::File::open(&path)
            .and_then(|file| file.take(most).read_to_end(&mut bytes))
            .map_err(|source| TokenError::Read { path: path.clone(), source })?;
        return sound(bytes, || format!("the file {}", path.display())).map(Some);
    }
    std::env::var_os(TOKEN_VARIABLE)
        .map(|value| sound(value.into_encoded_bytes(), || TOKEN_VARIABLE.into()))
        .transpose()
}

/// The secret without the end of its line: `$(cat FILE)` has none, a file and a variable made from it may.
fn sound(mut bytes: Vec<u8>, from: impl FnOnce() -> String) -> Result<Vec<u8>, TokenError> {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    match bytes.len() {
        0 => Err(TokenError::Empty(from())),
        1..=MAX_BYTES => Ok(bytes),
        _ => Err(TokenError::TooLong(from())),
    }
}

/// Listens on all addresses of both families, or on the one that was asked for.
pub(super) fn listen(bind: Option<IpAddr>, port: u16) -> io::Result<TcpListener> {
    let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    match connection::listen((bind.unwrap_or(any), port).into()) {
        // A kernel without IPv6 has IPv4's address for all.
        Err(error) if bind.is_none() && error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {
            connection::listen((Ipv4Addr::UNSPECIFIED, port).into())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_file(content: &[u8]) -> Result<Option<Vec<u8>>, TokenError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        secret(TokenArgs { token: None, token_file: Some(file.path().to_owned()) })
    }

    #[test]
    fn a_file_may_end_with_a_line() {
        for content in [&b"a b"[..], b"a b\n", b"a b\r\n"] {
            assert_eq!(from_file(content).unwrap().unwrap(), b"a b");
        }
        assert_eq!(from_file(b"\xff\n\n").unwrap().unwrap(), b"\xff\n");
    }

    #[test]
    fn every_door_has_the_same_rule() {
        let from_flag = TokenArgs { token: Some("a b\r\n".into()), token_file: None };
        assert_eq!(secret(from_flag).unwrap().unwrap(), b"a b");
        assert_eq!(sound(b"a b\n".to_vec(), || TOKEN_VARIABLE.into()).unwrap(), b"a b");
    }

    #[test]
    fn empty_and_endless_tokens_are_refused() {
        assert!(matches!(from_file(b"\n"), Err(TokenError::Empty(_))));
        assert!(from_file(&[b'x'; MAX_BYTES]).is_ok());
        assert!(matches!(from_file(&[b'x'; MAX_BYTES + 1]), Err(TokenError::TooLong(_))));
        let endless = TokenArgs { token: None, token_file: Some("/dev/zero".into()) };
        assert!(matches!(secret(endless), Err(TokenError::TooLong(_))));
    }
}
