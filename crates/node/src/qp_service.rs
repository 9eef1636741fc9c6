//! The service of a flow's QPs, as verbs take it, and the random numbers with which QPs begin.

use settings::Settings;
use verbs::Service;

use protocol::failure::RunFailure;

/// The service of a flow's QPs; of UD with a Q_Key for this run.
pub(crate) fn service(flow: &Settings) -> Result<Service, RunFailure> {
    Ok(match flow.service {
        settings::Service::Rc => Service::ReliableConnection,
        settings::Service::Uc => Service::UnreliableConnection,
        // Of 24 bits: the highest of 32 would have a datagram take its own QP's Q_Key.
        settings::Service::Ud => {
            Service::Datagram { qkey: random_24_bits(1)?.into_iter().next().unwrap_or(0) }
        }
    })
}

/// A random first PSN for each QP, so that packets of an earlier connection are not accepted.
pub fn psns(count: usize) -> Result<Vec<u32>, RunFailure> {
    random_24_bits(count)
}

fn random_24_bits(count: usize) -> Result<Vec<u32>, RunFailure> {
    let mut bytes = vec![0; count * 4];
    getrandom::fill(&mut bytes).map_err(|error| {
        RunFailure::new(format!("the kernel gave no random bytes: {error}"), None)
    })?;
    Ok(bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], 0])).collect())
}
