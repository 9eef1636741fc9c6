//! Why a file cannot be received, with a text for both ends.

use std::io;
use std::path::PathBuf;

use protocol::failure::RunFailure;

/// Why a file cannot be received or stored.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum PlaceError {
    #[error("cannot open the folder {} for received files: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot make files in the folder {}: {source}", path.display())]
    NotWritable { path: PathBuf, source: io::Error },
    #[error("{name:?} exists at the receiver")]
    Exists { name: String },
    #[error("{name:?} is {what} at the receiver, but only files are overwritten")]
    Special { name: String, what: &'static str },
    #[error(
        "no room for {name:?} at the receiver: it takes {needed_bytes} bytes, and {free_bytes} bytes are free{quota}"
    )]
    NoRoom {
        name: String,
        needed_bytes: u64,
        /// Space that the file system has left for this user.
        free_bytes: u64,
        /// Set if a quota is full, not the disk.
        quota: &'static str,
    },
    #[error("no file can be made for {name:?} at the receiver: its file system has no inode left")]
    NoInode { name: String },
    #[error("{operation} {name:?} at the receiver: {source}")]
    Call { operation: &'static str, name: String, source: io::Error },
}

impl PlaceError {
    pub fn hint(&self) -> String {
        match self {
            PlaceError::Folder { .. } => "make the folder, or name another with --receive",
            PlaceError::NotWritable { source, .. }
                if source.kind() == io::ErrorKind::StorageFull =>
            {
                "make room there (`df`) or remove files (`df -i`), or name another folder with --receive"
            }
            PlaceError::NotWritable { .. } => {
                "give this user the right to write there, or name another folder with --receive"
            }
            PlaceError::Exists { .. } => {
                "overwrite it with --force, or send it under another name"
            }
            PlaceError::Special { .. } => "send it under another name, or move that out of the way",
            PlaceError::NoRoom { .. } => {
                "make room at the receiver, or let `rocebench serve --receive` name a folder on a larger disk"
            }
            PlaceError::NoInode { .. } => {
                "remove files at the receiver (`df -i`), or let `rocebench serve --receive` name a folder on another disk"
            }
            PlaceError::Call { .. } => "look at the receiver's folder and at `dmesg` there",
        }
        .into()
    }

    /// Whether another attempt would fail the same way because the request is at fault.
    pub fn is_bad_input(&self) -> bool {
        match self {
            PlaceError::NoRoom { .. } | PlaceError::NoInode { .. } | PlaceError::Call { .. } => {
                false
            }
            PlaceError::NotWritable { source, .. } => source.kind() != io::ErrorKind::StorageFull,
            _ => true,
        }
    }
}

impl From<PlaceError> for RunFailure {
    fn from(error: PlaceError) -> RunFailure {
        RunFailure {
            bad_input: error.is_bad_input(),
            ..RunFailure::new(error.to_string(), Some(error.hint()))
        }
    }
}
