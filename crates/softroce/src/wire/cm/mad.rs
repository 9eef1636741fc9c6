//! The MAD around a message: its header of 24 bytes (specification 13.4.3) and the message behind it.

use super::fields::{Fields, MAD_BYTES};
use super::messages::Message;

const BASE_VERSION: u8 = 1;
/// Class "communication management".
const CLASS: u8 = 0x07;
const CLASS_VERSION: u8 = 2;
/// Method "Send".
const SEND: u8 = 0x03;

const CLASS_AT: usize = 1;
const CLASS_VERSION_AT: usize = 2;
const METHOD_AT: usize = 3;
const TRANSACTION_AT: usize = 8;
const ATTRIBUTE_AT: usize = 16;

/// A MAD of the connection manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CmMad {
    /// The transaction: the same in a message and in its repetitions and answers.
    pub transaction: u64,
    /// What it says.
    pub message: Message,
}

/// The bytes are no message of a connection manager that this one understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CmMadError {
    /// Not 256 bytes.
    #[error("{0} bytes are no MAD, which has {MAD_BYTES}")]
    Length(usize),
    /// Another version, class or method.
    #[error("the MAD is of another version, class or method")]
    Header,
    /// Alternate paths, services of datagrams and others.
    #[error("attribute {0:#06x} is not supported")]
    Attribute(u16),
}

