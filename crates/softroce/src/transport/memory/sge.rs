//! A piece of registered memory, as programs name it.

/// A piece of registered memory; the layout is that of `ibv_sge`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sge {
    /// Its address in this process.
    pub address: u64,
    pub length_bytes: u32,
    /// The local key of its region.
    pub lkey: u32,
}
