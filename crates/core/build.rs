//! Records how timed loops are compiled: crates with benchmarks have the optimisation of this one in a release.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=OMBX_OPT_LEVEL={}", std::env::var("OPT_LEVEL").unwrap_or_default());
}
