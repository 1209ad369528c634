//! `ombx help`: the help of a command, pages of the reference that a terminal shows, and what a word means.

pub(super) mod examples;
#[cfg(feature = "codegen")]
pub(super) mod manual;
pub(super) mod page;
mod reference;
mod word;

use std::{ffi::OsString, path::Path};

use clap::{Args, Command};
use ombx_core::benchmark::Registry;
use ombx_record::{error::Result, order::sort_by_number};
use ombx_show::wrapped;

use self::page::{Detail, Page};
use crate::suite::is_suite;

const EXIT_CODES: &str = "exit-codes";
const MARKS: &str = "marks";
const EXPECTATIONS: &str = "expectations";
const SUITES: &str = "suites";
const COLUMNS: &str = "columns";
/// Pages that are not the help of a command.
pub(super) const PAGES: [(&str, &str); 5] = [
    (EXIT_CODES, "Exit codes of all commands"),
    (MARKS, "What the marks of the column trust mean, and what to do"),
    (COLUMNS, "What the columns of tables and of CSV mean"),
    (EXPECTATIONS, "File of ombx check: keys, limits, baseline"),
    (SUITES, "File of ombx run: benchmarks with options"),
];
/// Commands with a help of their own, which is that of the programs they replace.
const REPLACING: [&str; 2] = ["osu", "imb"];

#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// Command, page (marks, columns, exit-codes, expectations, suites), option, value of an option, benchmark, column, mark or exit code [default: all commands]
    #[arg(value_name = "WORD", allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Returns the commands of users, in the order of the help.
pub(super) fn visible(parser: &Command) -> Vec<&Command> {
    let mut commands: Vec<&Command> =
        parser.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    sort_by_number(&mut commands, |command| command.get_display_order() as i64);
    commands
}

/// Returns the commands that have an option, those aside whose options are of other suites.
pub(super) fn having<'p>(parser: &'p Command, option: &str) -> Vec<&'p str> {
    let has = |command: &&Command| {
        let mut own = command.get_arguments().filter(|arg| !arg.is_hide_set());
        own.any(|arg| arg.get_long() == Some(option)) && !REPLACING.contains(&command.get_name())
    };
    visible(parser).into_iter().filter(has).map(Command::get_name).collect()
}

/// Returns the help that a command line asks for by `-h` or `--help`.
pub(super) fn asked(registry: &Registry, parser: &Command, words: &[OsString]) -> String {
    asked_on(Page::of_stdout(), registry, parser, words)
}

fn asked_on(page: Page, registry: &Registry, parser: &Command, words: &[OsString]) -> String {
    let mut words = words.iter().skip(1).filter_map(|word| word.to_str()).peekable();
    let (mut command, mut path) = (parser, "ombx".to_owned());
    while let Some(sub) = words.peek().and_then(|word| command.find_subcommand(word)) {
        path += &format!(" {}", sub.get_name());
        (command, _) = (sub, words.next());
    }
    let words: Vec<&str> = words.collect();
    if path == "ombx" {
        return page.front(parser);
    }
    let detail = if words.contains(&"--help") { Detail::Full } else { Detail::Brief };
    let choices = page::named(registry, command, &words);
    let unknown =
        page::unknown(registry, command, &words).map(|why| format!("{why}\n\n")).unwrap_or_default();
    unknown + &page.command(parser, (&path, command), &choices, detail)
}

/// What `ombx help` prints.
pub(super) enum Answer {
    Text(String),
    /// Command line that prints the help.
    Words(Vec<OsString>),
}

/// Returns the answer of `ombx help`.
///
/// # Errors
/// The word means nothing.
pub(super) fn answer(registry: &Registry, parser: &Command, args: &HelpArgs) -> Result<Answer> {
    let page = Page::of_stdout();
    let word = args.words.join(" ");
    let command = visible(parser).into_iter().find(|command| command.get_name() == word);
    Ok(Answer::Text(match (word.as_str(), command) {
        ("" | "-h" | "--help", _) => page.front(parser),
        (MARKS | "mark", _) => marks(page.columns),
        (EXIT_CODES | "exit-code" | "exit codes" | "exit code", _) => exit_codes(page.columns),
        (COLUMNS | "column", _) => columns(page),
        (EXPECTATIONS | "limits" | "limit", _) => expectations(page.columns),
        (SUITES | "suite", _) => suites(page.columns),
        (name, _) if is_suite(name) => {
            let line = if name.ends_with(".toml") && !Path::new(name).exists() {
                return Ok(Answer::Text(expectations(page.columns) + "\n" + &suites(page.columns)));
            } else {
                ["ombx", "list", name]
            };
            return Ok(Answer::Words(line.map(OsString::from).to_vec()));
        }
        (name, Some(_)) if REPLACING.contains(&name) => {
            return Ok(Answer::Words(["ombx", name, "--help"].map(OsString::from).to_vec()));
        }
        (name, Some(command)) => page.command(parser, (&format!("ombx {name}"), command), &[], Detail::Full),
        (word, None) => word::explained(registry, parser, word, page)?,
    }))
}

