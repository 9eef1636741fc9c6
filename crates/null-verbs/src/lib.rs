//! Verbs libraries without a device.
