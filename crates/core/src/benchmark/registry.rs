//! The registry: the benchmark entries that are linked into this binary.

use std::collections::BTreeMap;

use crate::{
    benchmark::{Benchmark, Choice, Parameter},
    error::{Error, Result},
};

/// Benchmark entries, sorted by unique name.
#[derive(Debug)]
pub struct Registry {
    entries: Vec<&'static Benchmark>,
    /// Every parameter of the entries once, sorted by name.
    parameters: Vec<&'static Parameter>,
}

impl Registry {
    /// Returns the entries that are linked into this binary.
    ///
    /// # Errors
    /// As [`Registry::of`].
    pub fn load() -> Result<Registry> {
        Registry::of(inventory::iter::<Benchmark>.into_iter())
    }

    /// Returns a registry of the given entries.
    ///
    /// # Errors
    /// Usage error for a duplicate name, two different parameters of one name, or in a debug build an invalid entry. It names the source
    /// lines of entries. A release build checks the entries that are measured.
    pub fn of(entries: impl Iterator<Item = &'static Benchmark>) -> Result<Registry> {
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|b| (b.name, b.at.file(), b.at.line()));
        if cfg!(debug_assertions) {
            entries.iter().try_for_each(|b| b.check())?;
        }
        let mut parameters: BTreeMap<&str, &'static Parameter> = BTreeMap::new();
        for parameter in entries.iter().flat_map(|b| b.parameters()) {
            let known = *parameters.entry(parameter.name).or_insert(parameter);
            if !std::ptr::eq(known, parameter) && known.names() != parameter.names() {
                return Err(Error::usage(format!(
                    "two parameters with different values have the name {}: rename one",
                    parameter.name
                )));
            }
        }
        let parameters = parameters.into_values().collect();
        match entries.windows(2).find(|pair| pair[0].name == pair[1].name) {
            None => Ok(Registry { entries, parameters }),
            Some(pair) => Err(Error::usage(format!(
                "two benchmarks have the same name: {:?} and {:?}; rename one",
                pair[0], pair[1]
            ))),
        }
    }

    /// Returns all entries, sorted by name.
    pub fn all(&self) -> &[&'static Benchmark] {
        &self.entries
    }

    /// Returns the benchmark of this exact name.
    ///
    /// # Errors
    /// A usage error if no crate that is linked registers it.
    pub fn get(&self, name: &str) -> Result<Choice> {
        let bench = self.entries.iter().find(|bench| bench.name == name);
        let bench = bench.ok_or_else(|| {
            Error::usage(format!(
                "no linked crate registers the benchmark {name}; link the crate of its family"
            ))
        })?;
        Ok(Choice { bench, preset: &[] })
    }

    /// Returns every parameter of the entries once, sorted by name.
    pub fn parameters(&self) -> &[&'static Parameter] {
        &self.parameters
    }

    /// Returns whether an entry has a parameter of this name.
    pub fn has_parameter(&self, name: &str) -> bool {
        self.entries.iter().any(|bench| bench.parameter(name).is_some())
    }
}

#[cfg(test)]
mod tests;
