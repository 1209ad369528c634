//! What the programs and benches of this package share: work on results, and links that nobody measures.

pub mod link;
pub mod work;
