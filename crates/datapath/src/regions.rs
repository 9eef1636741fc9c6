//! The MRs of the messages of one end of a flow: one for all QPs, or one for each (`--mr`). All of them are in one
//! mapping, on pages of the kind asked for.

use std::sync::Arc;

use settings::{MrMode, PageKind, Settings};
use verbs::{Access, Mapping, MemoryRegion, Ordering, Pages, ProtectionDomain, VerbsError};

use super::Layout;

/// The MRs of an end's messages of one kind.
pub struct Regions {
    first: Arc<MemoryRegion>,
    rest: Box<[Arc<MemoryRegion>]>,
}

impl Regions {
    /// Allocates and registers what `layout` takes. Calls `alive` from time to time, which may end it.
    ///
    /// # Errors
    /// No memory, no such pages, a failed registration, or an error of `alive`.
    pub fn new<E: From<VerbsError>>(
        pd: &Arc<ProtectionDomain>,
        flow: &Settings,
        layout: &Layout,
        access: Access,
        numa_node: Option<u32>,
        alive: impl Fn() -> Result<(), E>,
    ) -> Result<Regions, E> {
        let mapping = Mapping::new(layout.total_bytes(), pages(flow), numa_node)?;
        if flow.memory_bytes.is_some() {
            mapping.touch(alive)?;
        }
        let (count, bytes) = match flow.mr {
            MrMode::One => (1, mapping.length_bytes()),
            MrMode::PerQp => (layout.qps(), layout.qp_bytes()),
        };
        let rights = (access, ordering(flow));
        let region = |qp: usize| MemoryRegion::within(pd, &mapping, qp * bytes, bytes, rights);
        Ok(Regions {
            first: region(0)?,
            rest: (1..count).map(region).collect::<Result<_, VerbsError>>()?,
        })
    }

    /// The MR of QP `qp`.
    pub fn of(&self, qp: u32) -> &Arc<MemoryRegion> {
        let after_first = (qp as usize).checked_sub(1);
        after_first.and_then(|place| self.rest.get(place)).unwrap_or(&self.first)
    }
}

fn ordering(flow: &Settings) -> Ordering {
    match flow.ordering {
        settings::Ordering::Relaxed => Ordering::Relaxed,
        settings::Ordering::Strict => Ordering::Strict,
    }
}

/// The pages of a flow's messages.
pub fn pages(flow: &Settings) -> Pages {
    match flow.pages {
        PageKind::Usual => Pages::Usual,
        PageKind::Huge => Pages::Huge,
        PageKind::Transparent => Pages::Transparent,
    }
}
