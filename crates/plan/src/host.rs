//! Where a server is: `name`, `192.0.2.7`, `2001:db8::7`, each with or without a port.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// A host, and the port if one was written with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// A name or an address without brackets; an IPv6 address may have a zone (`fe80::1%eth0`).
    pub host: String,
    /// The port that follows it.
    pub port: Option<u16>,
}

/// Why a text is no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum HostError {
    #[error("`{0}` is not a host name or address")]
    Host(String),
    #[error("`{0}` is not a port: ports are 1 to 65535")]
    Port(String),
}

fn is_ipv6(text: &str) -> bool {
    let (address, zone) = text.split_once('%').unwrap_or((text, "zone"));
    !zone.is_empty() && address.parse::<Ipv6Addr>().is_ok()
}

fn is_name(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && !text.starts_with('-')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

fn port(text: &str) -> Result<u16, HostError> {
    match text.parse() {
        Ok(port) if port > 0 && !text.starts_with('+') => Ok(port),
        _ => Err(HostError::Port(text.to_owned())),
    }
}

impl FromStr for HostPort {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let (host, digits) = if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']').ok_or_else(|| not_a_host(text))?;
            if !is_ipv6(address) {
                return Err(not_a_host(text));
            }
            match rest.strip_prefix(':') {
                Some(digits) => (address, Some(digits)),
                None if rest.is_empty() => (address, None),
                None => return Err(not_a_host(text)),
            }
        } else if is_ipv6(text) {
            (text, None)
        } else {
            match text.split_once(':') {
                // A URL is no host with a strange port.
                Some((host, digits)) if is_name(host) && !digits.contains(['/', ':']) => {
                    (host, Some(digits))
                }
                None if is_name(text) => (text, None),
                _ => return Err(not_a_host(text)),
            }
        };
        Ok(HostPort { host: host.to_owned(), port: digits.map(port).transpose()? })
    }
}

fn not_a_host(text: &str) -> HostError {
    HostError::Host(text.to_owned())
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) if self.host.contains(':') => write!(f, "[{}]:{port}", self.host),
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_and_without_ports() {
        for (text, host, port) in [
            ("node1", "node1", None),
            ("node1:99", "node1", Some(99)),
            ("node_1.example.org.", "node_1.example.org.", None),
            ("192.0.2.7", "192.0.2.7", None),
            ("192.0.2.7:18515", "192.0.2.7", Some(18_515)),
            ("::1", "::1", None),
            ("2001:db8::7", "2001:db8::7", None),
            ("[2001:db8::7]", "2001:db8::7", None),
            ("[2001:db8::7]:65535", "2001:db8::7", Some(65_535)),
            ("fe80::1%eth0", "fe80::1%eth0", None),
            ("[fe80::1%eth0]:1", "fe80::1%eth0", Some(1)),
        ] {
            let parsed: HostPort = text.parse().unwrap();
            assert_eq!((&*parsed.host, parsed.port), (host, port), "{text}");
            assert_eq!(parsed.to_string().parse(), Ok(parsed), "{text}");
        }
    }

    #[test]
    fn what_is_no_host() {
        for text in [
            "", " ", "a b", "-x", "http://a", "a/b", "[::1", "[::1]x", "[node]", "1:2:3", ":1",
            "fe80::1%", "é",
        ] {
            let parsed = text.parse::<HostPort>();
            assert!(matches!(parsed, Err(HostError::Host(_))), "{text}");
        }
        for text in ["a:", "a:0", "a:65536", "a:+1", "a:x", "[::1]:"] {
            let parsed = text.parse::<HostPort>();
            assert!(matches!(parsed, Err(HostError::Port(_))), "{text}");
        }
    }
}
