//! Bodies of the messages by which files are sent.

use serde::{Deserialize, Serialize};

use crate::endpoints::Endpoints;

/// A file is to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHello {
    /// Its name, one component; on the wire `file_name`, which comes as it was sent.
    #[serde(rename = "file_name")]
    pub name: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// A file of that name may be overwritten.
    pub force: bool,
    /// With the first file: the sender's QPs and how they are to be used. Later ones use the same.
    pub channel: Option<ChannelHello>,
}

/// How chunks are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelHello {
    /// How.
    pub settings: ChannelSettings,
    /// The sender's QPs; none of its memory is accessible.
    pub endpoints: Endpoints,
}

/// What both ends must have alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelSettings {
    /// QPs.
    pub qps: u32,
    /// Bytes of a chunk; a file's last may have less.
    pub chunk_bytes: u32,
    /// Chunks that each QP may have outstanding: slots of the receiver's memory.
    pub window: u32,
    /// Path MTU in bytes; `None` is the largest that both ports have.
    pub mtu_bytes: Option<u32>,
    /// Local ACK timeout exponent.
    pub timeout: u8,
    /// Retries after a timeout.
    pub retry_cnt: u8,
}

/// The receiver is ready for the chunks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileAccept {
    /// Where the sender sent its QPs: the receiver's, with address and key of each QP's slots.
    pub endpoints: Option<Endpoints>,
}

/// All of the file is out and was given back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFin {
    /// The checksum of what was read, in hex.
    pub digest: String,
}

/// The file is whole, on the disk, and has its name.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileAck {
    /// How long it took to bring it to the disk, in seconds.
    pub sync_seconds: f64,
}

/// The same file is to be sent once more, over a plain TCP connection, to be thrown away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpHello {
    /// Its name, for what a person reads.
    #[serde(rename = "file_name")]
    pub name: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Bytes of a chunk of the checksum.
    pub chunk_bytes: u32,
}

/// The receiver listens for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpAccept {
    /// On this TCP port of the address that the control connection goes to.
    pub port: u16,
    /// The first bytes on that connection, in hex: nobody else has them.
    pub key: String,
}
