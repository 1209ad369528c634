//! The text of a suite. Mistakes are reported with their line and the most similar key.

use std::ops::Range;

use clap::Command;
use ombx_record::error::{Error, Result};
use toml::de::{DeTable, DeValue};

use crate::{
    lookup,
    suite::{self, Given, Layer},
};

/// Maximum number of entries. Each is a command line that is read.
const MOST_ENTRIES: usize = 1000;
const KEYS: [&str; 3] = ["about", "defaults", "entry"];
const RUN: &str = "run";
pub(super) const PREFIX: &str = "suite:";

/// Keys of a file that are not options of `ombx run`. A suite has none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnKeys {
    /// Command that reads the file.
    pub(crate) command: &'static str,
    /// Keys of the whole file.
    pub(crate) of_file: &'static [&'static str],
    /// Keys of an entry.
    pub(crate) of_entry: &'static [&'static str],
}

/// Value of a key that is not an option of `ombx run`.
#[derive(Debug, Clone)]
pub(crate) struct OwnValue {
    pub(crate) key: String,
    pub(crate) text: String,
    pub(crate) line: usize,
}

pub(crate) struct Suite {
    /// Path or `suite:smoke`, for messages.
    pub(super) name: String,
    pub(super) origin: Origin,
    /// Values of the keys of the file that are no options of `ombx run`.
    pub(crate) own: Vec<OwnValue>,
    pub(super) about: String,
    pub(super) defaults: Layer,
    pub(super) entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    BuiltIn,
    User,
}

/// Benchmarks that run with the same options.
pub(crate) struct Entry {
    pub(crate) patterns: Vec<String>,
    pub(super) options: Layer,
    /// Values of the keys that are no options of `ombx run`.
    pub(crate) own: Vec<OwnValue>,
    /// Line of the first key of the entry.
    pub(crate) line: usize,
    /// Line of the key `run`.
    pub(super) run_line: usize,
}

/// What any option of `ombx run` is called in a list of keys.
const ANY: &str = "every option of ombx run";

/// Returns names as in a sentence.
fn listed(names: &[&str]) -> String {
    names.iter().filter(|name| !["defaults", "entry"].contains(name)).copied().collect::<Vec<_>>().join(", ")
}

/// Returns whether a pattern names a suite.
pub(crate) fn is_suite(pattern: &str) -> bool {
    pattern.starts_with(PREFIX) || pattern.ends_with(".toml")
}

pub(super) fn parse(
    name: &str,
    text: &str,
    origin: Origin,
    parser: &Command,
    own_keys: Option<OwnKeys>,
) -> Result<Suite> {
    let reader = Reader { name, text, origin, parser, own_keys };
    let root = DeTable::parse(text).map_err(|e| {
        let message = e.message().trim().replace('\n', ", ");
        reader.wrong(e.span().unwrap_or(0..0), &message)
    })?;
    let (mut about, mut defaults, mut entries) = (String::new(), Layer::default(), Vec::new());
    let (mut own, own_names) = (Vec::new(), own_keys.map_or(&[][..], |keys| keys.of_file));
    for (key, value) in root.get_ref() {
        match (key.get_ref().as_ref(), value.get_ref()) {
            ("about", DeValue::String(text)) => about = text.clone().into_owned(),
            ("about", _) => return Err(reader.wrong(value.span(), "about must be a sentence in quotes")),
            ("defaults", DeValue::Table(table)) => defaults = reader.options(table, Section::Defaults)?,
            ("defaults", _) => return Err(reader.wrong(value.span(), "defaults must be a table: [defaults]")),
            ("entry", DeValue::Array(all)) if all.len() > MOST_ENTRIES => {
                let count = all.len();
                return Err(reader.wrong(
                    value.span(),
                    &format!("it has {count} entries: at most {MOST_ENTRIES} are read; split the file"),
                ));
            }
            ("entry", DeValue::Array(all)) => {
                for entry in all.iter() {
                    entries.push(reader.entry(entry.get_ref(), entry.span())?);
                }
            }
            ("entry", _) => {
                return Err(reader.wrong(value.span(), "entries must be tables of a list: [[entry]]"));
            }
            (name, value_of) if own_names.contains(&name) => {
                own.push(reader.own_value(name, key.span(), value_of, value.span())?);
            }
            (other, _) => {
                let names: Vec<&str> = KEYS.into_iter().chain(own_names.iter().copied()).collect();
                let known = format!("keys here are {}, [defaults] and [[entry]]", listed(&names));
                return Err(reader.unknown(key.span(), other, names.into_iter(), &known));
            }
        }
    }
    if entries.is_empty() {
        return Err(reader.wrong(0..0, "there is nothing to run: add an [[entry]]"));
    }
    Ok(Suite { name: name.to_owned(), origin, own, about, defaults, entries })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Defaults,
    Entry,
}

struct Reader<'r> {
    name: &'r str,
    text: &'r str,
    origin: Origin,
    parser: &'r Command,
    own_keys: Option<OwnKeys>,
}

