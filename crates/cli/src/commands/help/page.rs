//! The help of commands: one screen for `-h`, all options for `--help`, and the options of a benchmark after its name.

use std::collections::BTreeSet;

use clap::{Arg, ArgAction, Command, builder::PossibleValue};
use ombx_core::benchmark::{Benchmark, Choice, Heading, Registry};
use ombx_draw::FileFormat;
use ombx_launch::output::terminal;
use ombx_record::{error::Error, order::each_once};
use ombx_show::wrapped;

use super::examples::{self, Examples};
use crate::{arguments::parameters, lookup, suite::is_suite};

/// Widest page, and that without a terminal.
const WIDEST: usize = 110;
const USUAL: usize = 100;
/// Column in which texts begin, and that in narrow terminals.
const INDENT: usize = 26;
const NARROW: usize = 10;
/// Examples of `-h`.
const FEW: usize = 3;
/// Title of options that only `ombx run` explains.
const OF_RUN: &str = "Options of ombx run (ombx run --help explains them)";
/// Default of the sizes of any benchmark.
const OF_BENCHMARK: &str = "the benchmark's";
/// Heading of options without another one.
const OPTIONS: &str = "Options";
/// Commands that measure benchmarks with the options of `ombx run`.
const MEASURE: [&str; 3] = ["run", "ab", "congestion"];

/// Commands by what they are for, in the order of the help.
const SECTIONS: [(&str, &[&str]); 5] = [
    ("Measure", &["run", "list", "links", "congestion", "ab", "model", "cluster", "sockets"]),
    ("Check a system", &["doctor", "check"]),
    ("Replace other suites", &["osu", "imb"]),
    ("Read results", &["show", "compare", "history", "plot", "report"]),
    ("More", &["help", "completions"]),
];

/// How much is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// One screen.
    Brief,
    Full,
}

/// Form of a page.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Page {
    pub(super) columns: usize,
    pub(super) is_coloured: bool,
}

impl Page {
    /// Returns the form that standard output has room for.
    pub(in crate::commands) fn of_stdout() -> Page {
        Page {
            columns: terminal::columns().unwrap_or(USUAL).min(WIDEST),
            is_coloured: terminal::stdout_is_coloured(),
        }
    }

    /// Returns the help of ombx: its commands by what they are for.
    pub(super) fn front(self, parser: &Command) -> String {
        let about = parser.get_about().map(ToString::to_string).unwrap_or_default();
        let mut text =
            format!("{}\n\n{} ombx COMMAND [OPTIONS]\n", self.filled(&about, 0), self.bold("Usage:"));
        for (title, names) in SECTIONS {
            text += &format!("\n{}\n", self.bold(&format!("{title}:")));
            for command in names.iter().filter_map(|name| parser.find_subcommand(name)) {
                let about = command.get_about().map(ToString::to_string).unwrap_or_default();
                text += &self.entry(&format!("  {}", command.get_name()), &[about], 15);
            }
        }
        let more = [
            ("  ombx run p2p.latency", "a first look"),
            ("  ombx run -h", "the help of a command; --help has all of its options"),
            ("  ombx help WORD", "an option, a value, a benchmark, a column, a mark or an exit code"),
        ];
        text.push('\n');
        more.iter().for_each(|(line, about)| text += &self.entry(line, &[(*about).to_owned()], INDENT));
        text
    }

    /// Returns the help of a command, and of these benchmarks if it measures them. `path` is how the command is called.
    pub(super) fn command(
        self,
        parser: &Command,
        (path, command): (&str, &Command),
        choices: &[Choice],
        detail: Detail,
    ) -> String {
        let examples = examples::for_command(command.get_name());
        let about = match detail {
            Detail::Brief => command.get_about(),
            Detail::Full => command.get_long_about().or(command.get_about()),
        };
        let mut text = match choices {
            [] => self.paragraphs(&about.map(ToString::to_string).unwrap_or_default()),
            choices => self.about(choices),
        };
        text += &format!("\n{} {}\n", self.bold("Usage:"), usage(path, command, choices));
        if choices.is_empty() {
            text += &self.words(command, detail);
            text += &self.options(parser, command, examples, detail);
        } else {
            let own = own_options(command, choices);
            text += &self.of_benchmarks(&own, choices, detail);
            let is_other = |arg: &Arg| own.iter().all(|own| own.get_id() != arg.get_id());
            text += &self.common(command, examples, "Other options", is_other);
        }
        if choices.is_empty() && !examples.examples.is_empty() {
            let most = if detail == Detail::Brief { FEW } else { usize::MAX };
            let lines = examples.lines(most, self.columns);
            text += &match FileFormat::check() {
                Err(why) if lines.is_empty() => format!("\n{}\n", self.filled(&why.to_string(), 0)),
                _ => format!("\n{}\n{lines}", self.bold("Examples:")),
            };
        }
        let more = more(path, command, examples, choices, detail);
        text + &format!("\n{}\n", self.filled(&format!("More: {}", more.join(", ")), 6))
    }

