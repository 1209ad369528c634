//! One finding: a mark in sentences.

use ombx_core::result::Mark;

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
