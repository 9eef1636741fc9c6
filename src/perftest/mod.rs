//! perftest's programs as something to measure beside: their arguments for a case, what they print, and
//! their processes. It knows cases; it must not know verbs, the control protocol or result files.
