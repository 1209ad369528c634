//! From the text of a suite to entries; a mistake is told with its line and the nearest key.

use std::ops::Range;

use ombx_core::error::{Error, Result};
use toml::de::{DeTable, DeValue};

use super::{
    Suite,
    layers::{Given, Known, Layer, nearest},
};

const KEYS: [&str; 3] = ["about", "defaults", "entry"];
const RUN: &str = "run";

/// What is run together, under the same options.
pub(super) struct Entry {
    pub(super) patterns: Vec<String>,
    pub(super) options: Layer,
    /// Where it begins.
    pub(super) line: usize,
    /// Where its patterns are.
    pub(super) run_line: usize,
}

/// Reads a suite.
pub(super) fn suite(name: String, text: &str, built_in: bool, known: &Known<'_>) -> Result<Suite> {
    let reader = Reader { name: &name, text, built_in, known };
    let root = DeTable::parse(text).map_err(|e| {
        let message = e.message().trim().replace('\n', ", ");
        reader.wrong(e.span().unwrap_or(0..0), &message)
    })?;
    let (mut about, mut defaults, mut entries) = (String::new(), Layer::default(), Vec::new());
    for (key, value) in root.get_ref() {
        match (key.get_ref().as_ref(), value.get_ref()) {
            ("about", DeValue::String(text)) => about = text.clone().into_owned(),
            ("about", _) => return Err(reader.wrong(value.span(), "about is a sentence, in quotes")),
            ("defaults", DeValue::Table(table)) => defaults = reader.options(table, Place::Defaults)?,
            ("defaults", _) => return Err(reader.wrong(value.span(), "defaults is a table: [defaults]")),
            ("entry", DeValue::Array(all)) => {
                for entry in all.iter() {
                    entries.push(reader.entry(entry.get_ref(), entry.span())?);
                }
            }
            ("entry", _) => return Err(reader.wrong(value.span(), "entries are tables of a list: [[entry]]")),
            (other, _) => return Err(reader.unknown(key.span(), other, KEYS.into_iter())),
        }
    }
    if entries.is_empty() {
        return Err(reader.wrong(0..0, "it has no [[entry]], so that there is nothing to run"));
    }
    Ok(Suite { name, built_in, about, defaults, entries })
}

/// Where options stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Defaults,
    Entry,
}

struct Reader<'r> {
    name: &'r str,
    text: &'r str,
    built_in: bool,
    known: &'r Known<'r>,
}

impl Reader<'_> {
    fn entry(&self, value: &DeValue<'_>, span: Range<usize>) -> Result<Entry> {
        let DeValue::Table(table) = value else {
            return Err(self.wrong(span, "an entry is a table: [[entry]]"));
        };
        let line = table.keys().map(|key| self.line(key.span().start)).min().unwrap_or(self.line(span.start));
        let Some((key, run)) = table.iter().find(|(key, _)| key.get_ref() == RUN) else {
            return Err(self.told(line, "the entry does not say what to run, as in run = [\"p2p.*\"]"));
        };
        let texts = match run.get_ref() {
            DeValue::String(one) => Some(vec![one.clone().into_owned()]),
            DeValue::Array(all) => all.iter().map(|v| v.get_ref().as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        let patterns = texts.filter(|all| !all.is_empty()).ok_or_else(|| {
            self.wrong(run.span(), "run is a name, a glob or an OSU name, or a list of them, in quotes")
        })?;
        if let Some(suite) = patterns.iter().find(|pattern| super::is_suite(pattern)) {
            return Err(self.wrong(run.span(), &format!("{suite}: a suite does not run another")));
        }
        if let Some(option) = patterns.iter().find(|pattern| pattern.starts_with('-')) {
            return Err(self.wrong(run.span(), &format!("{option} is an option, and has a key of its own")));
        }
        Ok(Entry {
            patterns,
            options: self.options(table, Place::Entry)?,
            line,
            run_line: self.line(key.span().start),
        })
    }

    fn options(&self, table: &DeTable<'_>, place: Place) -> Result<Layer> {
        let mut layer = Layer::default();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            if place == Place::Entry && name == RUN {
                continue;
            }
            let Some(option) = self.known.option(name) else {
                if self.built_in {
                    // An axis of benchmarks that this build does not have.
                    continue;
                }
                let run = Some(RUN).filter(|_| place == Place::Entry);
                return Err(self.unknown(key.span(), name, self.known.names().chain(run)));
            };
            if place == Place::Entry && option.of_the_job {
                return Err(self.wrong(
                    key.span(),
                    &format!("{name} holds for the whole suite: it belongs in [defaults]"),
                ));
            }
            let words = match (value.get_ref(), option.takes_value) {
                (DeValue::Boolean(true), takes) if !takes || option.stands_alone => vec![format!("--{name}")],
                (DeValue::Boolean(false), false) => continue,
                (_, false) => return Err(self.wrong(value.span(), &format!("{name} is true or false"))),
                (value_of, true) => self.words(name, value_of, value.span())?,
            };
            layer.set(name, Given { words, line: Some(self.line(key.span().start)) });
        }
        Ok(layer)
    }

    fn words(&self, name: &str, value: &DeValue<'_>, span: Range<usize>) -> Result<Vec<String>> {
        let text = |value: &DeValue<'_>| match value {
            DeValue::String(text) => Some(text.clone().into_owned()),
            DeValue::Integer(number) => Some(number.to_string()),
            DeValue::Float(number) => Some(number.to_string()),
            // A switch with two values of its own.
            DeValue::Boolean(on) => Some(if *on { "on" } else { "off" }.to_owned()),
            _ => None,
        };
        let value = match value {
            DeValue::Array(all) => {
                let all: Option<Vec<String>> = all.iter().map(|value| text(value.get_ref())).collect();
                all.map(|all| all.join(","))
            }
            one => text(one),
        };
        match value {
            Some(value) => Ok(vec![format!("--{name}={value}")]),
            None => Err(self.wrong(span, &format!("{name} is a text, a number or a list of them"))),
        }
    }

    fn unknown<'n>(&self, span: Range<usize>, key: &str, names: impl Iterator<Item = &'n str>) -> Error {
        let near = nearest(key, names).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        self.wrong(span, &format!("there is no key {key:?}{near}"))
    }

    fn wrong(&self, span: Range<usize>, why: &str) -> Error {
        self.told(self.line(span.start), why)
    }

    fn told(&self, line: usize, why: &str) -> Error {
        Error::usage(format!("{}:{line}: {why}", self.name))
    }

    fn line(&self, at: usize) -> usize {
        self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }
}