    /// Returns the help of a command that replaces another suite: the options that most people need.
    pub(in crate::commands) fn replacing(self, about: &str, usage: &str, command: &Command) -> String {
        let name = command.get_name();
        let examples = examples::for_command(name);
        let lines = examples.lines(FEW, self.columns);
        let common = self.common(command, examples, "Common options", |_| true);
        let more = format!(
            "More: ombx {name} --help (all options), ombx {name} PROGRAM --help (those of a program), ombx {name} (the programs)"
        );
        let (usage_word, heading, more) =
            (self.bold("Usage:"), self.heading("Examples"), self.filled(&more, 6));
        format!("{about}\n\n{usage_word} {usage}\n{common}{heading}{lines}\n{more}\n")
    }

    /// Returns the help of a program of another suite: the options of that suite and their values, and the names of those that start
    /// ranks.
    pub(in crate::commands) fn program(
        self,
        (about, usage): (&str, &str),
        command: &Command,
        is_shown: &dyn Fn(&Arg) -> bool,
        notes: &str,
    ) -> String {
        let mut text = format!("{about}\n\n{} {usage}\n", self.bold("Usage:"));
        let shown = |arg: &&Arg| !arg.is_hide_set() && is_shown(arg);
        let positionals = command.get_positionals().filter(shown).filter(|arg| arg.get_id() != "name");
        let positionals: String = positionals.map(|arg| self.argument(arg, Detail::Full)).collect();
        if !positionals.is_empty() {
            text += &format!("\n{positionals}");
        }
        let of_ranks = |arg: &Arg| arg.get_help_heading() == Some("Ranks");
        let mut heading = None;
        for arg in visible(command).filter(|arg| is_shown(arg) && !of_ranks(arg)) {
            let own = arg.get_help_heading().unwrap_or(OPTIONS);
            if heading != Some(own) {
                text += &self.heading(own);
                heading = Some(own);
            }
            text += &self.argument(arg, Detail::Full);
        }
        let names = visible(command).filter(|arg| of_ranks(arg)).filter_map(Arg::get_long);
        let names = names.map(|name| format!("--{name}")).collect::<Vec<_>>().join(", ");
        text += &self.heading(OF_RUN);
        text += &format!("  {}\n", self.filled(&names, 2));
        let examples = examples::for_command(command.get_name()).lines(usize::MAX, self.columns);
        text += &(self.heading("Examples") + &examples);
        text + &format!("\n{}\n", self.filled(notes, 0))
    }

    /// Returns a name, and below it what it means.
    pub(super) fn paragraph(self, name: &str, text: &str) -> String {
        format!("{name}\n      {}\n", self.filled(text, 6))
    }

    /// Returns the names of benchmarks with their sentences.
    fn about(self, choices: &[Choice]) -> String {
        let benches = benchmarks(choices);
        let width = benches.iter().map(|bench| bench.name.len() + 2).max().unwrap_or_default();
        benches.iter().map(|bench| self.entry(bench.name, &[bench.about.to_owned()], width)).collect()
    }

