//! Memory windows: keys for parts of regions that a program binds and invalidates by requests, and its peer invalidates by
//! a SEND (InfiniBand specification 10.6.6.2). A window of type 1 is for all QPs of its protection domain, one of type 2 for the QP alone that bound it (2B).
//!
//! The low bits of a window's key are the program's, which changes them with each binding. The others are drawn, and no
//! region and no other window has a key with the same ones.
//!
//! Who handles a packet looks its key up first and writes then: what is in the hands of another thread at the instant of an
//! invalidation still arrives. A region that is deregistered, or a window that is freed, waits for it.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use provider::Binding;

use crate::transport::memory::{
    Access, Forbidden, KeyHasher, Memories, MemoryError, PdId, offset_within,
};

/// The most windows of a device.
pub const MAX_WINDOWS: usize = 1 << 16;

/// The windows of a device, by the high bits of their keys.
pub(crate) type Windows = HashMap<u32, Window, BuildHasherDefault<KeyHasher>>;

/// How `ibv_mw_type` numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowType {
    One = 1,
    Two = 2,
}

/// A QP whose request or whose peer's request has a key.
#[derive(Clone, Copy)]
pub(crate) struct User {
    pub(crate) pd: PdId,
    pub(crate) qpn: u32,
}

pub(crate) struct Window {
    pd: PdId,
    window_type: WindowType,
    key: u32,
    bound: Option<Bound>,
}

/// The part of a region that a window has.
#[derive(Clone, Copy)]
struct Bound {
    /// The key of the region.
    region: u32,
    /// The address of its start in requests to the region, and in those to the window.
    address: u64,
    iova: u64,
    length_bytes: u64,
    access: Access,
    /// The QP that bound it.
    qpn: u32,
}

/// What all keys of a window have in common.
fn place(key: u32) -> u32 {
    key >> 8
}

impl Memories {
    /// Makes a window that is not bound; returns its key.
    pub(crate) fn add_window(
        &mut self,
        pd: PdId,
        window_type: WindowType,
    ) -> Result<u32, MemoryError> {
        let mut windows = self.windows.lock();
        if windows.len() >= MAX_WINDOWS {
            return Err(MemoryError::Full);
        }
        let key = loop {
            let key = self.keys.draw() as u32;
            let mut keys = (0..=0xff).map(|low| key & !0xff | low);
            let is_region = keys.any(|other| self.regions.contains_key(&other));
            if !is_region && !windows.contains_key(&place(key)) {
                break key;
            }
        };
        windows.insert(place(key), Window { pd, window_type, key, bound: None });
        Ok(key)
    }

    /// Removes the window that had this key or has another of its keys.
    pub(crate) fn remove_window(&mut self, key: u32) {
        self.windows.lock().remove(&place(key));
    }

    /// Whether a window has this key, or could get it.
    pub(crate) fn is_of_window(&self, key: u32) -> bool {
        self.windows.lock().contains_key(&place(key))
    }

    /// Whether a window is bound to the region of this key.
    pub(crate) fn has_windows(&self, region: u32) -> bool {
        let windows = self.windows.lock();
        windows.values().any(|window| window.bound.is_some_and(|bound| bound.region == region))
    }

    /// Binds a window and gives it its new key. A length of 0 unbinds one of type 1; one of type 2 must not be bound.
    pub(crate) fn bind(&self, user: User, binding: &Binding) -> Result<(), Forbidden> {
        let mut windows = self.windows.lock();
        let window = windows.get_mut(&place(binding.rkey)).ok_or(Forbidden)?;
        let is_bound_by_this = binding.length_bytes > 0;
        let may_be = match window.window_type {
            WindowType::One => true,
            WindowType::Two => is_bound_by_this && window.bound.is_none(),
        };
        if !may_be || window.pd != user.pd {
            return Err(Forbidden);
        }
        let bound = is_bound_by_this.then(|| self.part(user, binding)).transpose()?;
        (window.key, window.bound) = (binding.new_rkey, bound);
        Ok(())
    }

    /// The part of a region that is to be bound: a window that is written to needs a region that this end may write to.
    fn part(&self, user: User, binding: &Binding) -> Result<Bound, Forbidden> {
        let access = Access(binding.access.into());
        let is_written = access.0 & (Access::REMOTE_WRITE.0 | Access::REMOTE_ATOMIC.0) != 0;
        let written = if is_written { Access::LOCAL_WRITE.0 } else { 0 };
        let need = Access(Access::BIND.0 | written);
        let (region, address, length_bytes) = (binding.lkey, binding.address, binding.length_bytes);
        self.resolve(region, user.pd, address, length_bytes, need).ok_or(Forbidden)?;
        let iova = if access.allows(Access::ZERO_BASED) { 0 } else { address };
        Ok(Bound { region, address, iova, length_bytes, access, qpn: user.qpn })
    }

