//! Memory windows (`ibv_alloc_mw(3)`), and what binds them, a request of a send queue.

use std::os::raw::c_int;

use rdma_sys::{ibv_access_flags as Flags, ibv_mw, ibv_mw_bind_info, ibv_mw_type, ibv_pd};

use crate::context::Context;
use crate::domain::Pd;
use crate::errno::{pointer_or_errno, zero_or_error};
use crate::object::{Behind, Use};
use crate::work::Operation;

/// The data of a window.
struct Mw {
    /// The key that it was made with. The one in the verbs struct is the program's to change.
    rkey: u32,
    _domain: Use,
}

impl Behind<ibv_mw> for Mw {}

unsafe fn alloc(pd: *mut ibv_pd, mw_type: ibv_mw_type::Type) -> Result<*mut ibv_mw, c_int> {
    // SAFETY: a live domain of an open context.
    let (domain, context, open) =
        unsafe { (Pd::from_raw(pd), (*pd).context, Context::own((*pd).context)?) };
    let rkey = open.engine().allocate_window(domain.id, mw_type)?;
    let verbs = ibv_mw { context, pd, rkey, handle: rkey, type_: mw_type };
    Ok(Mw { rkey, _domain: domain.users.begin() }.lend(verbs))
}

/// `ibv_alloc_mw(3)`, by the pointer in `ibv_context.ops`. EINVAL for other types than 1 and 2; ENOMEM beyond the device's
/// number of windows.
pub unsafe extern "C" fn alloc_mw(pd: *mut ibv_pd, mw_type: ibv_mw_type::Type) -> *mut ibv_mw {
    // SAFETY: as the caller's.
    pointer_or_errno(unsafe { alloc(pd, mw_type) })
}

/// `ibv_dealloc_mw(3)`, by the pointer in `ibv_context.ops`: it need not be unbound.
pub unsafe extern "C" fn dealloc_mw(mw: *mut ibv_mw) -> c_int {
    // SAFETY: a live window of an open context.
    zero_or_error(unsafe {
        Context::own((*mw).context).map(|context| {
            context.engine().free_window(Mw::from_raw(mw).rkey);
            drop(Mw::take_back(mw));
        })
    })
}

/// The low bits of a key, which a program chooses.
const CHOSEN: u32 = 0xff;

/// What peers may do by a window, and whether its addresses begin with 0. Local writing changes nothing; rdma-core's tests ask
/// for it.
const ACCESS: u32 = Flags::IBV_ACCESS_LOCAL_WRITE.0
    | Flags::IBV_ACCESS_REMOTE_WRITE.0
    | Flags::IBV_ACCESS_REMOTE_READ.0
    | Flags::IBV_ACCESS_REMOTE_ATOMIC.0
    | Flags::IBV_ACCESS_ZERO_BASED.0;

/// A binding of a window to a part of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The window's key, and the one that it gets.
    pub rkey: u32,
    pub new_rkey: u32,
    /// The key of the region; 0 for none.
    pub lkey: u32,
    /// Those `ibv_access_flags` that concern peers.
    pub access: u8,
    pub address: u64,
    /// 0 unbinds the window.
    pub length_bytes: u64,
}

impl Binding {
    /// By `ibv_bind_mw(3)`, which chooses the next key. EINVAL for a window of type 2, for addresses from 0 on, and for
    /// other access than peers can have.
    ///
    /// # Safety
    /// A live window, and a region that is live or null.
    pub unsafe fn of_type_1(mw: *const ibv_mw, info: &ibv_mw_bind_info) -> Result<Binding, c_int> {
        // SAFETY: the caller's.
        let (is_type_1, rkey) = unsafe { ((*mw).type_ == ibv_mw_type::IBV_MW_TYPE_1, (*mw).rkey) };
        let is_zero_based = info.mw_access_flags & Flags::IBV_ACCESS_ZERO_BASED.0 != 0;
        if !is_type_1 || is_zero_based || info.mr.is_null() && (info.addr, info.length) != (0, 0) {
            return Err(libc::EINVAL);
        }
        // SAFETY: as the caller's.
        unsafe { Binding::new(rkey, rkey.wrapping_add(1), info) }
    }