impl Reader<'_> {
    fn entry(&self, value: &DeValue<'_>, span: Range<usize>) -> Result<Entry> {
        let DeValue::Table(table) = value else {
            return Err(self.wrong(span, "an entry must be a table: [[entry]]"));
        };
        let line = table.keys().map(|key| self.line(key.span().start)).min().unwrap_or(self.line(span.start));
        let Some((key, run)) = table.iter().find(|(key, _)| key.get_ref() == RUN) else {
            return Err(self.wrong_at(line, "the entry has no key run: add for example run = [\"p2p.*\"]"));
        };
        let texts = match run.get_ref() {
            DeValue::String(one) => Some(vec![one.clone().into_owned()]),
            DeValue::Array(all) => all.iter().map(|v| v.get_ref().as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        let patterns = texts.filter(|all| !all.is_empty()).ok_or_else(|| {
            self.wrong(run.span(), "run must be a name, a glob or an OSU name, or a list of them, in quotes")
        })?;
        if let Some(suite) = patterns.iter().find(|pattern| is_suite(pattern)) {
            return Err(self.wrong(run.span(), &format!("{suite}: a suite cannot run another suite")));
        }
        if let Some(option) = patterns.iter().find(|pattern| pattern.starts_with('-')) {
            return Err(self.wrong(run.span(), &format!("{option} is an option: give it a key of its own")));
        }
        let mut own = Vec::new();
        for (key, value) in
            table.iter().filter(|(key, _)| self.own_of_entry().contains(&key.get_ref().as_ref()))
        {
            own.push(self.own_value(key.get_ref(), key.span(), value.get_ref(), value.span())?);
        }
        Ok(Entry {
            patterns,
            options: self.options(table, Section::Entry)?,
            own,
            line,
            run_line: self.line(key.span().start),
        })
    }

    fn options(&self, table: &DeTable<'_>, section: Section) -> Result<Layer> {
        let mut layer = Layer::default();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            if section == Section::Entry && (name == RUN || self.own_of_entry().contains(&name)) {
                continue;
            }
            let Some(option) = suite::option_named(self.parser, name) else {
                if self.origin == Origin::BuiltIn {
                    // This build lacks the benchmarks that have this parameter.
                    continue;
                }
                let of_entry = [RUN].into_iter().chain(self.own_of_entry().iter().copied());
                let of_entry: Vec<&str> = of_entry.filter(|_| section == Section::Entry).collect();
                let known = format!("keys here are {}", listed(&[&of_entry[..], &[ANY]].concat()));
                let names =
                    suite::option_keys(self.parser).map(|(name, _)| name).chain(of_entry.iter().copied());
                return Err(self.unknown(key.span(), name, names, &known));
            };
            if let Some(OwnKeys { command, .. }) = self.own_keys {
                if suite::is_of_launching_process(option) {
                    let why = format!("{name} is decided by {command} itself: leave it out");
                    return Err(self.wrong(key.span(), &why));
                }
            } else if section == Section::Entry && suite::is_of_job(option) {
                return Err(self
                    .wrong(key.span(), &format!("{name} holds for the whole suite: move it to [defaults]")));
            }
            let words = match (value.get_ref(), option.get_action().takes_values()) {
                (DeValue::Boolean(true), takes)
                    if !takes || option.get_num_args().is_some_and(|n| n.min_values() == 0) =>
                {
                    vec![format!("--{name}")]
                }
                (DeValue::Boolean(false), false) => continue,
                (_, false) => return Err(self.wrong(value.span(), &format!("{name} must be true or false"))),
                (value_of, true) => self.words(name, value_of, value.span())?,
            };
            layer.0.insert(name.to_owned(), Given { words, line: Some(self.line(key.span().start)) });
        }
        Ok(layer)
    }

    fn own_of_entry(&self) -> &'static [&'static str] {
        self.own_keys.map_or(&[], |keys| keys.of_entry)
    }

    fn own_value(
        &self,
        key: &str,
        at: Range<usize>,
        value: &DeValue<'_>,
        span: Range<usize>,
    ) -> Result<OwnValue> {
        let text = text(value);
        let why = || self.wrong(span, &format!("{key} must be a text in quotes or a number"));
        Ok(OwnValue { key: key.to_owned(), text: text.ok_or_else(why)?, line: self.line(at.start) })
    }

    fn words(&self, name: &str, value: &DeValue<'_>, span: Range<usize>) -> Result<Vec<String>> {
        let one = |value: &DeValue<'_>| match value {
            // A parameter with the values on and off.
            DeValue::Boolean(on) => Some(if *on { "on" } else { "off" }.to_owned()),
            other => text(other),
        };
        let value = match value {
            DeValue::Array(all) => {
                let all: Option<Vec<String>> = all.iter().map(|value| one(value.get_ref())).collect();
                all.map(|all| all.join(","))
            }
            value => one(value),
        };
        match value {
            Some(value) => Ok(vec![format!("--{name}={value}")]),
            None => Err(self.wrong(span, &format!("{name} must be a text, a number or a list of them"))),
        }
    }

    /// Returns the error about an unknown key, with the most similar name, or what is known.
    fn unknown<'n>(
        &self,
        span: Range<usize>,
        key: &str,
        names: impl Iterator<Item = &'n str>,
        known: &str,
    ) -> Error {
        let near = lookup::similar(key, names).map(|near| format!("did you mean {near}?"));
        self.wrong(span, &format!("there is no key {key:?}: {}", near.as_deref().unwrap_or(known)))
    }

    fn wrong(&self, span: Range<usize>, why: &str) -> Error {
        self.wrong_at(self.line(span.start), why)
    }

    fn wrong_at(&self, line: usize, why: &str) -> Error {
        Error::usage(format!("{}:{line}: {why}", self.name))
    }

    fn line(&self, at: usize) -> usize {
        self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }
}

/// Returns a text or a number as text.
fn text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        _ => None,
    }
}
