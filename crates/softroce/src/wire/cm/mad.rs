//! The MAD around a message: its header of 24 bytes (specification 13.4.3) and the message behind it.

use super::fields::Fields;
use super::messages::Message;

pub const MAD_BYTES: usize = 256;
/// Bytes of its header, after which the message begins.
const HEADER_BYTES: usize = 24;
/// How it begins: base version, class "communication management", version of the class, and method "Send".
const START: [u8; 4] = [1, 0x07, 2, 0x03];

const TRANSACTION_AT: usize = 8;
const ATTRIBUTE_AT: usize = 16;

/// A MAD of the connection manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CmMad {
    /// The transaction: the same in a message and in its repetitions and answers.
    pub transaction: u64,
    pub message: Message,
}

impl CmMad {
    /// Parses a datagram's payload. `None` if it is not as long as a MAD, of another version, class or method, or has an
    /// attribute that is not supported, as for alternate paths.
    pub fn parse(bytes: &[u8]) -> Option<CmMad> {
        let mut mad: [u8; MAD_BYTES] = bytes.try_into().ok()?;
        if !mad.starts_with(&START) {
            return None;
        }
        let (header, message) = mad.split_at_mut(HEADER_BYTES);
        let mut header = Fields { bytes: header, writes: false };
        let mut message_fields = Fields { bytes: message, writes: false };
        let (mut transaction, mut attribute) = (0, 0);
        header.long(TRANSACTION_AT, &mut transaction);
        header.half(ATTRIBUTE_AT, &mut attribute);
        let mut message = Message::blank(attribute)?;
        message.walk(&mut message_fields);
        Some(CmMad { transaction, message })
    }

    /// Its bytes on the wire.
    pub fn to_bytes(&self) -> [u8; MAD_BYTES] {
        let mut mad = [0; MAD_BYTES];
        let (header, message) = mad.split_at_mut(HEADER_BYTES);
        let mut header = Fields { bytes: header, writes: true };
        header.bytes(0, &mut { START });
        header.long(TRANSACTION_AT, &mut { self.transaction });
        header.half(ATTRIBUTE_AT, &mut self.message.attribute());
        self.message.clone().walk(&mut Fields { bytes: message, writes: true });
        mad
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::req::{Req, Transport};
    use super::*;

    /// Which bits of a message carry something (specification, tables 106 to 113, 119 and 120): bytes from one place
    /// to before another, and bits of single ones.
    fn carries(attribute: u16, has_guid: bool) -> [u8; MAD_BYTES] {
        type Places<T> = &'static [(usize, T)];
        let (bytes, bits): (Places<usize>, Places<u8>) = match (attribute, has_guid) {
            (0x10, _) => (
                &[(0, 4), (8, 24), (32, 36), (39, 40), (43, 50), (56, 90), (92, 94), (140, 232)],
                &[(50, 0xf7), (51, 0xf8), (90, 0xf0), (95, 0xf8)],
            ),
            (0x11, _) => (&[(0, 8)], &[(8, 0xc0), (9, 0xf8)]),
            (0x12, false) => (&[(0, 8), (10, 12), (84, 232)], &[(8, 0xc0)]),
            (0x12, true) => (&[(0, 8), (10, 20), (84, 232)], &[(8, 0xc0), (9, 0xfe)]),
            (0x13, _) => {
                (&[(0, 8), (12, 15), (20, 23), (24, 26), (28, 232)], &[(26, 0xf9), (27, 0xf0)])
            }
            (0x15, _) => (&[(0, 11)], &[]),
            (0x17, _) => (&[(0, 6), (8, 232)], &[]),
            (0x18, _) => (&[(0, 5), (8, 11), (12, 24), (96, 232)], &[]),
            _ => (&[(0, 8)], &[]),
        };
        let mut mask = [0; MAD_BYTES];
        mask[..18].fill(0xff);
        mask[4..8].fill(0);
        for (start, end) in bytes {
            mask[24 + start..24 + end].fill(0xff);
        }
        bits.iter().for_each(|(at, bits)| mask[24 + at] = *bits);
        mask
    }

    proptest! {
        /// Of messages of the class each known one is parsed, and built from what was parsed it is the same again.
        #[test]
        fn what_is_parsed_is_built(
            random in prop::collection::vec(any::<u8>(), MAD_BYTES),
            has_guid: bool,
        ) {
            for attribute in 0x0e_u16..0x1e {
                let mut bytes = random.clone();
                bytes[..4].copy_from_slice(&[1, 7, 2, 3]);
                bytes[16..18].copy_from_slice(&attribute.to_be_bytes());
                if [0x11, 0x12].contains(&attribute) {
                    // It is about a request, a reply or another message; there is no fourth.
                    bytes[24 + 8] = (random[0] % 3) << 6;
                    bytes[24 + 9] = if has_guid { 8 << 1 } else { random[1] & 0xef };
                }
                let parsed = CmMad::parse(&bytes);
                prop_assert_eq!(parsed.is_some(), (0x10..=0x18).contains(&attribute));
                let Some(mad) = parsed else { continue };
                let built = mad.to_bytes();
                let carried = carries(attribute, has_guid);
                for (at, mask) in carried.into_iter().enumerate() {
                    prop_assert_eq!(built[at] & mask, bytes[at] & mask, "{:#x} at {}", attribute, at);
                }
                prop_assert_eq!(CmMad::parse(&built), Some(mad));
            }
        }

        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 250..260)) {
            let good = bytes.len() == MAD_BYTES && bytes.starts_with(&[1, 7, 2, 3]);
            prop_assert!(good || CmMad::parse(&bytes).is_none());
        }
    }

    /// The places are those of the specification's tables 106 to 113.
    #[test]
    fn fields_lie_where_the_specification_has_them() {
        let req = Req {
            local_comm: 0x0102_0304,
            service: 0x0000_0000_0106_1d2f,
            qpn: 0x00ab_cdef,
            responder_resources: 7,
            initiator_depth: 9,
            remote_response_timeout: 20,
            transport: Transport::Uc,
            flow_control: true,
            starting_psn: 0x0011_2233,
            local_response_timeout: 19,
            retry_count: 7,
            pkey: 0xffff,
            mtu: 5,
            rnr_retry_count: 6,
            max_cm_retries: 15,
            srq: true,
            ack_timeout: 18,
            hop_limit: 64,
            private_data: vec![0x5a; 92],
            ..Req::default()
        };
        let mad = CmMad { transaction: 1, message: Message::Req(Box::new(req)) };
        let bytes = mad.to_bytes();
        let at = |place: usize, length: usize| &bytes[24 + place..24 + place + length];
        assert_eq!(bytes[16..18], [0, 0x10]);
        assert_eq!(at(0, 4), [1, 2, 3, 4]);
        assert_eq!(at(8, 8), [0, 0, 0, 0, 1, 6, 0x1d, 0x2f]);
        assert_eq!(at(32, 4), [0xab, 0xcd, 0xef, 7]);
        assert_eq!(at(39, 1), [9]);
        assert_eq!(at(43, 1), [20 << 3 | 1 << 1 | 1]);
        assert_eq!(at(44, 4), [0x11, 0x22, 0x33, 19 << 3 | 7]);
        assert_eq!(at(48, 4), [0xff, 0xff, 5 << 4 | 6, 15 << 4 | 8]);
        assert_eq!(at(52, 4), [0xff; 4], "no LIDs: the permissive one");
        assert_eq!(at(93, 1), [64]);
        assert_eq!(at(95, 1), [18 << 3]);
        assert_eq!(at(140, 92), [0x5a; 92]);
    }
}
