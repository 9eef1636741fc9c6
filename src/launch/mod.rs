//! What a launcher tells the processes that it starts: which rank this one is, of how many, and where rank 0 is. All of
//! it follows from variables of the environment, but for PMI-1's store (`pmi`).

mod launchers;
pub mod pmi;

use std::net::IpAddr;

use sha2::{Digest as _, Sha256};

use plan::HostPort;
use plan::node_list::MOST_NODES;

pub use launchers::{LaunchError, Launcher, Variables};

/// Where a job has no identity: the port of `rocebench serve`.
const WITHOUT_IDENTITY: u16 = 18_515;

/// Below the ports that systems give to outgoing connections (Linux from 32768).
const FIRST: u16 = 20_000;
const PORTS: u64 = 10_000;

/// What the command line says besides.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where rank 0 is (`--rank-0`).
    pub rank_0: Option<HostPort>,
    /// The number of ranks (`--ranks`).
    pub ranks: Option<u32>,
    /// Rank 0's TCP port (`--port`).
    pub port: Option<u16>,
}

/// One of the processes that a launcher has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    pub launcher: Launcher,
    /// Its number, from 0.
    pub rank: u32,
    pub ranks: u32,
    /// What the launcher calls this host, if it has a name of its own for it.
    pub host: Option<String>,
    /// The hosts of all ranks, in their order, where the launcher tells.
    pub hosts: Vec<String>,
    pub rank_0: Rank0,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rank0 {
    At {
        /// Names or addresses of its host.
        hosts: Vec<String>,
        port: u16,
        /// The hosts are where the launcher is, and rank 0 need not be.
        is_launchers: bool,
    },
    /// It tells by the store of this descriptor, which speaks PMI-1; at this port, or any free one.
    Store {
        /// A descriptor that this process has inherited.
        descriptor: i32,
        /// The TCP port that was asked for.
        port: Option<u16>,
    },
}

/// What the environment and the command line tell of this process; `None` where no launcher has started it.
///
/// # Errors
/// A launcher has, and something is missing or contradicts itself.
pub fn find(variables: &Variables, given: &Options) -> Result<Option<Launched>, LaunchError> {
    let Some(found) = launchers::read(variables)? else {
        return Ok(None);
    };
    let launcher = found.launcher;
    let ranks = match (found.ranks, given.ranks) {
        (Some(started), Some(given)) if started != given => {
            return Err(LaunchError::OtherNumber { launcher, started, given });
        }
        (Some(ranks), _) | (None, Some(ranks)) => ranks,
        (None, None) => return Err(LaunchError::NumberUntold(launcher)),
    };
    if ranks > MOST_NODES {
        return Err(LaunchError::TooMany(ranks));
    }
    let rank = found.rank;
    if rank >= ranks {
        return Err(LaunchError::RankOutside { rank, ranks });
    }
    let port = match given.rank_0.as_ref().and_then(|it| it.port) {
        Some(written) => match given.port {
            Some(flag) if flag != written => return Err(LaunchError::TwoPorts { written, flag }),
            _ => Some(written),
        },
        None => given.port,
    };
    let port_of_rank_0 = port.unwrap_or_else(|| port_of_job(found.identity.as_deref()));
    let rank_0 = match (&given.rank_0, found.store) {
        (Some(given), _) => {
            Rank0::At { hosts: vec![given.host.clone()], port: port_of_rank_0, is_launchers: false }
        }
        (None, Some(descriptor)) => Rank0::Store { descriptor, port },
        (None, None) if found.rank_0.is_empty() => return Err(LaunchError::Rank0Untold(launcher)),
        (None, None) => Rank0::At {
            hosts: found.rank_0,
            port: port_of_rank_0,
            is_launchers: found.is_launchers,
        },
    };
    let hosts = if found.hosts.len() == ranks as usize { found.hosts } else { Vec::new() };
    Ok(Some(Launched { launcher, rank, ranks, host: found.host, hosts, rank_0 }))
}

/// The rank of this process, whatever else is missing; `None` without a launcher.
pub fn rank(variables: &Variables) -> Option<u32> {
    let found = launchers::read(variables).ok()??;
    Some(found.rank)
}

impl Launched {
    /// Checks at rank 0, on the host `here`, that the others will look for it there; `is_here` tells whether an address is
    /// one of this machine's.
    pub fn check_place(
        &self,
        here: &str,
        is_here: impl Fn(IpAddr) -> bool,
    ) -> Result<(), LaunchError> {
        let Rank0::At { hosts, is_launchers: true, .. } = &self.rank_0 else {
            return Ok(());
        };
        let names_this_host = hosts.iter().any(|host| match host.parse::<IpAddr>() {
            Ok(address) => is_here(address),
            Err(_) => host == here || self.host.as_ref().is_none_or(|own| own == host),
        });
        if names_this_host {
            Ok(())
        } else {
            Err(LaunchError::Rank0Elsewhere {
                launcher: self.launcher,
                here: self.host.as_deref().unwrap_or(here).to_owned(),
                hosts: hosts.join(" or "),
            })
        }
    }
}

/// The TCP port of the job with this identity. All ranks find it by themselves, and two jobs on a host hardly ever share it.
fn port_of_job(identity: Option<&str>) -> u16 {
    let Some(identity) = identity else {
        return WITHOUT_IDENTITY;
    };
    let hash = Sha256::digest(identity.as_bytes());
    let number = hash.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    FIRST + u16::try_from(number % PORTS).unwrap_or(0)
}

#[cfg(test)]
mod tests;
