//! The same work on several hosts or jobs at the same time.

use std::{panic, thread};

/// Calls `work` with every item, each in its own thread, and returns the results in the order of the items.
pub(crate) fn map<I: Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> T + Sync,
) -> Vec<T> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = items.into_iter().map(|item| scope.spawn(move || work(item))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|e| panic::resume_unwind(e))).collect()
    })
}
