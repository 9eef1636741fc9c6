//! RoCEv2 in user space: a software device that needs neither RDMA hardware nor a kernel module. Its layers from
//! below: [`wire`] has the packet formats, [`net`] the sockets, [`transport`] the queue pairs and their protocol, and
//! [`verbs`] the C functions of libibverbs. Beside them [`cm`] is the connection manager, and [`rdmacm`] has the C
//! functions of librdmacm.

// The C interface, the system calls, and where the transport touches registered memory or lends it to a GSO batch of
// packets allow it, file by file.
#![deny(unsafe_code)]

pub mod cm;
pub mod net;
pub mod rdmacm;
mod sync;
pub mod transport;
pub mod verbs;
pub mod wire;
