//! What was measured, as rows: which of them count. It must not judge a figure, nor know how one is shown.

pub mod standing;
