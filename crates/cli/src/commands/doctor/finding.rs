//! One finding: a mark in sentences.

use ombx_core::{fact::HostFacts, result::Mark};
use ombx_results::causes;

/// A mark, what it says about this system, and what to do.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) mark: Mark,
    /// What was found, without a full stop.
    pub(super) fact: String,
    /// What to do; `None` if the fact says it.
    pub(super) remedy: Option<String>,
}

impl Finding {
    /// Returns the finding of a mark whose advice says everything: `fact: remedy`.
    pub(super) fn of_advice(mark: Mark) -> Finding {
        let text = mark.advice.clone();
        Finding::split(mark, &text)
    }

    /// Returns the finding of a mark whose short text is the fact. Its advice says why it matters, then what to do.
    pub(super) fn of_mark(mark: Mark) -> Finding {
        let text = format!("{}: {}", mark.short, mark.advice);
        Finding::split(mark, &text)
    }

    /// Returns the findings about hosts whose devices do less than they can, or that differ from most hosts.
    pub(super) fn of_hosts(hosts: &[HostFacts]) -> impl Iterator<Item = Finding> {
        causes::of_hosts(hosts, &[]).into_iter().map(|cause| {
            let advice = "a job is as fast as its slowest host: look at the device, its slot, cable and firmware, or leave the host out";
            Finding::of_mark(Mark::caution("differing_hosts", cause.to_string(), advice))
        })
    }

    /// Returns the finding of a failure: its advice is the message of an error.
    pub(super) fn of_error(mark: Mark) -> Finding {
        let fact = mark.advice.clone();
        Finding { mark, fact, remedy: None }
    }

    fn split(mark: Mark, text: &str) -> Finding {
        let (fact, remedy) = match text.rsplit_once(": ") {
            Some((fact, remedy)) => (fact.to_owned(), Some(remedy.to_owned())),
            None => (text.to_owned(), None),
        };
        Finding { mark, fact, remedy }
    }
}
