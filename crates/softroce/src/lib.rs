//! RoCEv2 in user space: a device of software that needs neither RDMA hardware nor a kernel module. From below:
//! [`wire`] has the packets as they stand in UDP datagrams to port 4791, [`net`] their sockets, [`transport`] queue
//! pairs and the protocol between them, and [`verbs`] all of it as the C functions of libibverbs.

// The C interface, the system calls, and where the transport touches registered memory or lends it to a GSO batch of
// packets allow it, file by file.
#![deny(unsafe_code)]

pub mod net;
pub mod transport;
pub mod verbs;
pub mod wire;
