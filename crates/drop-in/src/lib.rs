//! Drop-in replacements of OMB and IMB: their tables, byte for byte.
//!
//! What a row means is decided by the benchmark; here it is only written as the other suite writes it.

pub mod imb;
pub mod osu;
