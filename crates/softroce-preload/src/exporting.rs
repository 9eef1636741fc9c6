//! How functions of the device get the names that programs know.

/// Exports functions of the device unchanged.
macro_rules! export {
    ($room:ident; $($name:ident = $function:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        #[doc = concat!("`", stringify!($name), "(3)`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            // SAFETY: forwarded as it came.
            unsafe { $room::$function($($argument),*) }
        }
    )*};
}

/// Exports functions that fail with EOPNOTSUPP, whatever their arguments. The caller has `verbs` in scope.
macro_rules! refuse {
    ($($name:ident -> $result:ty = $value:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "(3)`, refused.")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> $result {
            verbs::refuse(stringify!($name));
            $value
        }
    )*};
}

pub(crate) use {export, refuse};
