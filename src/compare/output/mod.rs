//! The comparison as documents, one file a format.
