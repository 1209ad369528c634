//! How ranks start together before a sample: barriers, and windows of time on one synchronised clock.

pub mod clock_sync;
pub mod mesh;
pub mod pace;
pub mod paced;
pub mod windows;