fn expectations(columns: usize) -> String {
    let about = "File of ombx check: jobs of ombx run, each with a limit of time (latency), bandwidth (bw) or days (within). \
                 ombx check FILE --learn adds a result to the directory `baseline`, on seven days or more. For example:";
    example(about, examples::NODE_CHECK, columns)
}

fn suites(columns: usize) -> String {
    let about = "File of ombx run: benchmarks, and the options of ombx run as keys without --. A list makes a row of each value. \
                 ombx run my.toml runs it. For example, suite:smoke:";
    example(about, examples::SUITE, columns)
}

/// Returns an example of a file, which can be used as it is: the text before it is a comment.
fn example(about: &str, file: &str, columns: usize) -> String {
    let about = wrapped(about, columns.saturating_sub("# ".len())).join("\n# ");
    format!("# {about}\n\n{file}")
}

fn exit_codes(columns: usize) -> String {
    let rows = reference::exit_codes();
    let lines =
        rows.map(|row| paragraph(&row.code, 10, &format!("{} ({})", row.meaning, row.commands), columns));
    lines.collect()
}

fn columns(page: Page) -> String {
    let mut text = String::new();
    for (title, columns) in reference::sections() {
        text += &format!("{title}\n\n");
        columns.for_each(|row| text += &column(&row, page));
        text.push('\n');
    }
    text
}

/// Returns the names of a column or a word, and what it means.
fn column(row: &reference::Column, page: Page) -> String {
    page.paragraph(&format!("{}{}", row.kind, row.names.join(", ")), &row.meaning)
}

fn marks(columns: usize) -> String {
    let marks = reference::marks().map(|row| mark(&row, columns));
    paragraph("", 0, reference::LEVELS, columns) + &marks.collect::<String>()
}

/// Returns what a mark means and what to do.
fn mark(mark: &reference::MarkRow, columns: usize) -> String {
    let mut text = format!("\n{}\n", mark.shown);
    for (name, value) in
        [("code", &mark.code), ("level", &mark.level), ("if", &mark.condition), ("do", &mark.advice)]
    {
        text += &paragraph(&format!("  {name}"), 9, value, columns);
    }
    text
}

