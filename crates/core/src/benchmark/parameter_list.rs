//! The parameters that an entry lists.

use super::Parameter;

/// Most parameters of an entry.
const MOST: usize = 24;

/// Parameters in the order in which keys of rows name them.
#[derive(Debug, Clone, Copy)]
pub struct ParameterList {
    all: [Option<&'static Parameter>; MOST],
    count: usize,
}

impl ParameterList {
    /// No parameter.
    pub const EMPTY: ParameterList = ParameterList { all: [None; MOST], count: 0 };

    /// Returns the list with further parameters at its end.
    #[must_use]
    pub const fn with(mut self, more: &[&'static Parameter]) -> ParameterList {
        let mut at = 0;
        while at < more.len() {
            assert!(self.count < MOST, "an entry has more parameters than a list holds: raise MOST");
            self.all[self.count] = Some(more[at]);
            self.count += 1;
            at += 1;
        }
        self
    }

    /// Returns the parameters, each followed by those that describe its values further.
    pub fn iter(&self) -> impl Iterator<Item = &'static Parameter> {
        let listed = self.all.into_iter().flatten();
        listed.flat_map(|parameter| [parameter].into_iter().chain(parameter.refined_by.iter().copied()))
    }
}
