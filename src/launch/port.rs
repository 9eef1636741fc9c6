//! A TCP port that all ranks of a job find by themselves, and two jobs on a host hardly ever share.

use sha2::{Digest, Sha256};

/// Where a job has no identity: the port of `rocebench serve`.
const WITHOUT_IDENTITY: u16 = 18_515;

/// Below the ports that systems give to outgoing connections (Linux from 32768).
const FIRST: u16 = 20_000;
const PORTS: u64 = 10_000;

/// The port of the job with this identity.
pub(super) fn of_job(identity: Option<&str>) -> u16 {
    let Some(identity) = identity else {
        return WITHOUT_IDENTITY;
    };
    let hash = Sha256::digest(identity.as_bytes());
    let number = hash.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    FIRST + u16::try_from(number % PORTS).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn jobs_have_ports_of_their_own() {
        let port = |step| of_job(Some(&format!("4711.{step}")));
        let ports: HashSet<u16> = (0..100).map(port).collect();
        assert!(ports.iter().all(|port| (20_000..30_000).contains(port)));
        assert!(ports.len() > 95, "{} of 100 differ", ports.len());
        assert_eq!(of_job(Some("4711.0")), of_job(Some("4711.0")));
        assert_eq!(of_job(None), 18_515);
    }
}
