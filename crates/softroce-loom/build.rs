//! Leaves out the own tests of the device's files, which are not for loom.

fn main() {
    println!("cargo::rustc-cfg=loom");
}
