//! Opening devices and choosing a port: existing ones are found, and errors say what is missing and end with advice.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::os::raw::c_int;

use rdma_sys::{ibv_context, ibv_device};
use verbs::{
    Adapters, Faults, PortRequest, Route, VerbsError, VerbsLibrary, select, select_or_embedded,
};

use testing::null_library::null_library;

/// The null library with another list of devices.
fn with_list(
    list: unsafe extern "C" fn(*mut c_int) -> *mut *mut ibv_device,
) -> &'static VerbsLibrary {
    Box::leak(Box::new(VerbsLibrary { get_device_list: list, ..*null_library() }))
}

fn fails<T>(code: c_int) -> *mut T {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() = code };
    std::ptr::null_mut()
}

extern "C" fn no_rdma_in_the_kernel(_: *mut c_int) -> *mut *mut ibv_device {
    fails(libc::ENOSYS)
}

extern "C" fn out_of_memory(_: *mut c_int) -> *mut *mut ibv_device {
    fails(libc::ENOMEM)
}

extern "C" fn an_empty_list(count: *mut c_int) -> *mut *mut ibv_device {
    // SAFETY: the caller passes a writable count.
    unsafe {
        *count = 0;
        null_verbs::get_device_list(std::ptr::null_mut())
    }
}

extern "C" fn may_not_open(_: *mut ibv_device) -> *mut ibv_context {
    fails(libc::EACCES)
}

fn port_request(device: Option<&str>, ib_port: Option<u8>, gid_index: Option<u8>) -> PortRequest {
    PortRequest { device: device.map(str::to_owned), ib_port, gid_index, ..PortRequest::default() }
}

#[test]
fn a_kernel_without_rdma_has_no_device() {
    for library in [with_list(no_rdma_in_the_kernel), with_list(an_empty_list)] {
        let error = Adapters::open(library, None).err().unwrap();
        assert!(matches!(error, VerbsError::NoDevice), "{error}");
        assert!(error.is_bad_input());
        assert_eq!(error.to_string(), "no RDMA device on this machine");
        let hint = error.hint().unwrap();
        let has = |words| hint.contains(words);
        assert!(has("rdma link add") && has("soft0"), "{hint}");
    }
    let library = with_list(no_rdma_in_the_kernel);
    let error = select(library, &PortRequest::default(), None);
    assert!(matches!(error, Err(VerbsError::NoDevice)));
}