    /// Returns the words that a command takes, and its subcommands.
    fn words(self, command: &Command, detail: Detail) -> String {
        let mut text = String::new();
        for arg in command.get_positionals().filter(|arg| !arg.is_hide_set()) {
            text += &self.argument(arg, detail);
        }
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            text += &self.entry(&format!("  {}", sub.get_name()), &[about], INDENT);
        }
        if text.is_empty() { text } else { format!("\n{text}") }
    }

    /// Returns the options of a command: all, or those that most people need.
    fn options(self, parser: &Command, command: &Command, examples: &Examples, detail: Detail) -> String {
        if detail == Detail::Brief && !examples.common.is_empty() {
            return self.common(command, examples, "Common options", |_| true);
        }
        let run =
            if MEASURE[1..].contains(&command.get_name()) { parser.find_subcommand("run") } else { None };
        let is_common = |arg: &Arg| arg.get_long().is_some_and(|long| examples.has_common(long));
        let is_of_run = |arg: &Arg| {
            !is_common(arg) && run.is_some_and(|run| run.get_arguments().any(|other| is_same(arg, other)))
        };
        let is_single = |arg: &Arg| arg.get_help_heading() == Some(parameters::OWN);
        let mut text = String::new();
        let heading_of = |arg: &Arg| arg.get_help_heading().unwrap_or(OPTIONS).to_owned();
        let own = visible(command).filter(|arg| !is_single(arg) && !is_of_run(arg));
        for heading in each_once(own.map(heading_of)) {
            text += &self.heading(&heading);
            let of_heading = |arg: &&Arg| heading_of(arg) == heading && !is_of_run(arg);
            visible(command).filter(of_heading).for_each(|arg| text += &self.argument(arg, detail));
        }
        if run.is_some() {
            let listed = option_list(command, |arg| is_of_run(arg) && !is_single(arg));
            text += &self.heading(OF_RUN);
            text += &format!("  {}\n", self.filled(&listed, 2));
        }
        if visible(command).any(is_single) {
            text += &self.heading("Options of single benchmarks (ombx run BENCHMARK --help explains them)");
            text += &format!("  {}\n", self.filled(&option_list(command, is_single), 2));
        }
        text
    }

    /// Returns the options that most people need, as far as they are shown.
    fn common(
        self,
        command: &Command,
        examples: &Examples,
        title: &str,
        is_shown: impl Fn(&Arg) -> bool,
    ) -> String {
        let found = |name: &str| visible(command).find(|arg| arg.get_long() == Some(name));
        let shown = examples.common.iter().filter_map(|name| found(name)).filter(|arg| is_shown(arg));
        let lines: String = shown.map(|arg| self.argument(arg, Detail::Brief)).collect();
        self.heading(title) + &lines
    }

    /// Returns the options of benchmarks: in brief with their values, or with the first clause of their texts.
    fn of_benchmarks(self, own: &[&Arg], choices: &[Choice], detail: Detail) -> String {
        let names: Vec<&str> = benchmarks(choices).iter().map(|bench| bench.name).collect();
        let of = if names.len() > 3 { format!("these {} benchmarks", names.len()) } else { names.join(", ") };
        let sized = benchmarks(choices).into_iter().filter(|bench| bench.messages.sized);
        let sizes = sized.map(|bench| bench.messages.sizes).collect::<BTreeSet<_>>();
        let lines = own.iter().map(|arg| {
            if detail == Detail::Full {
                return self.argument(&with_sizes(arg, &sizes), detail);
            }
            let values = arg.get_possible_values();
            let names: Vec<&str> = values.iter().map(PossibleValue::get_name).collect();
            let text = sentence(arg, detail);
            let clause = [", ", "; ", " ["]
                .iter()
                .fold(text.as_str(), |text, end| text.split(end).next().unwrap_or(text));
            let text = if names.is_empty() { clause.to_owned() } else { names.join(", ") };
            self.entry(&format!("  {}", spelled(arg)), &[text], INDENT)
        });
        self.heading(&format!("Options of {of}")) + &lines.collect::<String>()
    }

    /// Returns the help of an argument: its names, text and values.
    pub(super) fn argument(self, arg: &Arg, detail: Detail) -> String {
        let (text, values) = (sentence(arg, detail), arg.get_possible_values());
        let values: Vec<&PossibleValue> = values.iter().filter(|value| !value.is_hide_set()).collect();
        let takes = arg.get_action().takes_values() && !arg.is_hide_possible_values_set();
        let mut lines: Vec<String> = text.split("\n\n").map(|part| part.replace('\n', " ")).collect();
        let default = arg.get_default_values().first().map(|value| value.to_string_lossy());
        if let (Some(default), Some(last)) = (default.filter(|_| takes), lines.last_mut()) {
            *last += &format!(" [default: {default}]");
        }
        let explains = detail == Detail::Full && values.iter().any(|value| value.get_help().is_some());
        if takes && !values.is_empty() && !explains {
            let names: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
            lines.push(names.join(", "));
        }
        let mut entry = self.entry(&format!("  {}", spelled(arg)), &lines, INDENT);
        if takes && explains {
            let width = values.iter().map(|value| value.get_name().chars().count()).max().unwrap_or_default();
            for value in values {
                let name = format!("{:indent$}  {}", "", value.get_name(), indent = self.indent(INDENT));
                let help = value.get_help().map(ToString::to_string).unwrap_or_default();
                entry += &self.entry(&name, &[help], self.indent(INDENT) + width + 4);
            }
        }
        entry
    }

    /// Returns a name and paragraphs beside it. They begin in this column, below a name that is too long.
    fn entry(self, name: &str, paragraphs: &[String], column: usize) -> String {
        let column = self.indent(column);
        let width = self.columns.saturating_sub(column).max(NARROW);
        let lines: Vec<String> = paragraphs.iter().flat_map(|text| wrapped(text, width)).collect();
        let mut text = name.to_owned();
        let length = name.chars().count();
        for (at, line) in lines.iter().enumerate() {
            if at > 0 || length + 2 > column {
                text += &format!("\n{:column$}{line}", "");
            } else {
                text += &format!("{:pad$}{line}", "", pad = column - length);
            }
        }
        text + "\n"
    }

    /// Returns a column in which texts begin, in a narrow terminal further to the left.
    fn indent(self, column: usize) -> usize {
        if column == INDENT && self.columns < 2 * INDENT { NARROW } else { column }
    }

    fn paragraphs(self, text: &str) -> String {
        let paragraphs = text.split("\n\n").map(|part| self.filled(&part.replace('\n', " "), 0));
        paragraphs.collect::<Vec<_>>().join("\n") + "\n"
    }

    /// Breaks a text into lines that begin in a column, the first one excepted.
    fn filled(self, text: &str, column: usize) -> String {
        wrapped(text, self.columns.saturating_sub(column)).join(&format!("\n{:column$}", ""))
    }

    /// Returns the title of a section.
    fn heading(self, title: &str) -> String {
        format!("\n{}\n", self.bold(&self.filled(&format!("{title}:"), 0)))
    }

    fn bold(self, text: &str) -> String {
        if self.is_coloured { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Returns the benchmarks that words of a command line name.
pub(super) fn named(registry: &Registry, command: &Command, words: &[&str]) -> Vec<Choice> {
    if !MEASURE.contains(&command.get_name()) {
        return Vec::new();
    }
    let names = words.iter().flat_map(|word| word.split(','));
    names.filter_map(|name| lookup::find(registry, name).ok()).flatten().collect()
}

/// Returns why the first word after a command that measures is no benchmark; `None` if it is one, an option or a file.
pub(super) fn unknown(registry: &Registry, command: &Command, words: &[&str]) -> Option<Error> {
    let first = words.first().filter(|word| !word.starts_with('-') && !is_suite(word))?;
    let wrong = || first.split(',').find_map(|name| lookup::find(registry, name).err());
    MEASURE.contains(&command.get_name()).then(wrong).flatten()
}

fn benchmarks(choices: &[Choice]) -> Vec<&'static Benchmark> {
    let mut benches: Vec<&'static Benchmark> = choices.iter().map(|choice| choice.bench).collect();
    benches.dedup_by_key(|bench| bench.name);
    benches
}

/// Returns an option whose text has the sizes of benchmarks in place of "the benchmark's", if all have the same.
fn with_sizes(arg: &Arg, sizes: &BTreeSet<&str>) -> Arg {
    let text = arg.get_long_help().map(ToString::to_string).unwrap_or_default();
    match sizes.first().filter(|_| sizes.len() == 1 && text.contains(OF_BENCHMARK)) {
        Some(sizes) => arg.clone().long_help(text.replace(OF_BENCHMARK, sizes)),
        None => arg.clone(),
    }
}

/// Returns the options of a command that some of the benchmarks have.
fn own_options<'c>(command: &'c Command, choices: &[Choice]) -> Vec<&'c Arg> {
    let benches = benchmarks(choices);
    let has = |bench: &Benchmark, name: &str| {
        bench.parameters().any(|parameter| parameter.heading != Heading::None && parameter.name == name)
            || (name == "sizes" && bench.messages.sized)
    };
    let is_own = |arg: &&Arg| arg.get_long().is_some_and(|name| benches.iter().any(|bench| has(bench, name)));
    visible(command).filter(is_own).collect()
}

