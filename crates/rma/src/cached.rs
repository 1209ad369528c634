//! The choice between memory that stays in the cache and memory that is not in it.

use ombx_core::{
    benchmark::cold::{Cache, Cold, Movable},
    error::Result,
    measure::{engine::run, session::Session},
};

/// Runs a kernel with the same memory in every iteration, or with other memory.
pub(crate) fn run_cached<K: Movable>(session: &mut Session<'_>) -> Result<()> {
    session.split(|session, cache| match cache {
        Cache::Warm => run::<K>(session),
        Cache::Cold => run::<Cold<K>>(session),
    })
}
