//! Settings that are text in files and on the wire: what is read by `FromStr` and written by `Display`.

/// Conversions of a type from and to text, and its schema, which is that of `json_schema!`.
macro_rules! as_text {
    ($type:ident, $schema:tt) => {
        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.to_string()
            }
        }

        impl TryFrom<String> for $type {
            type Error = <$type as std::str::FromStr>::Err;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}
pub(crate) use as_text;
