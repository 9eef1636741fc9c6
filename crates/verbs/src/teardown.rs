//! Destroying objects with the result of the call. Dropping an object makes the same call and ignores its result.

use std::sync::Arc;

use super::{Operation, VerbsError};

/// An object that a call of its verbs library destroys.
pub trait Teardown {
    /// The call that destroys it.
    const OPERATION: Operation;

    fn object(&self) -> String;

    /// Makes the call, at most once, and returns its result. Dropping does nothing afterwards.
    fn tear_down(&mut self, token: TeardownToken) -> i32;
}

/// Proof that the object is not used again. Only the modules of the objects can create it.
pub struct TeardownToken(());

impl TeardownToken {
    /// The caller drops the object next.
    pub(super) fn new() -> TeardownToken {
        TeardownToken(())
    }
}

/// Destroys an object that has no other owner.
///
/// # Errors
/// The error of the call; EBUSY without a call if the object has other owners.
pub fn tear_down<T: Teardown>(object: Arc<T>) -> Result<(), VerbsError> {
    let name = object.object();
    let Some(mut object) = Arc::into_inner(object) else {
        return Err(VerbsError::returned(T::OPERATION, name, libc::EBUSY));
    };
    match object.tear_down(TeardownToken::new()) {
        0 => Ok(()),
        code => Err(VerbsError::returned(T::OPERATION, name, code)),
    }
}
