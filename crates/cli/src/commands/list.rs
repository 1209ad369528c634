//! `ombx list`: prints the benchmarks of this build.

use clap::{Args, ValueEnum};
use ombx_core::benchmark::{Benchmark, Heading, LETTERS, Parameter, Registry};
use ombx_launch::output::terminal;
use ombx_record::error::Result;
use ombx_show::wrapped;
use serde_json::{Value, json};

use crate::{
    families,
    lookup::{self, counterpart},
    suite::{self, Resolved},
};

/// Columns of a sentence beside a name. A narrower one is put below the name.
const NARROWEST: usize = 30;
/// Indentation of sentences below names.
const INDENT: usize = 6;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Families, names, globs or OSU names, for example: p2p 'rma.put*'; or one suite: suite:smoke
    patterns: Vec<String>,
    /// Format of the list
    #[arg(long, value_enum, default_value_t = ListFormat::Table)]
    format: ListFormat,
    /// Print all details: what is timed, calls, formula, parameters, sizes
    #[arg(long, conflicts_with = "format")]
    long: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ListFormat {
    /// Families with their numbers and names on a terminal; each benchmark with a sentence elsewhere, and if families or names are given
    Table,
    /// Names, one a line
    Names,
    /// One JSON array
    Json,
}

pub(crate) fn list(registry: &Registry, args: &ListArgs) -> Result<u8> {
    let suite = if args.patterns.iter().any(|pattern| suite::is_suite(pattern)) {
        let parser = super::parser(registry);
        let suite = suite::named(&parser, &args.patterns)?;
        suite.map(|suite| suite.resolve(registry, &parser, None)).transpose()?
    } else {
        None
    };
    let benches = match (&suite, args.patterns.as_slice()) {
        (Some(suite), _) => suite.benchmarks(),
        (None, []) => registry.all().to_vec(),
        (None, patterns) => {
            let patterns: Vec<String> = patterns.iter().map(|word| pattern(registry, word)).collect();
            lookup::benchmarks(registry, &patterns)?.iter().map(|c| c.bench).collect()
        }
    };
    let columns = terminal::columns();
    terminal::print(if args.format == ListFormat::Json {
        let all: Vec<Value> = benches.iter().map(|b| describe(b)).collect();
        format!("{:#}\n", Value::from(all))
    } else if args.format == ListFormat::Names {
        benches.iter().map(|b| format!("{}\n", b.name)).collect()
    } else if args.long {
        let all: String = benches.iter().map(|b| long(b, columns) + "\n").collect();
        let letters = columns.map_or(vec![LETTERS.to_owned()], |columns| wrapped(LETTERS, columns));
        format!("{all}{}\n", letters.join("\n"))
    } else if let Some(suite) = &suite {
        entries(suite, columns)
    } else if args.patterns.is_empty() {
        let overview = if terminal::stdout_is_interactive() { overview } else { short };
        overview(&benches, columns) + &hints(columns)
    } else {
        counterparts(registry, &args.patterns) + &short(&benches, columns)
    })
}

/// Returns the pattern that a word stands for: a family, a name of another suite, or a pattern.
fn pattern(registry: &Registry, word: &str) -> String {
    match counterpart(registry, word) {
        Some(counterpart) => counterpart.name.to_owned(),
        None => families::glob(registry, word),
    }
}

/// Returns a sentence about each name of another suite.
fn counterparts(registry: &Registry, words: &[String]) -> String {
    let named = words.iter().filter_map(|word| counterpart(registry, word));
    named.map(|counterpart| format!("{}\n\n", counterpart.sentence)).collect()
}

/// Returns the options and benchmarks of each entry of a suite.
fn entries(suite: &Resolved, columns: Option<usize>) -> String {
    let mut text = format!("{}; ranks: {}\n", suite.about, suite.ranks);
    for (options, part) in &suite.parts {
        let benches: Vec<&Benchmark> = part.choices.iter().map(|choice| choice.bench).collect();
        let options = columns.map_or(options.clone(), |columns| wrapped(options, columns).join("\n"));
        text += &format!("\n{options}\n{}", short(&benches, columns));
    }
    text
}

/// Returns a line for each benchmark, under the name of its family.
fn short(benches: &[&Benchmark], columns: Option<usize>) -> String {
    let mut text = String::new();
    for family in benches.chunk_by(|a, b| families::family(a) == families::family(b)) {
        let about = families::about(families::family(family[0]))
            .map_or_else(String::new, |about| format!(": {about}"));
        if !text.is_empty() {
            text.push('\n');
        }
        let heading = format!("{} ({}){about}", families::family(family[0]), family.len());
        text += &match columns {
            Some(columns) => wrapped(&heading, columns).join("\n"),
            None => heading,
        };
        text.push('\n');
        let width = family.iter().map(|b| b.name.len()).max().unwrap_or_default();
        for b in family {
            let unavailable = (b.available)().err().map(|why| format!(" (unavailable: {why})"));
            let about = format!("{}{}", b.about, unavailable.unwrap_or_default());
            text += &beside(b.name, width, &about, columns);
        }
    }
    text
}

/// Returns the families with their numbers of benchmarks, then all names.
fn overview(benches: &[&Benchmark], columns: Option<usize>) -> String {
    let families: Vec<&[&Benchmark]> =
        benches.chunk_by(|a, b| families::family(a) == families::family(b)).collect();
    let width = families.iter().map(|family| families::family(family[0]).len()).max().unwrap_or_default();
    let mut text = format!("{} benchmarks in {} families\n", benches.len(), families.len());
    for family in &families {
        let name = families::family(family[0]);
        let counted = format!("{name:width$} {:4}", family.len());
        text += &beside(&counted, width + 5, families::about(name).unwrap_or_default(), columns);
    }
    for family in families {
        let names = family.iter().map(|b| b.name).collect::<Vec<_>>().join(" ");
        let names = columns.map_or(vec![names.clone()], |columns| wrapped(&names, columns.saturating_sub(2)));
        text += &format!("\n  {}\n", names.join("\n  "));
    }
    text
}