    /// By a request (`IBV_WR_BIND_MW`), which chooses the low bits of the key. EINVAL for a window of type 1, without a
    /// region, and for other access than peers can have.
    ///
    /// # Safety
    /// As of [`Binding::of_type_1`].
    pub unsafe fn of_type_2(
        mw: *const ibv_mw,
        key: u32,
        info: &ibv_mw_bind_info,
    ) -> Result<Binding, c_int> {
        // SAFETY: the caller's.
        let (is_type_2, rkey) = unsafe { ((*mw).type_ == ibv_mw_type::IBV_MW_TYPE_2, (*mw).rkey) };
        if !is_type_2 || info.mr.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: as the caller's.
        unsafe { Binding::new(rkey, key, info) }
    }

    /// # Safety
    /// The region is live or null.
    unsafe fn new(rkey: u32, chosen: u32, info: &ibv_mw_bind_info) -> Result<Binding, c_int> {
        if info.mw_access_flags & !ACCESS != 0 {
            return Err(libc::EINVAL);
        }
        Ok(Binding {
            rkey,
            new_rkey: rkey & !CHOSEN | chosen & CHOSEN,
            // SAFETY: the caller's.
            lkey: unsafe { info.mr.as_ref() }.map_or(0, |mr| mr.lkey),
            access: info.mw_access_flags as u8,
            address: info.addr,
            length_bytes: info.length,
        })
    }
}

impl From<Binding> for Operation {
    fn from(binding: Binding) -> Operation {
        let Binding { rkey, new_rkey, lkey, access, address, length_bytes } = binding;
        Operation::Bind { rkey, new_rkey, lkey, access, address, length_bytes }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use rdma_sys::{bind_mw_t, ibv_mr, ibv_send_wr};
    use testing::verbs_user::blank;

    use super::*;

    /// As verbs.h of rdma-core has them on 64 bits: programs read and write these places.
    #[test]
    fn structs_lie_as_programs_have_them() {
        let of_window =
            [offset_of!(ibv_mw, rkey), offset_of!(ibv_mw, handle), offset_of!(ibv_mw, type_)];
        assert_eq!(of_window, [16, 20, 24]);
        assert_eq!(
            (offset_of!(ibv_send_wr, bind_mw_tso_union), size_of::<ibv_send_wr>()),
            (80, 128)
        );
        assert_eq!((offset_of!(bind_mw_t, rkey), offset_of!(bind_mw_t, bind_info)), (8, 16));
        assert_eq!((offset_of!(ibv_mw_bind_info, addr), size_of::<ibv_mw_bind_info>()), (8, 32));
    }

    /// Of a window as if it were of either type.
    fn of_type(
        mw: &ibv_mw,
        info: &ibv_mw_bind_info,
    ) -> (Result<Binding, c_int>, Result<Binding, c_int>) {
        // SAFETY: live structs, or null where that may be.
        unsafe { (Binding::of_type_1(mw, info), Binding::of_type_2(mw, 0x9abc_de05, info)) }
    }

    #[test]
    fn a_binding_keeps_the_windows_part_of_the_key() {
        let mut mw: ibv_mw = blank();
        (mw.rkey, mw.type_) = (0x1234_56ff, ibv_mw_type::IBV_MW_TYPE_1);
        let mut mr: ibv_mr = blank();
        mr.lkey = 7;
        let info = ibv_mw_bind_info { mr: &raw mut mr, addr: 1, length: 2, mw_access_flags: 6 };
        let nothing = ibv_mw_bind_info { mr: std::ptr::null_mut(), addr: 0, length: 0, ..info };
        let (first, wrong_type) = of_type(&mw, &info);
        let binding = first.unwrap();
        let keys = (binding.rkey, binding.new_rkey, binding.lkey);
        assert_eq!(keys, (0x1234_56ff, 0x1234_5600, 7));
        assert_eq!(wrong_type, Err(libc::EINVAL));
        assert_eq!(of_type(&mw, &nothing).0.unwrap().lkey, 0);
        for (flags, addr) in [(0x21, 0), (0x20, 0), (0x10, 0), (6, 1)] {
            let wrong = ibv_mw_bind_info { mw_access_flags: flags, addr, ..nothing };
            assert_eq!(of_type(&mw, &wrong).0, Err(libc::EINVAL), "{flags:#x} {addr}");
        }
        mw.type_ = ibv_mw_type::IBV_MW_TYPE_2;
        let (not_of_type_1, second) = of_type(&mw, &info);
        assert_eq!(not_of_type_1, Err(libc::EINVAL));
        assert_eq!(second.unwrap().new_rkey, 0x1234_5605);
        assert_eq!(of_type(&mw, &nothing).1, Err(libc::EINVAL));
    }
}
