//! A verbs library as a table of its control functions. The data path (`post_send`, `post_recv`, `poll_cq`) goes
//! through the pointers in `ibv_context.ops`, so a call costs the same with every library. Extended verbs go through
//! those of the `verbs_context` around it, where there is one.

use std::net::IpAddr;
use std::os::raw::{c_char, c_int, c_uint, c_void};

use rdma_sys::{
    ibv_ah, ibv_ah_attr, ibv_async_event, ibv_comp_channel, ibv_context, ibv_cq, ibv_device,
    ibv_device_attr, ibv_gid_entry, ibv_mr, ibv_pd, ibv_port_attr, ibv_qp, ibv_qp_attr, ibv_qp_ex,
    ibv_qp_init_attr, ibv_srq, ibv_srq_attr, ibv_srq_init_attr,
};

use crate::ffi;

/// The functions, each in one row: its name in the table and in a module that has them all, libibverbs' function, and its
/// type. The first token is a `$`, for the macro that this makes.
macro_rules! functions {
    ($d:tt $($(#[$about:meta])* $name:ident, $system:path, ($($argument:ty),*) $(-> $result:ty)?;)*) => {
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
            /// Below which the kernel's files of its devices are: `/`, but in tests.
            pub root: &'static str,
            /// The addresses of interfaces with the bits of their prefixes: this machine's, but in tests.
            pub prefixes: fn() -> Vec<(IpAddr, u8)>,
            /// The address from which packets to another one leave: this machine's, but in tests.
            pub source: fn(IpAddr) -> Option<IpAddr>,
            $($(#[$about])* pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        static SYSTEM: VerbsLibrary = VerbsLibrary {
            name: "libibverbs",
            root: "/",
            prefixes: crate::prefixes_of_this_machine,
            source: crate::source_of_this_machine,
            $($name: $system,)*
        };

        /// A [`VerbsLibrary`] of this name whose functions all are in one module, under the names of its fields.
        #[macro_export]
        macro_rules! library_of {
            ($d library:literal, $d room:path) => {{
                use $d room as room;
                $d crate::VerbsLibrary {
                    name: $d library,
                    root: "/",
                    prefixes: $d crate::prefixes_of_this_machine,
                    source: $d crate::source_of_this_machine,
                    $($name: room::$name,)*
                }
            }};
        }
    };
}

functions! { $
    get_device_list, rdma_sys::ibv_get_device_list, (*mut c_int) -> *mut *mut ibv_device;
    free_device_list, rdma_sys::ibv_free_device_list, (*mut *mut ibv_device);
    get_device_name, rdma_sys::ibv_get_device_name, (*mut ibv_device) -> *const c_char;
    open_device, rdma_sys::ibv_open_device, (*mut ibv_device) -> *mut ibv_context;
    close_device, rdma_sys::ibv_close_device, (*mut ibv_context) -> c_int;
    query_device, rdma_sys::ibv_query_device, (*mut ibv_context, *mut ibv_device_attr) -> c_int;
    /// Fills the whole of a zeroed `ibv_port_attr`, not the shorter one of the old ABI.
    query_port, ffi::query_port, (*mut ibv_context, u8, *mut ibv_port_attr) -> c_int;
    /// EOPNOTSUPP where libibverbs is older.
    query_port_speed, ffi::query_port_speed, (*mut ibv_context, u32, *mut u64) -> c_int;
    /// `ibv_query_gid_ex`: context, port, GID index, entry, flags (0). ENODATA for an empty index.
    query_gid_ex, ffi::query_gid_ex, (*mut ibv_context, u32, u32, *mut ibv_gid_entry, u32) -> c_int;
    get_async_event, rdma_sys::ibv_get_async_event, (*mut ibv_context, *mut ibv_async_event) -> c_int;
    ack_async_event, rdma_sys::ibv_ack_async_event, (*mut ibv_async_event);
    alloc_pd, rdma_sys::ibv_alloc_pd, (*mut ibv_context) -> *mut ibv_pd;
    dealloc_pd, rdma_sys::ibv_dealloc_pd, (*mut ibv_pd) -> c_int;
    /// The macro of verbs.h, which takes optional access flags too: a library or kernel without them drops them.
    reg_mr, ffi::reg_mr, (*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr;
    /// PD, offset, length, address in requests, descriptor, access. EOPNOTSUPP where libibverbs is older.
    reg_dmabuf_mr, ffi::reg_dmabuf_mr, (*mut ibv_pd, u64, usize, u64, c_int, c_int) -> *mut ibv_mr;
    dereg_mr, rdma_sys::ibv_dereg_mr, (*mut ibv_mr) -> c_int;
    create_comp_channel, rdma_sys::ibv_create_comp_channel, (*mut ibv_context) -> *mut ibv_comp_channel;
    destroy_comp_channel, rdma_sys::ibv_destroy_comp_channel, (*mut ibv_comp_channel) -> c_int;
    get_cq_event, rdma_sys::ibv_get_cq_event, (*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int;
    ack_cq_events, rdma_sys::ibv_ack_cq_events, (*mut ibv_cq, c_uint);
    /// Context, entries, user context, completion channel, completion vector.
    create_cq, rdma_sys::ibv_create_cq, (*mut ibv_context, c_int, *mut c_void, *mut ibv_comp_channel, c_int) -> *mut ibv_cq;
    destroy_cq, rdma_sys::ibv_destroy_cq, (*mut ibv_cq) -> c_int;
    create_srq, rdma_sys::ibv_create_srq, (*mut ibv_pd, *mut ibv_srq_init_attr) -> *mut ibv_srq;
    modify_srq, rdma_sys::ibv_modify_srq, (*mut ibv_srq, *mut ibv_srq_attr, c_int) -> c_int;
    destroy_srq, rdma_sys::ibv_destroy_srq, (*mut ibv_srq) -> c_int;
    create_qp, rdma_sys::ibv_create_qp, (*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp;
    /// Null for a QP that was made without operations for `ibv_wr_*`.
    qp_to_qp_ex, rdma_sys::ibv_qp_to_qp_ex, (*mut ibv_qp) -> *mut ibv_qp_ex;
    query_qp, rdma_sys::ibv_query_qp, (*mut ibv_qp, *mut ibv_qp_attr, c_int, *mut ibv_qp_init_attr) -> c_int;
    modify_qp, rdma_sys::ibv_modify_qp, (*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int;
    /// `mlx5dv_modify_qp_udp_sport(3)`, for RC and UC QPs in RTS; EOPNOTSUPP for other drivers' QPs.
    modify_qp_udp_sport, ffi::modify_qp_udp_sport, (*mut ibv_qp, u16) -> c_int;
    destroy_qp, rdma_sys::ibv_destroy_qp, (*mut ibv_qp) -> c_int;
    create_ah, rdma_sys::ibv_create_ah, (*mut ibv_pd, *mut ibv_ah_attr) -> *mut ibv_ah;
    destroy_ah, rdma_sys::ibv_destroy_ah, (*mut ibv_ah) -> c_int;
}

impl std::fmt::Debug for VerbsLibrary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl VerbsLibrary {
    /// rdma-core's libibverbs, with which this program is linked.
    pub fn system() -> &'static VerbsLibrary {
        &SYSTEM
    }

    /// This project's own software devices: `soft0` for loopback, and one for each network address of this machine.
    /// Listing shows the devices' addresses, and opening takes one; [`super::select_or_embedded`] opens only the
    /// device that it chooses.
    pub fn embedded() -> &'static VerbsLibrary {
        static EMBEDDED: VerbsLibrary = library_of!("embedded", softroce::verbs);
        &EMBEDDED
    }

    /// Whether its QPs are another object file's than its contexts: that of a library which is preloaded before libibverbs,
    /// such as one that makes MRC of RC.
    pub(super) fn is_overlaid(&self) -> bool {
        ffi::object_file(self.open_device as *const c_void)
            != ffi::object_file(self.create_qp as *const c_void)
    }

    pub fn is_system(&self) -> bool {
        std::ptr::eq(self, VerbsLibrary::system())
    }

    pub fn is_embedded(&self) -> bool {
        std::ptr::eq(self, VerbsLibrary::embedded())
    }
}