    /// Ends the binding of a window of type 2, for the QP that bound it.
    pub(crate) fn invalidate(&self, user: User, key: u32) -> Result<(), Forbidden> {
        let mut windows = self.windows.lock();
        let window = windows.get_mut(&place(key)).filter(|window| {
            window.key == key && window.pd == user.pd && window.window_type == WindowType::Two
        });
        let bound = window.and_then(|it| it.bound.take_if(|bound| bound.qpn == user.qpn));
        bound.map(|_| ()).ok_or(Forbidden)
    }

    /// As [`Memories::resolve`], for a key that a peer has, which may be a window's. Writing needs
    /// [`Access::LOCAL_WRITE`] of the region, whoever writes.
    pub(crate) fn resolve_remote(
        &self,
        key: u32,
        user: User,
        iova: u64,
        length_bytes: u64,
        need: Access,
    ) -> Option<*mut u8> {
        match self.regions.get(&key) {
            Some(region) => region.at(user.pd, iova, length_bytes, need),
            None => self.resolve_window(key, user, iova, length_bytes, need),
        }
    }

    #[cold]
    fn resolve_window(
        &self,
        key: u32,
        user: User,
        iova: u64,
        length_bytes: u64,
        need: Access,
    ) -> Option<*mut u8> {
        let windows = self.windows.lock();
        let window = windows.get(&place(key))?;
        let bound = window.bound?;
        let local = need.0 & Access::LOCAL_WRITE.0;
        let offset = offset_within(bound.iova, bound.length_bytes, iova, length_bytes)?;
        let is_for_user = window.window_type == WindowType::One || bound.qpn == user.qpn;
        let allowed = window.key == key
            && window.pd == user.pd
            && bound.access.allows(Access(need.0 & !local));
        if !is_for_user || !allowed {
            return None;
        }
        let address = bound.address + offset;
        self.regions.get(&bound.region)?.at(user.pd, address, length_bytes, Access(local))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::memory::Region;

    const PD: PdId = PdId(1);
    const USER: User = User { pd: PD, qpn: 5 };
    const OTHER_QP: User = User { qpn: 6, ..USER };
    const OTHER_PD: User = User { pd: PdId(2), ..USER };
    const READ: Access = Access::REMOTE_READ;
    const WRITE: Access = Access(Access::REMOTE_WRITE.0 | Access::LOCAL_WRITE.0);
    /// Local writing and binding, and nothing for peers.
    const REGION: Region = Region {
        pd: PD,
        address: 0x1000,
        length_bytes: 0x100,
        iova: 0x8_0000,
        access: Access(0x11),
    };

    /// A region with a window of this type, and the binding of its bytes from 0x10 to 0x20 for reading and writing.
    fn with_window(window_type: WindowType) -> (Memories, Binding) {
        let mut memories = Memories::default();
        let lkey = memories.insert(REGION).unwrap();
        let rkey = memories.add_window(PD, window_type).unwrap();
        let new_rkey = rkey ^ 1;
        let (address, length_bytes) = (0x8_0010, 0x10);
        (memories, Binding { rkey, new_rkey, lkey, address, length_bytes, access: 6 })
    }

    fn found(memories: &Memories, key: u32, user: User, iova: u64, need: Access) -> Option<usize> {
        memories.resolve_remote(key, user, iova, 8, need).map(<*mut u8>::addr)
    }

    #[test]
    fn a_window_gives_its_part_its_access_and_its_key() {
        for window_type in [WindowType::One, WindowType::Two] {
            let (memories, binding) = with_window(window_type);
            let key = binding.new_rkey;
            assert_eq!(found(&memories, binding.rkey, USER, 0x8_0010, READ), None);
            assert_eq!(memories.bind(USER, &binding), Ok(()));
            let is_for_all = window_type == WindowType::One;
            for (used, user, iova, need, expected) in [
                (key, USER, 0x8_0010, READ, Some(0x1010)),
                (key, USER, 0x8_0018, WRITE, Some(0x1018)),
                (key, USER, 0x8_0019, READ, None),
                (key, USER, 0x8_000f, READ, None),
                (key, USER, u64::MAX - 4, READ, None),
                (key, USER, 0x8_0010, Access::REMOTE_ATOMIC, None),
                (binding.rkey, USER, 0x8_0010, READ, None),
                (binding.lkey, USER, 0x8_0010, READ, None),
                (key, OTHER_QP, 0x8_0010, READ, is_for_all.then_some(0x1010)),
                (key, OTHER_PD, 0x8_0010, READ, None),
            ] {
                let at = found(&memories, used, user, iova, need);
                assert_eq!(at, expected, "{window_type:?} {used:#x} {iova:#x} {}", user.qpn);
            }
            // It is no key for this end's own elements.
            assert!(memories.resolve(key, PD, 0x8_0010, 8, Access::NONE).is_none());
        }
    }

    #[test]
    fn bindings_that_make_no_sense_change_nothing() {
        type Change = fn(&mut Binding);
        let cases: [(Change, User); 6] = [
            (|binding| binding.address = 0x7_ffff, USER),
            (|binding| binding.length_bytes = 0xf1, USER),
            (|binding| binding.lkey ^= 1, USER),
            (|binding| binding.rkey ^= 0x100, USER),
            (|_| {}, OTHER_PD),
            (|binding| binding.lkey = binding.rkey, USER),
        ];
        for window_type in [WindowType::One, WindowType::Two] {
            for (number, (change, user)) in cases.iter().enumerate() {
                let (memories, binding) = with_window(window_type);
                let mut wrong = binding;
                change(&mut wrong);
                assert_eq!(memories.bind(*user, &wrong), Err(Forbidden), "{number}");
                assert_eq!(found(&memories, wrong.new_rkey, USER, 0x8_0010, READ), None);
                assert_eq!(memories.bind(USER, &binding), Ok(()), "{number}");
            }
        }
    }

    /// The access of a region, that of a window, and whether the two go together.
    #[test]
    fn a_region_allows_what_its_windows_need() {
        for (of_region, of_window, fits) in [
            (0x10, 0, true),
            (0x10, 4, true),
            (0x10, 2, false),
            (0x10, 8, false),
            (0x11, 0xe, true),
            (0xf, 0, false),
        ] {
            let (mut memories, binding) = with_window(WindowType::Two);
            let region = Region { access: Access(of_region), ..REGION };
            let lkey = memories.insert(region).unwrap();
            let bound = memories.bind(USER, &Binding { lkey, access: of_window, ..binding });
            assert_eq!(bound.is_ok(), fits, "{of_region:#x} {of_window:#x}");
        }
    }

    #[test]
    fn type_1_is_bound_anew_and_type_2_after_its_invalidation() {
        let (memories, first) = with_window(WindowType::One);
        let again = Binding { new_rkey: first.rkey, address: 0x8_0020, ..first };
        let unbinding = Binding { length_bytes: 0, ..first };
        assert_eq!([&first, &again].map(|it| memories.bind(USER, it)), [Ok(()); 2]);
        assert_eq!(found(&memories, first.new_rkey, USER, 0x8_0010, READ), None);
        assert_eq!(found(&memories, again.new_rkey, USER, 0x8_0020, READ), Some(0x1020));
        assert_eq!(memories.invalidate(USER, again.new_rkey), Err(Forbidden));
        assert_eq!(memories.bind(OTHER_QP, &unbinding), Ok(()));
        assert_eq!(found(&memories, unbinding.new_rkey, USER, 0x8_0010, READ), None);

        let (memories_2, of_type_2) = with_window(WindowType::Two);
        let key = of_type_2.new_rkey;
        let without_bytes = Binding { length_bytes: 0, ..of_type_2 };
        assert_eq!(memories_2.invalidate(USER, of_type_2.rkey), Err(Forbidden), "it is not bound");
        assert_eq!(memories_2.bind(USER, &without_bytes), Err(Forbidden));
        assert_eq!(memories_2.bind(USER, &of_type_2), Ok(()));
        assert_eq!(memories_2.bind(USER, &of_type_2), Err(Forbidden), "it is bound");
        for (user, used) in [(OTHER_QP, key), (OTHER_PD, key), (USER, of_type_2.rkey)] {
            assert_eq!(memories_2.invalidate(user, used), Err(Forbidden));
        }
        assert_eq!(memories_2.invalidate(USER, key), Ok(()));
        assert_eq!(found(&memories_2, key, USER, 0x8_0010, READ), None);
        assert_eq!(memories_2.bind(OTHER_QP, &of_type_2), Ok(()));
        assert_eq!(found(&memories_2, key, OTHER_QP, 0x8_0010, READ), Some(0x1010));
    }

    #[test]
    fn addresses_of_a_zero_based_window_begin_with_0() {
        let (memories, binding) = with_window(WindowType::Two);
        assert_eq!(memories.bind(USER, &Binding { access: 0x24, ..binding }), Ok(()));
        let at =
            [0, 8, 9, 0x8_0010].map(|iova| found(&memories, binding.new_rkey, USER, iova, READ));
        assert_eq!(at, [Some(0x1010), Some(0x1018), None, None]);
    }

    #[test]
    fn a_region_stays_until_its_windows_have_gone() {
        let (mut memories, binding) = with_window(WindowType::Two);
        let key = binding.new_rkey;
        assert_eq!(memories.bind(USER, &binding), Ok(()));
        assert_eq!(memories.remove(binding.lkey), Err(MemoryError::InUse));
        assert_eq!(found(&memories, key, USER, 0x8_0010, READ), Some(0x1010));
        memories.remove_window(binding.rkey);
        assert_eq!(found(&memories, key, USER, 0x8_0010, READ), None);
        assert_eq!(memories.remove(binding.lkey), Ok(()));
    }
}
