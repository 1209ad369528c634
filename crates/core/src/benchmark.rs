//! What a benchmark is: its entry in the registry, its kernel, and the cases that users choose.

pub mod axis;
pub mod case;
pub mod compute;
pub mod context;
pub mod entry;
pub mod figure;
pub mod kernel;
pub mod layout;
pub mod payload;
pub mod preset;
pub mod registry;
pub mod root;
pub mod setting;
pub mod threads;
pub mod work;
