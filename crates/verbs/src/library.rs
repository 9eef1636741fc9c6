//! A verbs library as a table of its control functions. The data path (`post_send`, `post_recv`, `poll_cq`) goes
//! through the pointers in `ibv_context.ops`, so a call costs the same with every library. Extended verbs go through
//! those of the `verbs_context` around it, where there is one.

use std::os::raw::{c_char, c_int, c_uint, c_void};

use rdma_sys::{
    ibv_ah, ibv_ah_attr, ibv_async_event, ibv_comp_channel, ibv_context, ibv_cq, ibv_device,
    ibv_device_attr, ibv_gid_entry, ibv_mr, ibv_pd, ibv_port_attr, ibv_qp, ibv_qp_attr, ibv_qp_ex,
    ibv_qp_init_attr, ibv_srq, ibv_srq_attr, ibv_srq_init_attr,
};

use super::ffi;

/// The control functions of one verbs library, each with the signature and the contract of the
/// libibverbs function of the same name (`ibv_open_device(3)` and so on).
///
/// # Safety contract
/// Every entry behaves as its manual page says: what it returns lives until the matching destroy
/// function is called, all entries may be called from any thread, and the structs it hands out have
/// libibverbs' layout, `ibv_context.ops` filled.
#[allow(missing_docs)] // each field is the libibverbs function of its name
#[derive(Clone, Copy)]
pub struct VerbsLibrary {
    /// Its name for messages: `libibverbs` or the name of an embedded device library.
    pub name: &'static str,
    pub get_device_list: unsafe extern "C" fn(*mut c_int) -> *mut *mut ibv_device,
    pub free_device_list: unsafe extern "C" fn(*mut *mut ibv_device),
    pub get_device_name: unsafe extern "C" fn(*mut ibv_device) -> *const c_char,
    pub open_device: unsafe extern "C" fn(*mut ibv_device) -> *mut ibv_context,
    pub close_device: unsafe extern "C" fn(*mut ibv_context) -> c_int,
    pub query_device: unsafe extern "C" fn(*mut ibv_context, *mut ibv_device_attr) -> c_int,
    /// Fills the whole of a zeroed `ibv_port_attr`, not the shorter one of the old ABI.
    pub query_port: unsafe extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr) -> c_int,
    /// `ibv_query_gid_ex`: context, port, GID index, entry, flags (0). ENODATA for an empty index.
    pub query_gid_ex:
        unsafe extern "C" fn(*mut ibv_context, u32, u32, *mut ibv_gid_entry, u32) -> c_int,
    pub get_async_event: unsafe extern "C" fn(*mut ibv_context, *mut ibv_async_event) -> c_int,
    pub ack_async_event: unsafe extern "C" fn(*mut ibv_async_event),
    pub alloc_pd: unsafe extern "C" fn(*mut ibv_context) -> *mut ibv_pd,
    pub dealloc_pd: unsafe extern "C" fn(*mut ibv_pd) -> c_int,
    pub reg_mr: unsafe extern "C" fn(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr,
    pub dereg_mr: unsafe extern "C" fn(*mut ibv_mr) -> c_int,
    pub create_comp_channel: unsafe extern "C" fn(*mut ibv_context) -> *mut ibv_comp_channel,
    pub destroy_comp_channel: unsafe extern "C" fn(*mut ibv_comp_channel) -> c_int,
    pub get_cq_event:
        unsafe extern "C" fn(*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int,
    pub ack_cq_events: unsafe extern "C" fn(*mut ibv_cq, c_uint),
    /// Context, entries, user context, completion channel, completion vector.
    pub create_cq: unsafe extern "C" fn(
        *mut ibv_context,
        c_int,
        *mut c_void,
        *mut ibv_comp_channel,
        c_int,
    ) -> *mut ibv_cq,
    pub destroy_cq: unsafe extern "C" fn(*mut ibv_cq) -> c_int,
    pub create_srq: unsafe extern "C" fn(*mut ibv_pd, *mut ibv_srq_init_attr) -> *mut ibv_srq,
    pub modify_srq: unsafe extern "C" fn(*mut ibv_srq, *mut ibv_srq_attr, c_int) -> c_int,
    pub destroy_srq: unsafe extern "C" fn(*mut ibv_srq) -> c_int,
    pub create_qp: unsafe extern "C" fn(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp,
    /// Null for a QP that was made without operations for `ibv_wr_*`.
    pub qp_to_qp_ex: unsafe extern "C" fn(*mut ibv_qp) -> *mut ibv_qp_ex,
    pub query_qp:
        unsafe extern "C" fn(*mut ibv_qp, *mut ibv_qp_attr, c_int, *mut ibv_qp_init_attr) -> c_int,
    pub modify_qp: unsafe extern "C" fn(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int,
    pub destroy_qp: unsafe extern "C" fn(*mut ibv_qp) -> c_int,
    pub create_ah: unsafe extern "C" fn(*mut ibv_pd, *mut ibv_ah_attr) -> *mut ibv_ah,
    pub destroy_ah: unsafe extern "C" fn(*mut ibv_ah) -> c_int,
}

impl std::fmt::Debug for VerbsLibrary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl VerbsLibrary {
    /// rdma-core's libibverbs.
    pub fn system() -> &'static VerbsLibrary {
        static SYSTEM: VerbsLibrary = VerbsLibrary {
            name: "libibverbs",
            get_device_list: rdma_sys::ibv_get_device_list,
            free_device_list: rdma_sys::ibv_free_device_list,
            get_device_name: rdma_sys::ibv_get_device_name,
            open_device: rdma_sys::ibv_open_device,
            close_device: rdma_sys::ibv_close_device,
            query_device: rdma_sys::ibv_query_device,
            query_port: ffi::query_port,
            query_gid_ex: ffi::query_gid_ex,
            get_async_event: rdma_sys::ibv_get_async_event,
            ack_async_event: rdma_sys::ibv_ack_async_event,
            alloc_pd: rdma_sys::ibv_alloc_pd,
            dealloc_pd: rdma_sys::ibv_dealloc_pd,
            reg_mr: rdma_sys::ibv_reg_mr,
            dereg_mr: rdma_sys::ibv_dereg_mr,
            create_comp_channel: rdma_sys::ibv_create_comp_channel,
            destroy_comp_channel: rdma_sys::ibv_destroy_comp_channel,
            get_cq_event: rdma_sys::ibv_get_cq_event,
            ack_cq_events: rdma_sys::ibv_ack_cq_events,
            create_cq: rdma_sys::ibv_create_cq,
            destroy_cq: rdma_sys::ibv_destroy_cq,
            create_srq: rdma_sys::ibv_create_srq,
            modify_srq: rdma_sys::ibv_modify_srq,
            destroy_srq: rdma_sys::ibv_destroy_srq,
            create_qp: rdma_sys::ibv_create_qp,
            qp_to_qp_ex: rdma_sys::ibv_qp_to_qp_ex,
            query_qp: rdma_sys::ibv_query_qp,
            modify_qp: rdma_sys::ibv_modify_qp,
            destroy_qp: rdma_sys::ibv_destroy_qp,
            create_ah: rdma_sys::ibv_create_ah,
            destroy_ah: rdma_sys::ibv_destroy_ah,
        };
        &SYSTEM
    }

    /// This project's own software devices: `soft0` for loopback, and one for each network address of this machine.
    /// Listing shows the devices' addresses, and opening takes one; [`super::select_or_embedded`] opens only the
    /// device that it chooses.
    pub fn embedded() -> &'static VerbsLibrary {
        use softroce::verbs;
        static EMBEDDED: VerbsLibrary = VerbsLibrary {
            name: "embedded",
            get_device_list: verbs::get_device_list,
            free_device_list: verbs::free_device_list,
            get_device_name: verbs::get_device_name,
            open_device: verbs::open_device,
            close_device: verbs::close_device,
            query_device: verbs::query_device,
            query_port: verbs::query_port,
            query_gid_ex: verbs::query_gid_ex,
            get_async_event: verbs::get_async_event,
            ack_async_event: verbs::ack_async_event,
            alloc_pd: verbs::alloc_pd,
            dealloc_pd: verbs::dealloc_pd,
            reg_mr: verbs::reg_mr,
            dereg_mr: verbs::dereg_mr,
            create_comp_channel: verbs::create_comp_channel,
            destroy_comp_channel: verbs::destroy_comp_channel,
            get_cq_event: verbs::get_cq_event,
            ack_cq_events: verbs::ack_cq_events,
            create_cq: verbs::create_cq,
            destroy_cq: verbs::destroy_cq,
            create_srq: verbs::create_srq,
            modify_srq: verbs::modify_srq,
            destroy_srq: verbs::destroy_srq,
            create_qp: verbs::create_qp,
            qp_to_qp_ex: verbs::qp_to_qp_ex,
            query_qp: verbs::query_qp,
            modify_qp: verbs::modify_qp,
            destroy_qp: verbs::destroy_qp,
            create_ah: verbs::create_ah,
            destroy_ah: verbs::destroy_ah,
        };
        &EMBEDDED
    }

    /// Whether this is [`VerbsLibrary::system`].
    pub fn is_system(&self) -> bool {
        std::ptr::eq(self, VerbsLibrary::system())
    }

    /// Whether this is [`VerbsLibrary::embedded`].
    pub fn is_embedded(&self) -> bool {
        std::ptr::eq(self, VerbsLibrary::embedded())
    }
}
