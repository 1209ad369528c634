//! The registry: the benchmark entries that are linked into this binary.

use crate::{
    benchmark::{Axis, Benchmark, Choice, Setting},
    error::{Error, Result},
};

/// Benchmark entries, sorted by unique name.
#[derive(Debug)]
pub struct Registry {
    entries: Vec<&'static Benchmark>,
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
    /// Usage error for an invalid entry, a duplicate name, or two different axes of one name. It names the source lines of entries.
    pub fn of(entries: impl Iterator<Item = &'static Benchmark>) -> Result<Registry> {
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|b| (b.name, b.at.file(), b.at.line()));
        entries.iter().try_for_each(|b| b.check())?;
        let mut axes: Vec<&Axis> = entries.iter().flat_map(|b| b.axes.iter().copied()).collect();
        axes.sort_by_key(|a| a.name);
        if let Some(pair) = axes.windows(2).find(|w| w[0].name == w[1].name && w[0].values != w[1].values) {
            return Err(Error::usage(format!(
                "two axes with different values have the name {}: rename one",
                pair[0].name
            )));
        }
        let settings = entries.iter().flat_map(|b| b.settings.iter());
        if let Some(setting) =
            settings.clone().find(|setting| axes.iter().any(|axis| axis.name == setting.name))
        {
            return Err(Error::usage(format!(
                "{} is the name of an axis and of a setting: rename one",
                setting.name
            )));
        }
        match entries.windows(2).find(|pair| pair[0].name == pair[1].name) {
            None => Ok(Registry { entries }),
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

    /// Returns every axis of the entries once, sorted by name.
    pub fn axes(&self) -> Vec<&'static Axis> {
        let mut axes: Vec<&'static Axis> = self.entries.iter().flat_map(|b| b.axes.iter().copied()).collect();
        axes.sort_by_key(|a| a.name);
        axes.dedup_by_key(|a| a.name);
        axes
    }

    /// Returns every setting of the entries once, sorted by name.
    pub fn settings(&self) -> Vec<&'static Setting> {
        let mut settings: Vec<&'static Setting> =
            self.entries.iter().flat_map(|b| b.settings.iter().copied()).collect();
        settings.sort_by_key(|s| s.name);
        settings.dedup_by_key(|s| s.name);
        settings
    }
}

#[cfg(test)]
mod tests;
