//! Drop-in replacements of OMB and IMB: what a program and its options measure in ombx, and their tables, byte for byte. This crate gets
//! options as plain values and must not know clap and how ranks start: `ombx-cli` reads the words, and `ombx-launch` writes the tables.
//!
//! A program is a table of benchmarks. Its options become parts of a run ([`imb::plan`], [`osu::options`]). What a row means is decided by
//! the benchmark; here it is only written as the other suite writes it.

pub mod imb;
pub mod osu;
