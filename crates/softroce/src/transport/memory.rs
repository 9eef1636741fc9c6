//! Registered memory: regions, their keys and what is allowed in them.

/// A protection domain's number, unique in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PdId(pub u32);

/// What may be done with a region or through a QP; the bits are those of `ibv_access_flags`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access(pub u32);

impl Access {
    /// Incoming data may be put here.
    pub const LOCAL_WRITE: Access = Access(1);
    /// The peer may write.
    pub const REMOTE_WRITE: Access = Access(2);
    /// The peer may read.
    pub const REMOTE_READ: Access = Access(4);
    /// The peer may do atomics.
    pub const REMOTE_ATOMIC: Access = Access(8);

    /// Whether all of `other` is allowed.
    pub fn allows(self, other: Access) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A region to be registered.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Domain that it belongs to.
    pub pd: PdId,
    /// Where it starts in this process.
    pub address: u64,
    /// Bytes.
    pub length_bytes: u64,
    /// The address by which requests name its start (`ibv_reg_mr_iova`; otherwise equal to `address`).
    pub iova: u64,
    /// What is allowed.
    pub access: Access,
}

/// Why a region was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// Remote writing or atomics without local writing, or an address range that wraps (EINVAL).
    #[error("the region's access flags or bounds make no sense")]
    Invalid,
    /// No more keys (ENOMEM).
    #[error("there are no more memory keys")]
    Full,
}
