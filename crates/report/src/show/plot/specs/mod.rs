//! Figures of lines, each a value: those with functions of their own one a file, the others in `values`.

pub(crate) mod latency_by_load;
pub(crate) mod set_up;
pub(crate) mod values;
