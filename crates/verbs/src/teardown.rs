//! Objects given up by a call whose answer is wanted. Dropping one does the same and does not listen.

use std::sync::Arc;

use super::{Operation, VerbsError};

/// An object of a verbs library that a call ends.
pub trait Teardown {
    /// The call.
    const OPERATION: Operation;

    /// What it is, for messages.
    fn object(&self) -> String;

    /// Does the call, at most once, and returns what it returned. Dropping does nothing more then.
    fn tear_down(&mut self, last: TeardownToken) -> i32;
}

/// Vouches that the object is not used again. Only this module's neighbours make one.
pub struct TeardownToken(());

impl TeardownToken {
    /// The maker drops the object next.
    pub(super) fn new() -> TeardownToken {
        TeardownToken(())
    }
}

/// Ends an object of which nothing else is made any more.
///
/// # Errors
/// What the call returned; EBUSY without a call while something else holds the object.
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