/// Returns a name and a sentence, side by side if the terminal is wide enough for both.
fn beside(name: &str, width: usize, about: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return format!("  {name:width$}  {about}\n") };
    let (before, left) = (width + 4, columns.saturating_sub(width + 4));
    if left >= NARROWEST {
        let lines = wrapped(about, left).join(&format!("\n{:before$}", ""));
        format!("  {name:width$}  {lines}\n")
    } else {
        let lines = wrapped(about, columns.saturating_sub(INDENT)).join(&format!("\n{:INDENT$}", ""));
        format!("  {name}\n{:INDENT$}{lines}\n", "")
    }
}

/// Returns what can be asked next.
fn hints(columns: Option<usize>) -> String {
    let suites: Vec<String> = suite::built_in().map(|name| format!("suite:{name}")).collect();
    let hints = [
        ("ombx list p2p", "one family with a sentence each; or a glob such as 'rma.put*'"),
        ("ombx list p2p.bw --long", "what is timed, calls, formula, parameters and sizes"),
        ("ombx list suite:smoke", &format!("a suite; there are {}", suites.join(", "))),
    ];
    let width = hints.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
    let lines = hints.iter().map(|(command, about)| beside(command, width, about, columns));
    format!("\nnext\n{}", lines.collect::<String>())
}

/// Returns all details of a benchmark.
pub(super) fn long(b: &Benchmark, columns: Option<usize>) -> String {
    let mut details = vec![
        ("about".to_owned(), b.about.to_owned()),
        ("metric".into(), format!("{} in {}", b.described.metric.name(), b.described.metric.unit())),
        ("formula".into(), b.described.formula.into()),
        ("timed".into(), b.described.method.timed.into()),
        ("calls".into(), calls(b)),
        ("untimed".into(), b.described.method.untimed.into()),
        ("like".into(), b.described.method.like.into()),
        ("OSU names".into(), osu_names(b).join(", ")),
        ("ranks".into(), b.ranks.layout.describe()),
        ("sizes".into(), b.messages.sizes.into()),
    ];
    let (listed, free): (Vec<_>, Vec<_>) =
        own_parameters(b).partition(|parameter| !parameter.names().is_empty());
    details.extend(listed.into_iter().chain(free).map(|parameter| {
        let default = b.default_of(parameter).map(|default| format!(" (default {default})"));
        let values = match parameter.names() {
            [] => parameter.about.to_owned(),
            names => names.join(", "),
        };
        (format!("--{}", parameter.name), values + &default.unwrap_or_default())
    }));
    details.extend((b.available)().err().map(|why| ("here".to_owned(), format!("unavailable: {why}"))));
    details.retain(|(_, value)| !value.is_empty());
    let before = details.iter().map(|(name, _)| name.len()).max().unwrap_or_default() + 4;
    let mut text = format!("{}\n", b.name);
    for (name, value) in details {
        let lines = match columns {
            Some(columns) => wrapped(&value, columns.saturating_sub(before).max(NARROWEST)),
            None => vec![value],
        };
        let lines = lines.join(&format!("\n{:before$}", ""));
        text += &format!("  {name:<width$}{lines}\n", width = before - 2);
    }
    text
}

/// Returns the calls of an iteration. A parameter adds some of one-sided operations.
fn calls(b: &Benchmark) -> String {
    let calls = b.described.calls.join(", ");
    if own_parameters(b).any(|parameter| parameter.name == "sync") {
        format!("{calls}; around them those of --sync, such as MPI_Win_fence")
    } else {
        calls
    }
}

/// Returns the parameters that distinguish a benchmark from most others.
fn own_parameters(b: &Benchmark) -> impl Iterator<Item = &'static Parameter> {
    b.parameters().filter(|parameter| parameter.heading == Heading::Own)
}

fn describe(b: &Benchmark) -> Value {
    let axes: Vec<Value> = own_parameters(b)
        .filter(|parameter| !parameter.names().is_empty())
        .map(|p| json!({"name": p.name, "about": p.about, "values": p.names(), "default": b.default_of(p)}))
        .collect();
    let calls = match b.described.calls {
        [] => String::new(),
        calls => format!("- Calls: {}.\n", calls.join(", ")),
    };
    json!({
        "name": b.name,
        "about": b.about,
        "doc": format!(
            "- Timed: {}.\n{calls}- Not timed: {}.\n- Like: {}.",
            b.described.method.timed, b.described.method.untimed, b.described.method.like
        ),
        "metric": b.described.metric.name(),
        "formula": b.described.formula,
        "calls": b.described.calls,
        "unit": b.described.metric.unit(),
        "ranks": b.ranks.layout.describe(),
        "across": b.ranks.layout.aggregation().name(),
        "sizes": b.messages.sizes,
        "streams": b.own.streams.exists(),
        "axes": axes,
        "osu": osu_names(b),
        "available": (b.available)().err().map_or(Value::Bool(true), Value::from),
        "source": format!("{}:{}", b.at.file(), b.at.line()),
    })
}

fn osu_names(b: &Benchmark) -> Vec<&'static str> {
    b.osu_names().map(|o| o.name).collect()
}
