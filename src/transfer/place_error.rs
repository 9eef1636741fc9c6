//! Why a file cannot be received, with a text for both ends.

use std::io;
use std::path::PathBuf;

/// Why a file cannot be received or stored.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The folder cannot be opened.
    #[error("cannot open the folder {} for received files: {source}", path.display())]
    Folder {
        /// Its path as given.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// No file can be created in the folder.
    #[error("cannot make files in the folder {}: {source}", path.display())]
    NotWritable {
        /// Its path as given.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A file of that name exists.
    #[error("{name:?} exists at the receiver")]
    Exists {
        /// The name.
        name: String,
    },
    /// Something other than a file has that name.
    #[error("{name:?} is {what} at the receiver, but only files are overwritten")]
    Special {
        /// The name.
        name: String,
        /// Its kind.
        what: &'static str,
    },
    /// The disk is full, or the file does not fit.
    #[error(
        "no room for {name:?} at the receiver: it takes {needed_bytes} bytes, and {free_bytes} bytes are free{quota}"
    )]
    NoRoom {
        /// The name.
        name: String,
        /// Size of the whole file.
        needed_bytes: u64,
        /// Space that the file system has left for this user.
        free_bytes: u64,
        /// Set if a quota is full, not the disk.
        quota: &'static str,
    },
    /// The file system has no room for more files.
    #[error("no file can be made for {name:?} at the receiver: its file system has no inode left")]
    NoInode {
        /// The name.
        name: String,
    },
    /// A call failed.
    #[error("{operation} {name:?} at the receiver: {source}")]
    Call {
        /// The operation.
        operation: &'static str,
        /// The file.
        name: String,
        /// The operating system's error.
        source: io::Error,
    },
}

impl PlaceError {
    /// What to do next.
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
