//! Figures and where they come from: clock, histograms, fairness, CPU time, device counters, protocol
//! limits. It must not know cases' transport or how results are written.
