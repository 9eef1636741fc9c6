//! Figures of lines, each a value: those with functions of their own one a file, the others in `values`.

pub(crate) mod bandwidth_by_size;
pub(crate) mod latency_by_load;
mod searches;
pub(crate) mod set_up;
mod set_up_steps;
pub(crate) mod values;
