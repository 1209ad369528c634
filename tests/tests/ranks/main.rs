//! Tests of `ombx` on ranks of the MPI under test: every benchmark, wrong data, launching, failures. `matrices` combines options.

mod accelerators;
mod benchmarks;
#[cfg(target_arch = "x86_64")]
mod calls;
mod congestion;
mod corruption;
mod early_ends;
mod failures;
mod figures;
mod files;
mod imb;
mod launches;
mod launching;
mod links;
mod options;
mod osu;
mod parsers;
mod provenance;
mod records;
mod suites;
