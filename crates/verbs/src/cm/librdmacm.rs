//! The functions of librdmacm or of the embedded device. librdmacm is loaded when a sweep first needs it: other sweeps
//! run without it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute_copy;
use std::sync::OnceLock;

use libc::sockaddr;
use rdma_sys::{
    ibv_qp_attr, rdma_cm_event, rdma_cm_id, rdma_conn_param, rdma_event_channel, rdma_port_space,
};

use super::cm_error::CmError;
use crate::VerbsLibrary;

/// The file name for the dynamic linker.
const FILE: &CStr = c"librdmacm.so.1";

/// The functions; their manual pages describe them.
pub(super) struct CmLibrary {
    pub(super) create_event_channel: unsafe extern "C" fn() -> *mut rdma_event_channel,
    pub(super) destroy_event_channel: unsafe extern "C" fn(*mut rdma_event_channel),
    pub(super) get_cm_event:
        unsafe extern "C" fn(*mut rdma_event_channel, *mut *mut rdma_cm_event) -> c_int,
    pub(super) ack_cm_event: unsafe extern "C" fn(*mut rdma_cm_event) -> c_int,
    pub(super) create_id: unsafe extern "C" fn(
        *mut rdma_event_channel,
        *mut *mut rdma_cm_id,
        *mut c_void,
        rdma_port_space::Type,
    ) -> c_int,
    pub(super) destroy_id: unsafe extern "C" fn(*mut rdma_cm_id) -> c_int,
    pub(super) bind_addr: unsafe extern "C" fn(*mut rdma_cm_id, *mut sockaddr) -> c_int,
    pub(super) resolve_addr:
        unsafe extern "C" fn(*mut rdma_cm_id, *mut sockaddr, *mut sockaddr, c_int) -> c_int,
    pub(super) resolve_route: unsafe extern "C" fn(*mut rdma_cm_id, c_int) -> c_int,
    pub(super) listen: unsafe extern "C" fn(*mut rdma_cm_id, c_int) -> c_int,
    pub(super) get_src_port: unsafe extern "C" fn(*mut rdma_cm_id) -> u16,
    pub(super) connect: unsafe extern "C" fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int,
    pub(super) establish: unsafe extern "C" fn(*mut rdma_cm_id) -> c_int,
    pub(super) accept: unsafe extern "C" fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int,
    pub(super) reject: unsafe extern "C" fn(*mut rdma_cm_id, *const c_void, u8) -> c_int,
    pub(super) disconnect: unsafe extern "C" fn(*mut rdma_cm_id) -> c_int,
    pub(super) init_qp_attr:
        unsafe extern "C" fn(*mut rdma_cm_id, *mut ibv_qp_attr, *mut c_int) -> c_int,
}

impl CmLibrary {
    /// The connection manager that goes with a verbs library: the embedded device's own; with any other librdmacm, which
    /// is loaded once and never unloaded.
    ///
    /// # Errors
    /// librdmacm is not installed, or lacks a function.
    pub(super) fn new(verbs: &VerbsLibrary) -> Result<&'static CmLibrary, CmError> {
        if verbs.is_embedded() {
            return Ok(CmLibrary::embedded());
        }
        static LOADED: OnceLock<CmLibrary> = OnceLock::new();
        // One that is not installed may be so for the next session.
        match LOADED.get() {
            Some(library) => Ok(library),
            None => load()
                .map(|library| LOADED.get_or_init(|| library))
                .map_err(|detail| CmError::NoLibrary { detail }),
        }
    }
}

impl CmLibrary {
    fn embedded() -> &'static CmLibrary {
        use softroce::rdmacm;
        static EMBEDDED: CmLibrary = CmLibrary {
            create_event_channel: rdmacm::create_event_channel,
            destroy_event_channel: rdmacm::destroy_event_channel,
            get_cm_event: rdmacm::get_cm_event,
            ack_cm_event: rdmacm::ack_cm_event,
            create_id: rdmacm::create_id,
            destroy_id: rdmacm::destroy_id,
            bind_addr: rdmacm::bind_addr,
            resolve_addr: rdmacm::resolve_addr,
            resolve_route: rdmacm::resolve_route,
            listen: rdmacm::listen,
            get_src_port: rdmacm::get_src_port,
            connect: rdmacm::connect,
            establish: rdmacm::establish,
            accept: rdmacm::accept,
            reject: rdmacm::reject,
            disconnect: rdmacm::disconnect,
            init_qp_attr: rdmacm::init_qp_attr,
        };
        &EMBEDDED
    }
}

fn load() -> Result<CmLibrary, String> {
    // SAFETY: the name is a C string; the library's initialisers are rdma-core's.
    let handle = unsafe { libc::dlopen(FILE.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(last_error());
    }
    macro_rules! table {
        ($($field:ident = $name:literal),* $(,)?) => {
            CmLibrary {
                $($field: {
                    // SAFETY: `handle` is open and the name a C string.
                    let symbol = unsafe { libc::dlsym(handle, $name.as_ptr()) };
                    if symbol.is_null() {
                        return Err(last_error());
                    }
                    // SAFETY: the address of a function whose declaration in rdma_cma.h the field's type follows;
                    // pointers to functions and to data have one size on every system that has verbs.
                    unsafe { transmute_copy(&symbol) }
                },)*
            }
        };
    }
    Ok(table! {
        create_event_channel = c"rdma_create_event_channel",
        destroy_event_channel = c"rdma_destroy_event_channel",
        get_cm_event = c"rdma_get_cm_event",
        ack_cm_event = c"rdma_ack_cm_event",
        create_id = c"rdma_create_id",
        destroy_id = c"rdma_destroy_id",
        bind_addr = c"rdma_bind_addr",
        resolve_addr = c"rdma_resolve_addr",
        resolve_route = c"rdma_resolve_route",
        listen = c"rdma_listen",
        get_src_port = c"rdma_get_src_port",
        connect = c"rdma_connect",
        establish = c"rdma_establish",
        accept = c"rdma_accept",
        reject = c"rdma_reject",
        disconnect = c"rdma_disconnect",
        init_qp_attr = c"rdma_init_qp_attr",
    })
}

/// The dynamic linker's last error.
fn last_error() -> String {
    // SAFETY: it returns null or a C string that lives until this thread's next call of the linker.
    unsafe {
        let text: *const c_char = libc::dlerror();
        if text.is_null() {
            "the dynamic linker does not say why".to_owned()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}
