//! Where the memory of a flow's end lies at this node: the place that its settings name, with the GPU behind it; and whether
//! that has room.

use std::path::Path;

use datapath::Regions;
use gpu::{Gpu, Maker};
use machine::host::memory_text;
use machine::pci::{Nearness, nearness};
use plan::{Case, Side};
use protocol::failure::RunFailure;
use protocol::node_report::DeviceKind;
use results::model::{EndMemory, RegisteredBy};
use settings::{GpuMaker, MemoryAt, MemoryPlace, Register, Settings};
use verbs::{Place, Port, Registration, VerbsError};

use crate::memory_needs::buffer_bytes;

/// The place that the settings name for an end.
pub fn named(flow: &Settings, side: Side) -> MemoryPlace {
    match side {
        Side::Initiator => flow.memory_at.client,
        Side::Target => flow.memory_at.server,
    }
}

/// The place of an end's memory, for its port; with `auto` the GPU nearest to it, in turn with those of the other rails.
///
/// # Errors
/// No library for that GPU, no such GPU.
pub(crate) fn place(
    flow: &Settings,
    side: Side,
    port: &Port,
    rail: usize,
) -> Result<Place, RunFailure> {
    Ok(match named(flow, side) {
        MemoryPlace::Ordinary => Place::Ordinary,
        MemoryPlace::Huge => Place::Huge,
        MemoryPlace::Transparent => Place::Transparent,
        MemoryPlace::Dmabuf => Place::Dmabuf { takes_memfd: port.context.library().is_embedded() },
        MemoryPlace::Gpu(maker, Some(number)) => {
            Place::Gpu(Gpu::new(maker_of(maker), number).map_err(VerbsError::from)?)
        }
        MemoryPlace::Gpu(maker, None) => Place::Gpu(nearest(maker_of(maker), port, rail)?),
    })
}

fn maker_of(maker: GpuMaker) -> Maker {
    match maker {
        GpuMaker::Cuda => Maker::Cuda,
        GpuMaker::Rocm => Maker::Rocm,
    }
}

fn nearest(maker: Maker, port: &Port, rail: usize) -> Result<Gpu, RunFailure> {
    let gpus = maker.gpus().map_err(VerbsError::from)?;
    let near: Vec<Option<Nearness>> = gpus.iter().map(|gpu| nearness_of(*gpu, port)).collect();
    // Where a place on PCIe is not known, each is as near as any.
    let best = near.iter().flatten().min().copied();
    let mut candidates: Vec<Gpu> =
        gpus.iter().zip(&near).filter(|(_, near)| **near == best).map(|(gpu, _)| *gpu).collect();
    if candidates.is_empty() {
        return Ok(Gpu::new(maker, 0).map_err(VerbsError::from)?);
    }
    Ok(candidates.swap_remove(rail % candidates.len()))
}

fn nearness_of(gpu: Gpu, port: &Port) -> Option<Nearness> {
    let address = gpu.pci_address().ok()?;
    nearness(Path::new(port.context.root()), &address, port.context.name())
}

/// The places of a flow with the GPU that an end at this port has, where its number was left to choose.
///
/// # Errors
/// As for [`place`].
pub(crate) fn chosen(
    flow: &Settings,
    side: Side,
    port: &Port,
    rail: usize,
) -> Result<MemoryAt, RunFailure> {
    let mut places = flow.memory_at;
    let named = match side {
        Side::Initiator => &mut places.client,
        Side::Target => &mut places.server,
    };
    if let MemoryPlace::Gpu(maker, None) = *named {
        let gpu = nearest(maker_of(maker), port, rail)?;
        *named = MemoryPlace::Gpu(maker, Some(gpu.ordinal()));
    }
    Ok(places)
}

