//! The same work on several hosts or jobs at the same time.

use std::{
    panic,
    sync::{Arc, LazyLock, Mutex, PoisonError, atomic::AtomicBool},
    thread,
};

use ombx_host::signals::{self, Interruption};
use ombx_record::error::{Error, Exit, Result};
use signal_hook::flag;

/// Calls `work` with every item, each in its own thread, and returns the results in the order of the items. If the system allows
/// fewer threads, those that run take the remaining items.
pub(crate) fn map<I: Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> T + Sync,
) -> Vec<T> {
    let items: Vec<I> = items.into_iter().collect();
    let others = items.len().saturating_sub(1);
    let waiting = Mutex::new(items.into_iter().enumerate());
    let rest = || work_off(&waiting, &work);
    let mut done = thread::scope(|scope| {
        let start = |_| thread::Builder::new().spawn_scoped(scope, rest).ok();
        let threads: Vec<_> = (0..others).map_while(start).collect();
        let mut done = rest();
        for thread in threads {
            done.extend(thread.join().unwrap_or_else(|e| panic::resume_unwind(e)));
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Takes items until none waits, and returns their results with their places.
fn work_off<I, T>(
    waiting: &Mutex<impl Iterator<Item = (usize, I)>>,
    work: &impl Fn(I) -> T,
) -> Vec<(usize, T)> {
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let mut done = Vec::new();
    while let Some((at, item)) = next() {
        done.push((at, work(item)));
    }
    done
}

static INTERRUPTION: LazyLock<Interruption> = LazyLock::new(Interruption::default);

/// Notices signals from now on. The second one of a kind ends this process.
pub(crate) fn listen() -> Result<()> {
    for signal in signals::of_user() {
        let seen = Arc::new(AtomicBool::new(false));
        flag::register_conditional_shutdown(signal, i32::from(Exit::SIGNAL) + signal, Arc::clone(&seen))
            .and_then(|_| flag::register(signal, seen))
            .map_err(|e| Error::fabric(format!("cannot install a handler for signal {signal}: {e}")))?;
    }
    INTERRUPTION.start()
}

/// Replaces [`requested`] in work that must not be interrupted, such as a cleanup.
pub(crate) fn ignored() -> bool {
    false
}

/// Returns whether a signal has arrived.
pub(crate) fn requested() -> bool {
    INTERRUPTION.has_arrived()
}

/// Returns the exit code of a signal that has arrived.
pub(crate) fn exit_code() -> Option<u8> {
    INTERRUPTION.exit_code()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn all_items_are_worked_on_at_the_same_time_and_their_results_are_in_order() {
        let all = Barrier::new(5);
        let results = map(0..5, |item| {
            all.wait();
            item * 2
        });
        assert_eq!(results, [0, 2, 4, 6, 8]);
        assert_eq!(map(Vec::<u32>::new(), |item| item), [0; 0]);
    }
}