/// Returns whether an argument of two commands means the same.
fn is_same(arg: &Arg, other: &Arg) -> bool {
    let text = |arg: &Arg| arg.get_help().map(ToString::to_string);
    let values = |arg: &Arg| arg.get_possible_values().len();
    arg.get_id() == other.get_id() && text(arg) == text(other) && values(arg) == values(other)
}

fn visible(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_positional() && !arg.is_hide_set())
}

/// Returns the options of a command that are wanted, sorted and separated by commas.
fn option_list(command: &Command, wanted: impl Fn(&Arg) -> bool) -> String {
    let named = visible(command).filter(|arg| wanted(arg)).filter_map(Arg::get_long);
    let mut names: Vec<String> = named.map(|name| format!("--{name}")).collect();
    names.sort();
    names.join(", ")
}

/// Returns how a command is called.
fn usage(path: &str, command: &Command, choices: &[Choice]) -> String {
    if let [first, others @ ..] = benchmarks(choices).as_slice() {
        let more = if others.is_empty() { "" } else { " .." };
        return format!("{path} {}{more} [OPTIONS]", first.name);
    }
    let words = command.get_positionals().filter(|arg| !arg.is_hide_set()).map(|arg| {
        let name = arg.get_value_names().map_or_else(|| arg.get_id().to_string(), |names| names.join(" "));
        let several = if arg.get_num_args().is_some_and(|count| count.max_values() == usize::MAX)
            || matches!(arg.get_action(), ArgAction::Append)
        {
            ".."
        } else {
            ""
        };
        let dashes = if arg.is_last_set() { "-- " } else { "" };
        if arg.is_required_set() {
            format!(" {dashes}{name}{several}")
        } else {
            format!(" [{dashes}{name}{several}]")
        }
    });
    let commands = if command.has_subcommands() { " COMMAND" } else { "" };
    format!("{path}{commands} [OPTIONS]{}", words.collect::<String>())
}