impl CmMad {
    /// Parses a datagram's payload.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(bytes: &[u8]) -> Result<CmMad, CmMadError> {
        let whole = bytes
            .try_into()
            .map_err(|_| CmMadError::Length(bytes.len()))?;
        let fields = Fields(whole);
        let header = [0, CLASS_AT, CLASS_VERSION_AT, METHOD_AT].map(|at| fields.byte(at));
        if header != [BASE_VERSION, CLASS, CLASS_VERSION, SEND] {
            return Err(CmMadError::Header);
        }
        let attribute = fields.half(ATTRIBUTE_AT);
        let message = Message::read(attribute, &fields);
        Ok(CmMad {
            transaction: fields.long(TRANSACTION_AT),
            message: message.ok_or(CmMadError::Attribute(attribute))?,
        })
    }

    /// Its bytes on the wire.
    pub fn to_bytes(&self) -> [u8; MAD_BYTES] {
        let mut fields = Fields([0; MAD_BYTES]);
        fields.put(0, [BASE_VERSION, CLASS, CLASS_VERSION, SEND]);
        fields.put(TRANSACTION_AT, self.transaction.to_be_bytes());
        fields.put(ATTRIBUTE_AT, self.message.attribute().to_be_bytes());
        self.message.write(&mut fields);
        fields.0
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::prelude::*;

    use super::super::messages::{Comms, Dreq, Handled, Mra, Rej, RejReason, Rep};
    use super::super::req::{Req, Transport};
    use super::*;

    fn data<const N: usize>() -> impl Strategy<Value = [u8; N]> {
        prop::collection::vec(any::<u8>(), N).prop_map(|bytes| bytes.try_into().unwrap())
    }

    fn comms() -> impl Strategy<Value = Comms> {
        any::<(u32, u32)>().prop_map(|(local, remote)| Comms { local, remote })
    }

    fn handled() -> impl Strategy<Value = Handled> {
        prop::sample::select(vec![Handled::Req, Handled::Rep, Handled::Other])
    }

    fn requests() -> impl Strategy<Value = Message> {
        let numbers = any::<(u32, u64, u64, u32, u32, u16)>();
        let bytes = any::<(u8, u8, u8, u8, bool, bool)>();
        let small = (0..8_u8, 0..8_u8, 0..16_u8, 0..32_u8, 0..32_u8, 0..32_u8);
        let path = (any::<u128>(), any::<u128>(), 0..1_u32 << 20, 0..16_u8);
        (numbers, bytes, small, path, data(), 0..4_u8).prop_map(
            |(numbers, bytes, small, path, private_data, transport)| {
                Message::Req(Box::new(Req {
                    local_comm: numbers.0,
                    service: numbers.1,
                    ca_guid: numbers.2,
                    qpn: numbers.3 >> 8,
                    starting_psn: numbers.4 >> 8,
                    pkey: numbers.5,
                    responder_resources: bytes.0,
                    initiator_depth: bytes.1,
                    traffic_class: bytes.2,
                    hop_limit: bytes.3,
                    flow_control: bytes.4,
                    srq: bytes.5,
                    retry_count: small.0,
                    rnr_retry_count: small.1,
                    max_cm_retries: small.2,
                    remote_response_timeout: small.3,
                    local_response_timeout: small.4,
                    ack_timeout: small.5,
                    local_gid: Ipv6Addr::from(path.0),
                    remote_gid: Ipv6Addr::from(path.1),
                    flow_label: path.2,
                    mtu: path.3,
                    transport: match transport {
                        0 => Transport::Rc,
                        1 => Transport::Uc,
                        other => Transport::Other(other),
                    },
                    private_data,
                }))
            },
        )
    }

    fn replies() -> impl Strategy<Value = Message> {
        let numbers = any::<(u32, u32, u64, u8, u8, bool, bool)>();
        (comms(), numbers, 0..32_u8, 0..8_u8, data()).prop_map(
            |(comms, numbers, target_ack_delay, rnr_retry_count, private_data)| {
                Message::Rep(Box::new(Rep {
                    comms,
                    qpn: numbers.0 >> 8,
                    starting_psn: numbers.1 >> 8,
                    ca_guid: numbers.2,
                    responder_resources: numbers.3,
                    initiator_depth: numbers.4,
                    flow_control: numbers.5,
                    srq: numbers.6,
                    target_ack_delay,
                    rnr_retry_count,
                    private_data,
                }))
            },
        )
    }

    fn messages() -> impl Strategy<Value = Message> {
        let rejection = (
            comms(),
            handled(),
            any::<u16>(),
            any::<Option<u64>>(),
            data(),
        );
        prop_oneof![
            requests(),
            replies(),
            (comms(), handled(), 0..32_u8).prop_map(|(comms, of, service_timeout)| Message::Mra(
                Mra {
                    comms,
                    of,
                    service_timeout
                }
            )),
            rejection.prop_map(|(comms, of, reason, ca_guid, private_data)| Message::Rej(
                Box::new(Rej {
                    comms,
                    of,
                    reason: RejReason(reason),
                    ca_guid,
                    private_data,
                })
            )),
            comms().prop_map(Message::Rtu),
            (comms(), any::<u32>()).prop_map(|(comms, qpn)| Message::Dreq(Dreq {
                comms,
                remote_qpn: qpn >> 8
            })),
            comms().prop_map(Message::Drep),
        ]
    }

    proptest! {
        #[test]
        fn what_is_built_is_parsed(transaction in any::<u64>(), message in messages()) {
            let mad = CmMad { transaction, message };
            prop_assert_eq!(CmMad::parse(&mad.to_bytes()), Ok(mad));
        }

        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 250..260)) {
            let good = bytes.len() == MAD_BYTES && bytes.starts_with(&[1, 7, 2, 3]);
            prop_assert!(good || CmMad::parse(&bytes).is_err());
        }

        #[test]
        fn any_message_of_the_class_is_parsed_or_refused(
            attribute in 0x0e_u16..0x1e,
            rest in prop::collection::vec(any::<u8>(), MAD_BYTES),
        ) {
            let mut bytes = rest;
            bytes[..4].copy_from_slice(&[1, 7, 2, 3]);
            bytes[16..18].copy_from_slice(&attribute.to_be_bytes());
            let known = (0x10..=0x16).contains(&attribute);
            prop_assert_eq!(CmMad::parse(&bytes).is_ok(), known);
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
            private_data: [0x5a; 92],
            ..Req::default()
        };
        let mad = CmMad {
            transaction: 1,
            message: Message::Req(Box::new(req)),
        };
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
