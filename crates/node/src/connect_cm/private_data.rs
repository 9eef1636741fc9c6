//! The private data of a request and its answer: identifies the program, the run and the QP.

/// The first bytes, including the format version.
const MAGIC: [u8; 5] = *b"rocb\x01";

/// Total length in bytes.
pub(crate) const BYTES: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Request,
    Answer,
}

/// Decoded private data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrivateData {
    pub(crate) role: Role,
    /// Index of the QP in the run.
    pub(crate) index: u32,
    pub(crate) qpn: u32,
    /// The nonce that the listener drew for this run.
    pub(crate) nonce: Nonce,
}

/// A random number that tells requests of this run from those of other runs and programs.
pub(crate) type Nonce = [u8; 16];

/// Private data that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PrivateDataError {
    #[error("it is not from rocebench")]
    Foreign,
    #[error("it has {0} bytes of private data")]
    Short(usize),
}

impl PrivateData {
    pub(crate) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..5].copy_from_slice(&MAGIC);
        bytes[5] = match self.role {
            Role::Request => 1,
            Role::Answer => 2,
        };
        bytes[8..12].copy_from_slice(&self.index.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.qpn.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.nonce);
        bytes
    }

    /// Decodes received bytes, which rdma_cm pads with zeros.
    pub(crate) fn decode(bytes: &[u8]) -> Result<PrivateData, PrivateDataError> {
        let Some(bytes) = bytes.first_chunk::<BYTES>() else {
            return Err(PrivateDataError::Short(bytes.len()));
        };
        let role = match bytes[5] {
            1 => Role::Request,
            2 => Role::Answer,
            _ => return Err(PrivateDataError::Foreign),
        };
        if bytes[..5] != MAGIC {
            return Err(PrivateDataError::Foreign);
        }
        let mut nonce = [0; 16];
        nonce.copy_from_slice(&bytes[16..32]);
        Ok(PrivateData { role, index: number(bytes, 8), qpn: number(bytes, 12), nonce })
    }
}

/// The little-endian number at an offset.
fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The text of a rejection: the printable bytes before the padding; `None` if there are none.
pub(crate) fn reason(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    (!text.is_empty()).then(|| results::text::printable(text, 80))
}

#[cfg(test)]
mod tests {
    use super::*;
    use verbs::cm::MAX_PRIVATE_BYTES;

    const SAMPLE: PrivateData = PrivateData {
        role: Role::Request,
        index: 4095,
        qpn: 0x00ab_cdef,
        nonce: *b"0123456789abcdef",
    };

    #[test]
    fn what_is_sent_is_read_with_the_padding_of_the_other_end() {
        const { assert!(BYTES <= MAX_PRIVATE_BYTES) };
        for role in [Role::Request, Role::Answer] {
            let sent = PrivateData { role, ..SAMPLE };
            let mut bytes = sent.encode().to_vec();
            assert_eq!(PrivateData::decode(&bytes), Ok(sent));
            bytes.resize(196, 0);
            assert_eq!(PrivateData::decode(&bytes), Ok(sent));
        }
    }

    #[test]
    fn what_others_send_is_foreign() {
        let foreign = Err(PrivateDataError::Foreign);
        for bytes in [&[][..], &[0; 31]] {
            let short = Err(PrivateDataError::Short(bytes.len()));
            assert_eq!(PrivateData::decode(bytes), short);
        }
        assert_eq!(PrivateData::decode(&[0; 56]), foreign);
        for at in [0, 4, 5] {
            let mut bytes = SAMPLE.encode();
            bytes[at] ^= 0x80;
            assert_eq!(PrivateData::decode(&bytes), foreign, "{at}");
        }
    }

    #[test]
    fn reasons_end_where_the_padding_begins() {
        let words = reason(b"another run's\0\0\0");
        assert_eq!(words.as_deref(), Some("another run's"));
        assert_eq!(reason(&[0; 8]), None);
        assert_eq!(reason(&[0xff, 0xfe, 0]), None);
        assert_eq!(reason(b"wakeup \x07!").as_deref(), Some("wakeup \\u{7}!"));
    }
}