/// Returns the names of an argument with its value.
fn spelled(arg: &Arg) -> String {
    let value = arg.get_value_names().map_or(String::new(), |names| names.join(" "));
    if arg.is_positional() {
        return value;
    }
    let short = arg.get_short().map_or("    ".to_owned(), |short| format!("-{short}, "));
    let long = arg.get_long().map(|long| format!("--{long}")).unwrap_or_default();
    if !arg.get_action().takes_values() {
        return format!("{short}{long}");
    }
    let optional = arg.get_num_args().is_some_and(|count| count.min_values() == 0);
    if optional { format!("{short}{long}[=<{value}>]") } else { format!("{short}{long} <{value}>") }
}

/// Returns what an option does, without examples in a brief page.
fn sentence(arg: &Arg, detail: Detail) -> String {
    let help = match detail {
        Detail::Brief => arg.get_help(),
        Detail::Full => arg.get_long_help().or(arg.get_help()),
    };
    let text = help.map(ToString::to_string).unwrap_or_default();
    match text.split_once(", for example:").filter(|_| detail == Detail::Brief) {
        Some((before, after)) => {
            let default = after.find(" [default:").map_or("", |at| &after[at..]);
            format!("{before}{default}")
        }
        None => text,
    }
}

/// Returns what can be asked next.
fn more(
    path: &str,
    command: &Command,
    examples: &Examples,
    choices: &[Choice],
    detail: Detail,
) -> Vec<String> {
    let mut more = Vec::new();
    let measures = MEASURE.contains(&command.get_name());
    if let [first, ..] = benchmarks(choices).as_slice() {
        if detail == Detail::Brief {
            more.push(format!("{path} {} --help (what the values mean)", first.name));
        }
        more.push(format!("ombx list {} --long (what is timed)", first.name));
        more.push(format!("{path} --help (all options)"));
        return more;
    }
    if detail == Detail::Brief {
        more.push(format!("{path} --help (all options)"));
    }
    if measures {
        more.push(format!("{path} BENCHMARK --help (its own options, such as --window)"));
    }
    more.extend(examples.pages.iter().map(|page| format!("ombx help {page}")));
    more.push("ombx help WORD (an option, a value, a column, a mark)".to_owned());
    more
}
