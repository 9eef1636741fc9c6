//! Registered memory: regions by key, and copying to and from it. It must not know QPs.

pub(crate) mod copy;
pub(crate) mod regions;
pub(crate) mod sge;
pub(crate) mod unguessable;
