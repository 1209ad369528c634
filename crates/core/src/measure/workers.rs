//! Worker threads of a rank: each owns a kernel, sleeps between jobs and runs those it is sent.

use std::{
    collections::BTreeMap,
    sync::mpsc,
    thread::{Builder, JoinHandle},
};

use crate::{
    benchmark::Context,
    error::{Error, Result},
    system::limits::start_error,
};

type Job<K> = Box<dyn FnOnce(&mut K) + Send>;

/// Threads, each with its own kernel.
pub(crate) struct Workers<K> {
    jobs: Vec<mpsc::Sender<Job<K>>>,
    threads: Vec<JoinHandle<K>>,
}

/// A job that all workers run.
#[must_use]
pub(crate) struct Running<R> {
    workers: usize,
    results: mpsc::Receiver<(usize, Result<R>)>,
}

fn ended_early<E>(_: E) -> Error {
    Error::fabric("a thread of this rank ended early; its message is above")
}

impl<K: Send + 'static> Workers<K> {
    /// Starts a thread for each kernel. Collective.
    ///
    /// # Errors
    /// The system of a rank allows no more threads. No thread of any rank is left.
    pub(crate) fn start(cx: &Context<'_>, kernels: Vec<K>) -> Result<Workers<K>> {
        let mut workers = Workers { jobs: Vec::new(), threads: Vec::new() };
        let started = kernels.into_iter().try_for_each(|kernel| workers.add(kernel));
        match cx.agree(started) {
            Ok(()) => Ok(workers),
            Err(why) => {
                // The kernels use communicators that the caller frees.
                drop(workers.join());
                Err(why)
            }
        }
    }

    fn add(&mut self, mut kernel: K) -> Result<()> {
        let (sender, jobs) = mpsc::channel::<Job<K>>();
        let work = move || {
            for job in jobs {
                job(&mut kernel);
            }
            kernel
        };
        let refused = |e| Error::unsupported(format!("cannot start a thread: {}", start_error(&e)));
        self.threads.push(Builder::new().name("ombx kernel".into()).spawn(work).map_err(refused)?);
        self.jobs.push(sender);
        Ok(())
    }

    /// Returns the number of threads.
    pub(crate) fn count(&self) -> usize {
        self.jobs.len()
    }

    /// Starts `part` on every thread with its own argument.
    pub(crate) fn begin<A, R, P>(&self, arguments: impl IntoIterator<Item = A>, part: P) -> Result<Running<R>>
    where
        A: Send + 'static,
        R: Send + 'static,
        P: Fn(&mut K, A) -> Result<R> + Clone + Send + 'static,
    {
        let (sender, results) = mpsc::channel();
        for ((thread, jobs), argument) in self.jobs.iter().enumerate().zip(arguments) {
            let (sender, part) = (sender.clone(), part.clone());
            let job: Job<K> = Box::new(move |kernel| {
                // The receiver is gone after an error of another thread, which ends the job.
                let _ = sender.send((thread, part(kernel, argument)));
            });
            jobs.send(job).map_err(ended_early)?;
        }
        Ok(Running { workers: self.jobs.len(), results })
    }

    /// Runs `part` on every thread with its own argument. Returns the results in the order of threads, or the first error.
    pub(crate) fn on_each<A, R, P>(&self, arguments: impl IntoIterator<Item = A>, part: P) -> Result<Vec<R>>
    where
        A: Send + 'static,
        R: Send + 'static,
        P: Fn(&mut K, A) -> Result<R> + Clone + Send + 'static,
    {
        self.begin(arguments, part)?.results()
    }

    /// Ends the threads and returns their kernels.
    pub(crate) fn join(self) -> Result<Vec<K>> {
        drop(self.jobs);
        self.threads.into_iter().map(|thread| thread.join().map_err(ended_early)).collect()
    }
}

impl<R> Running<R> {
    /// Waits for all threads. Returns the results in their order, or the first error.
    pub(crate) fn results(self) -> Result<Vec<R>> {
        let mut ordered = BTreeMap::new();
        while ordered.len() < self.workers {
            let (thread, result) = self.results.recv().map_err(ended_early)?;
            ordered.insert(thread, result?);
        }
        Ok(ordered.into_values().collect())
    }
}