/// What the result says of an end's memory; `None` of the usual, which needs no words.
pub(crate) fn in_result(
    flow: &Settings,
    side: Side,
    port: &Port,
    place: Place,
    regions: &Regions,
) -> Option<EndMemory> {
    let registered_by = match regions.way() {
        Registration::Address => RegisteredBy::Address,
        Registration::Dmabuf => RegisteredBy::Dmabuf,
        Registration::PeerMemory => RegisteredBy::PeerMemory,
    };
    let mut memory = EndMemory {
        node: String::new(),
        place: named(flow, side).to_string(),
        of: regions.mapping().to_string(),
        registered_by,
        distance: None,
        nearer: None,
    };
    match place {
        Place::Ordinary | Place::Huge | Place::Transparent => return None,
        Place::Dmabuf { .. } => {}
        Place::Gpu(gpu) => {
            let own = nearness_of(gpu, port);
            let others = gpu.maker().gpus().unwrap_or_default();
            let nearer = others.into_iter().find(|other| nearness_of(*other, port) < own);
            memory.place = gpu.to_string();
            memory.distance = own.map(|own| own.name().to_owned());
            memory.nearer = nearer.filter(|_| own.is_some()).map(|other| other.to_string());
        }
    }
    Some(memory)
}

/// Whether an end of the case at this node has its memory on a GPU.
pub fn uses_gpu(case: &Case, node: u32) -> bool {
    case.ends_at(node).any(|(_, flow, side)| matches!(named(flow, side), MemoryPlace::Gpu(..)))
}

/// Checks, before anything is allocated, that the GPUs of this machine have room for the memory of the ends at `nodes` of this
/// process, and that their devices can reach it.
///
/// # Errors
/// Bad input: no such GPU, too little free memory on one, or the embedded device cannot map it. Or a failed call.
pub fn check_gpus(case: &Case, nodes: &[(u32, DeviceKind)]) -> Result<(), RunFailure> {
    let mut needed: Vec<(Gpu, u64)> = Vec::new();
    for (node, device) in nodes {
        for (_, flow, side) in case.ends_at(*node) {
            let MemoryPlace::Gpu(maker, number) = named(flow, side) else { continue };
            let gpu = match number {
                Some(number) => Gpu::new(maker_of(maker), number).map_err(VerbsError::from)?,
                None => roomiest(maker_of(maker))?,
            };
            if *device == DeviceKind::Embedded {
                check_reach(gpu, flow.register)?;
            }
            let bytes = buffer_bytes(flow, side);
            match needed.iter_mut().find(|(known, _)| *known == gpu) {
                Some((_, sum)) => *sum = sum.saturating_add(bytes),
                None => needed.push((gpu, bytes)),
            }
        }
    }
    for (gpu, bytes) in needed {
        let (free, _) = gpu.free_and_total_bytes().map_err(VerbsError::from)?;
        if bytes > free {
            let message = format!(
                "the case {} takes {} of memory on {gpu}, and {} is free there",
                case.id,
                memory_text(bytes),
                memory_text(free),
            );
            let hint = "lower --memory, --qps, --size or (with --verify) the depths, or end what else uses the GPU";
            return Err(RunFailure::refused(message, hint));
        }
    }
    Ok(())
}

/// The GPU with the most free memory: whichever is nearest has no more.
fn roomiest(maker: Maker) -> Result<Gpu, RunFailure> {
    let gpus = maker.gpus().map_err(VerbsError::from)?;
    let roomiest =
        gpus.into_iter().max_by_key(|gpu| gpu.free_and_total_bytes().map_or(0, |(free, _)| free));
    match roomiest {
        Some(gpu) => Ok(gpu),
        None => Ok(Gpu::new(maker, 0).map_err(VerbsError::from)?),
    }
}

/// Whether the embedded device can reach a GPU's memory: it maps a dmabuf.
fn check_reach(gpu: Gpu, register: Register) -> Result<(), RunFailure> {
    let memory = gpu.allocate(1).map_err(VerbsError::from)?;
    if memory.is_of_host() {
        return Ok(());
    }
    let why = match register {
        Register::PeerMemory => "it has no peer memory",
        Register::Auto | Register::Dmabuf => {
            if memory.export().map_err(VerbsError::from)?.can_be_mapped() {
                return Ok(());
            }
            "its driver lets no program map it"
        }
    };
    Err(RunFailure::refused(
        format!("soft0 cannot reach the memory of {gpu}: {why}"),
        "use an RDMA adapter, or --memory-at dmabuf",
    ))
}