/// Returns a name and a text beside it, whose lines all begin in the same column.
fn paragraph(name: &str, before: usize, text: &str, columns: usize) -> String {
    let lines = wrapped(text, columns.saturating_sub(before)).join(&format!("\n{:before$}", ""));
    format!("{name:before$}{lines}\n")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use ombx_core::benchmark::Registry;

    use super::*;
    use crate::commands::{Cli, parser, tests::prepare};

    /// The examples replace what a command says itself.
    #[test]
    fn no_command_has_another_end_of_its_help() {
        for command in Cli::command().get_subcommands() {
            assert!(command.get_after_help().is_none(), "{}: add it to the examples", command.get_name());
        }
    }

    #[test]
    fn every_command_has_examples_that_it_accepts() {
        let registry = Registry::load().unwrap();
        let parser = parser(&registry);
        for command in visible(&parser) {
            let name = command.get_name();
            let examples = examples::for_command(name);
            assert!(!examples.examples.is_empty(), "{name} has no examples");
            for option in &examples.common {
                let has = command.get_arguments().any(|arg| arg.get_long() == Some(option.as_str()));
                assert!(has, "{name} has no option --{option}");
            }
            for (_, line) in &examples.examples {
                let own: Vec<&str> = line.split(" && ").filter_map(ombx_of).collect();
                assert!(own.iter().any(|line| line.starts_with(&format!("ombx {name}"))), "{line}");
                assert!(line.len() <= 78, "{line}");
                #[cfg(all(feature = "mpi", feature = "sockets"))]
                for line in own {
                    if let Err(why) = prepare(&registry, line) {
                        // Examples read files of the user.
                        assert!(why.to_string().contains("No such file"), "{line}: {why}");
                    }
                }
            }
        }
    }

    /// Returns a command from its `ombx` on, without what reads its output.
    fn ombx_of(line: &str) -> Option<&str> {
        let line = &line[line.find("ombx ")?..];
        let ends = [" | ", " > ", ")"].into_iter().filter_map(|end| line.find(end));
        Some(&line[..ends.min().unwrap_or(line.len())])
    }

    #[test]
    fn the_front_has_every_command() {
        let parser = parser(&Registry::load().unwrap());
        let page = Page { columns: 80, is_coloured: false };
        let front = page.front(&parser);
        for command in visible(&parser) {
            let name = command.get_name();
            assert!(front.lines().any(|line| line.starts_with(&format!("  {name} "))), "{name}\n{front}");
        }
        assert!(front.lines().count() <= 40, "{front}");
    }

    #[cfg(all(feature = "mpi", feature = "sockets"))]
    #[test]
    fn a_page_fits_and_is_no_longer_than_its_reader_needs() {
        let registry = Registry::load().unwrap();
        let parser = parser(&registry);
        for (line, most) in [
            ("ombx", 40),
            ("ombx run -h", 40),
            ("ombx run --help", 200),
            ("ombx ab -h", 45),
            ("ombx ab --help", 115),
            ("ombx congestion --help", 80),
            ("ombx links -h", 45),
            ("ombx run p2p.latency -h", 70),
            ("ombx sockets serve -h", 40),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let text = asked_on(Page { columns: 80, is_coloured: false }, &registry, &parser, &words);
            let lines = text.lines().count();
            assert!(lines <= most, "{line}: {lines} lines\n{text}");
        }
        let page = Page { columns: 60, is_coloured: false };
        for command in visible(&parser) {
            let text = page.command(&parser, ("ombx x", command), &[], Detail::Full);
            let prose = text.lines().filter(|line| !line.starts_with("  ombx"));
            for line in prose.filter(|line| !line.contains("mpiexec") && !line.contains("ombx ")) {
                assert!(line.chars().count() <= 60, "{}: {line}", command.get_name());
            }
        }
    }

    #[cfg(all(feature = "mpi", feature = "sockets"))]
    #[test]
    fn every_word_is_explained() {
        let registry = Registry::load().unwrap();
        let parser = parser(&registry);
        let page = Page { columns: 80, is_coloured: false };
        for word in word::words(&registry, &parser) {
            let is_page = PAGES.iter().any(|(name, _)| *name == word);
            let is_command = visible(&parser).iter().any(|command| command.get_name() == word);
            let text = word::explained(&registry, &parser, &word, page);
            assert!(is_page || is_command || text.is_ok(), "{word}: {text:?}");
        }
        let of = |word: &str| word::explained(&registry, &parser, word, page).unwrap();
        assert!(of("--sync").contains("ombx run, congestion, ab:\n      --sync <VALUE>"), "{}", of("--sync"));
        assert!(of("-o").contains("--output"), "{}", of("-o"));
        assert!(
            of("flush").contains("--sync flush") && of("flush").contains("MPI_Win_flush"),
            "{}",
            of("flush")
        );
        assert!(
            of("9").contains("exit code 9 of check") && of("9").contains("links, cluster"),
            "{}",
            of("9")
        );
        assert!(of("oversubscribed").contains("use fewer ranks"), "{}", of("oversubscribed"));
        assert!(of("x ordinary").starts_with("column x ordinary"), "{}", of("x ordinary"));
        assert!(of("p2p.latency").contains("calls"), "{}", of("p2p.latency"));
        for (word, part) in [
            ("rma", "rma.put_latency"),
            ("collectives", "collective.bcast"),
            ("allreduce", "collective.iallreduce"),
            ("137", "exit code 137 of run"),
            ("level", "level caution of marks"),
            ("within", "within = \"20%\"    # of the time of good days"),
            ("undecided", "a quieter machine"),
            ("baseline", "ombx check FILE --learn"),
            ("slow", "15 %"),
            ("exit code 6", "exit code 6 of run"),
            ("exit 137", "exit code 137 of run"),
            ("p1", "column p50 iteration, p95 iteration"),
            ("p99.5 iteration", "column p50 iteration, p95 iteration"),
            ("bus MB/s", "column algorithm, bus"),
            ("cwnd", "column cwnd bytes"),
            ("95%", "column 95% within this run"),
            ("jitter us", "RFC 3550"),
            ("ci95_low_ns", "interval of the median"),
            ("ci95", "interval of the median"),
            ("95 %", "column 95% within this run"),
            ("row", "one benchmark at one size"),
            ("preempted 3x (up to 12%)", "code   preempted"),
            ("interrupts of eth0", "mark interrupts of DEVICE"),
            ("far from mlx5_0", "mark far from DEVICE"),
            ("n1 eth0 rx_errors +12 (up to 2%)", "mark HOST DEVICE COUNTER"),
            ("not converged (3%)", "code   not_converged"),
            ("±1.5 %, not ±1 %", "code   precision_missed"),
        ] {
            assert!(of(word).contains(part), "{word}: {}", of(word));
        }
        let calling = of("MPI_Put");
        assert!(
            calling.starts_with("benchmarks that call MPI_Put") && calling.contains("rma.put_bw"),
            "{calling}"
        );
        for word in ["exit quickly", "p-1", "p1e1", "pnan", "p100", "there"] {
            assert!(word::explained(&registry, &parser, word, page).is_err(), "{word}");
        }
        for word in ["shared memory", "ranks on two hosts", "clock skew"] {
            let text = word::explained(&registry, &parser, word, page).unwrap_or_default();
            assert!(!text.contains("\n  code"), "{word}: {text}");
        }
        for word in ["doubts", "127"] {
            let wrong = word::explained(&registry, &parser, word, page).unwrap_err();
            assert!(!wrong.to_string().contains("did you mean"), "{wrong}");
        }
        let wrong = word::explained(&registry, &parser, "oversubscribd", page).unwrap_err();
        assert!(wrong.to_string().contains("'oversubscribed'"), "{wrong}");
    }

    #[cfg(all(feature = "mpi", feature = "sockets"))]
    #[test]
    fn every_column_of_csv_is_explained() {
        let registry = Registry::load().unwrap();
        let parser = parser(&registry);
        let format =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../FORMAT.md")).unwrap();
        let section =
            format.split("## CSV").nth(1).and_then(|rest| rest.split("`--percentiles").next()).unwrap();
        let is_name = |word: &&str| {
            let is_value = ["true", "false", "failed", "within_run", "within_launch"].contains(word);
            !is_value
                && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        };
        let names: Vec<&str> = section.split('`').skip(1).step_by(2).filter(is_name).collect();
        assert!(names.len() > 70, "{names:?}");
        let page = Page { columns: 80, is_coloured: false };
        for name in names {
            let text = word::explained(&registry, &parser, name, page).unwrap();
            // Options and texts that have the same word do not explain the column.
            let is_explanation =
                |line: &str| line.trim_start_matches("column ").split(", ").any(|own| own == name);
            assert!(text.lines().any(is_explanation), "{name}\n{text}");
        }
    }

    #[cfg(all(feature = "mpi", feature = "sockets"))]
    #[test]
    fn a_wrong_name_is_said_before_the_help() {
        let registry = Registry::load().unwrap();
        let parser = parser(&registry);
        let help = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            asked_on(Page { columns: 80, is_coloured: false }, &registry, &parser, &words)
        };
        assert!(help("ombx run p2p.latencyy --help").starts_with("no benchmark is called"));
        assert!(help("ombx run p2p.latency,p2p.bw -h").starts_with("p2p.latency "));
        for known in ["ombx run suite:smoke -h", "ombx run -n 2 -h", "ombx show nothing.jsonl -h"] {
            assert!(!help(known).contains("no benchmark"), "{known}");
        }
    }

    #[test]
    fn the_pages_have_every_row() {
        let marks = marks(60);
        for part in ["oversubscribed\n  code", "  level  by D", "  do     use fewer ranks"] {
            assert!(marks.contains(part), "{part}\n{marks}");
        }
        assert!(marks.lines().all(|line| line.chars().count() <= 60), "{marks}");
        let codes = exit_codes(60);
        for code in ["0 ", "2 ", "3 ", "8 ", "10 ", "128 + N "] {
            assert!(codes.lines().any(|line| line.starts_with(code)), "{code}\n{codes}");
        }
    }
}
