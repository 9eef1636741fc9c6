//! Endpoints: calls that wait for their events.

use std::ffi::CString;
use std::ptr::null_mut;
use std::thread;

use rdma_sys::*;
use softroce::rdmacm;

use super::connections::exchange;
use super::testbed::{Device, Id, qp_attributes, raw_address};
use crate::support::raw::{blank, errno, ok};

/// The addresses of an endpoint at a device, which connects to itself.
fn addresses(device: &Device, port: u16, flags: i32) -> *mut rdma_addrinfo {
    let node = CString::new(device.address.to_string());
    let port = CString::new(port.to_string());
    let mut source = raw_address((device.address, 0).into());
    let mut hints: rdma_addrinfo = blank();
    hints.ai_flags = flags;
    if flags == 0 {
        hints.ai_src_addr = (&raw mut source).cast();
        hints.ai_src_len = size_of_val(&source) as u32;
    }
    hints.ai_port_space = rdma_port_space::RDMA_PS_TCP as i32;
    let mut found = null_mut();
    // SAFETY: two strings, hints, and a place for the pointer.
    ok(unsafe {
        rdmacm::getaddrinfo(
            node.unwrap().as_ptr(),
            port.unwrap().as_ptr(),
            &raw const hints,
            &raw mut found,
        )
    });
    found
}

fn endpoint(addresses: *mut rdma_addrinfo) -> Id {
    let mut id = null_mut();
    // SAFETY: addresses, attributes, and a place for the pointer; the addresses are not used again.
    unsafe {
        ok(rdmacm::create_ep(
            &raw mut id,
            addresses,
            null_mut(),
            &mut qp_attributes(1),
        ));
        rdmacm::freeaddrinfo(addresses);
    }
    Id(id)
}

#[test]
fn a_server_and_a_client_of_a_few_calls() {
    let device = Device::open("");
    let listener = endpoint(addresses(&device, 0, 1));
    ok(listener.listen_as_bound());
    let port = listener.local_port();
    let server = thread::spawn(move || {
        let listener = listener;
        let mut id = null_mut();
        // SAFETY: a live id and a place for the pointer; then a live id with a QP.
        unsafe {
            ok(rdmacm::get_request(listener.0, &raw mut id));
            ok(rdmacm::accept(id, null_mut()));
        }
        Id(id)
    });
    let client = endpoint(addresses(&device, port, 0));
    ok(client.connect_with(null_mut()));
    let server = server.join().unwrap();
    exchange(&client, &server);
    client.disconnect();
    server.disconnect();
}

#[test]
fn a_refusal_is_the_calls_error() {
    let device = Device::open("");
    let client = endpoint(addresses(&device, 9, 0));
    let code = client.connect_with(null_mut());
    assert_eq!((code, errno()), (-1, libc::ECONNREFUSED));
}