#[test]
fn a_list_that_fails_is_not_taken_for_an_empty_one() {
    let error = Adapters::open(with_list(out_of_memory), None).err().unwrap();
    assert!(matches!(error, VerbsError::Call { .. }), "{error}");
    let text = "ibv_get_device_list failed for null-verbs: Cannot allocate memory (os error 12)";
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_device_that_may_not_be_opened_is_named() {
    let library =
        Box::leak(Box::new(VerbsLibrary { open_device: may_not_open, ..*null_library() }));
    // Also if another could be opened: a device of that name is there.
    let error = select(library, &port_request(Some("loop0"), None, None), None).err().unwrap();
    let text = "ibv_open_device failed for loop0: Permission denied (os error 13)";
    assert_eq!(error.to_string(), text);
    assert!(error.hint().unwrap().contains("/dev/infiniband/uverbs"));
}

#[test]
fn the_first_usable_port_or_the_named_one_is_chosen() {
    let chosen = |request: &PortRequest| select(null_library(), request, None).unwrap();
    let port = chosen(&PortRequest::default());
    assert_eq!((port.context.name(), port.info.port), ("null0", 1));
    let gid = port.gid.unwrap();
    let entry = (gid.index, gid.gid.to_string());
    assert_eq!(entry, (1, "::ffff:127.0.0.1".into()));
    assert!(!port.wants_grh);
    let named = chosen(&port_request(Some("loop0"), Some(1), Some(0)));
    assert_eq!(named.context.name(), "loop0");
    assert_eq!(named.gid.unwrap().index, 0);
    assert!(named.wants_grh);
}

#[test]
fn what_is_not_there_is_answered_with_what_is() {
    let refused = |device, port, gid, flag| {
        let error = select(null_library(), &port_request(device, port, gid), None).err().unwrap();
        assert!(error.is_bad_input());
        assert!(error.hint().unwrap().contains(flag), "{error}");
        error.to_string()
    };
    let no_device = "there is no RDMA device \"mlx5_0\"; this machine has: null0, loop0";
    assert_eq!(refused(Some("mlx5_0"), None, None, "--device"), no_device);
    let no_port = "no RDMA port 0: loop0 has port 1";
    assert_eq!(refused(Some("loop0"), Some(0), None, "--ib-port"), no_port);
    let no_port_anywhere = "no RDMA port 2: null0 has port 1; loop0 has port 1";
    assert_eq!(refused(None, Some(2), None, "--ib-port"), no_port_anywhere);
    let no_gid = "loop0 port 1 has no GID at index 7; it has: 0 (fe80::200:ff:fe00:1, RoCE v1), \
                  1 (::ffff:127.0.0.1, RoCE v2)";
    assert_eq!(refused(Some("loop0"), None, Some(7), "--gid-index"), no_gid);
}

#[test]
fn a_device_of_the_system_comes_before_the_embedded_one() {
    let port = select_or_embedded(null_library(), &PortRequest::default(), None).unwrap();
    assert_eq!(port.context.name(), "null0");
    assert_eq!(port.embedded, None);
    let named =
        select_or_embedded(null_library(), &port_request(Some("soft0"), None, None), None).unwrap();
    assert_eq!(named.context.name(), "soft0");
    assert_eq!(named.embedded.unwrap().because, None);
}

#[test]
fn without_a_device_the_embedded_one_is_taken() {
    let library = with_list(no_rdma_in_the_kernel);
    let request = PortRequest {
        faults: Some("drop=5%,seed=3".parse::<Faults>().unwrap()),
        ..PortRequest::default()
    };
    let local = "127.0.0.1".parse().unwrap();
    let port = select_or_embedded(library, &request, Some(Route::to(local))).unwrap();
    assert_eq!(port.context.name(), "soft0");
    assert!(port.context.library().is_embedded());
    assert_eq!(port.info.link_gbit_per_s, None);
    assert!(port.gid.unwrap().gid.address().is_loopback());
    let embedded = port.embedded.clone().unwrap();
    assert_eq!(embedded.because.unwrap(), "no RDMA device on this machine");
    assert_eq!(embedded.faults, request.faults);
    // Each opening takes its own address.
    let other = select_or_embedded(library, &request, Some(Route::to(local))).unwrap();
    assert_ne!(other.gid.unwrap().gid, port.gid.unwrap().gid);
}

#[test]
fn the_embedded_device_does_not_hide_a_fault_or_a_wrong_choice() {
    let error = |library, request: &PortRequest| {
        let error = select_or_embedded(library, request, None);
        error.err().unwrap()
    };
    let nothing = PortRequest::default();
    let fault = error(with_list(out_of_memory), &nothing);
    assert!(matches!(fault, VerbsError::Call { .. }), "{fault}");
    let port = error(null_library(), &port_request(None, Some(2), None));
    assert!(matches!(port, VerbsError::NoSuchPort { .. }), "{port}");
    let gid = error(null_library(), &port_request(Some("loop0"), None, Some(7)));
    assert!(matches!(gid, VerbsError::NoSuchGid { .. }), "{gid}");
    let name = error(null_library(), &port_request(Some("mlx5_0"), None, None)).to_string();
    let expected = "there is no RDMA device \"mlx5_0\"; this machine has: null0, loop0, soft0 (embedded, loopback)";
    assert!(name.starts_with(expected), "{name}");
}

#[test]
fn faults_are_for_the_embedded_device() {
    let request = PortRequest {
        faults: Some("drop=5%".parse::<Faults>().unwrap()),
        ..PortRequest::default()
    };
    let error = select_or_embedded(null_library(), &request, None).err().unwrap();
    assert!(error.is_bad_input());
    let text = "--faults works only on the embedded software device, not on null0";
    assert_eq!(error.to_string(), text);
    assert!(error.hint().unwrap().contains("--device soft0"));
}
