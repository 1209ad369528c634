//! Tables of the reference, as text for a terminal and for manual pages.

const EXIT_CODES: &str = include_str!("../../../reference/exit-codes.md");
const MARKS: &str = include_str!("../../../reference/marks.md");
const COLUMNS: &str = include_str!("../../../reference/columns.md");

/// What the levels of marks mean.
pub(super) const LEVELS: &str = "A mark names what could have disturbed a row. A note explains the row, and its figure holds (shown with \
     -v). With a caution the figure may be off by more than its interval says. No verdict may rest on an invalid figure. Where the level \
     is by D, the largest possible effect D on the median decides it: note up to half the interval or --precision, caution above it, \
     invalid above five times this.";

/// One row of the table of exit codes.
pub(super) struct ExitCode {
    pub(super) code: String,
    /// Names of commands, or `all`.
    pub(super) commands: String,
    pub(super) meaning: String,
}

impl ExitCode {
    /// Returns whether a command can end with this code.
    #[cfg(any(test, feature = "codegen"))]
    pub(super) fn is_of(&self, command: &str) -> bool {
        self.commands == "all" || self.commands.split(", ").any(|name| name == command)
    }
}

/// One row of the tables of marks.
pub(super) struct MarkRow {
    pub(super) code: String,
    pub(super) shown: String,
    pub(super) level: String,
    pub(super) condition: String,
    pub(super) advice: String,
}

pub(super) fn exit_codes() -> impl Iterator<Item = ExitCode> {
    rows::<3>(EXIT_CODES).map(|[code, commands, meaning]| ExitCode { code, commands, meaning })
}

pub(super) fn marks() -> impl Iterator<Item = MarkRow> {
    rows::<5>(MARKS).map(|[code, shown, level, condition, advice]| MarkRow {
        code,
        shown,
        level,
        condition,
        advice,
    })
}

/// One row of the tables of columns and words.
pub(super) struct Column {
    /// `column`, or nothing of a word that is none.
    pub(super) kind: &'static str,
    pub(super) names: Vec<String>,
    pub(super) meaning: String,
}

/// Returns all columns and words.
pub(super) fn columns() -> impl Iterator<Item = Column> {
    sections().flat_map(|(_, columns)| columns)
}

/// Returns the title and the columns of each section.
pub(super) fn sections() -> impl Iterator<Item = (String, impl Iterator<Item = Column>)> {
    COLUMNS
        .split("\n## ")
        .skip(1)
        .map(|section| (plain(section.lines().next().unwrap_or_default()), columns_of(section)))
}

fn columns_of(section: &'static str) -> impl Iterator<Item = Column> {
    // Each table begins with its kind.
    section
        .split("\n| ")
        .scan("", |kind, row| {
            *kind = if row.starts_with("column |") {
                "column "
            } else if row.starts_with("word |") {
                ""
            } else {
                *kind
            };
            Some((*kind, row))
        })
        .flat_map(|(kind, row)| {
            let line = format!("| {}", row.lines().next().unwrap_or_default());
            let found: Vec<[String; 2]> = rows(&line).collect();
            found.into_iter().map(move |[names, meaning]| Column {
                kind,
                names: names.split(", ").map(str::to_owned).collect(),
                meaning,
            })
        })
}

/// Returns the levels of marks, and what each means.
pub(super) fn levels() -> impl Iterator<Item = [String; 3]> {
    rows(MARKS)
}

/// Returns the rows of all tables of a page that have this many columns, without their titles.
fn rows<const N: usize>(page: &str) -> impl Iterator<Item = [String; N]> {
    let lines = page.lines().filter(|line| line.starts_with('|'));
    let cells = lines.map(|line| line.trim_matches('|').split('|').map(plain).collect::<Vec<_>>());
    let rows = cells.filter(|cells| {
        !["code", "column", "word", "level"].contains(&cells[0].as_str()) && !cells[0].starts_with("---")
    });
    rows.filter_map(|cells| cells.try_into().ok())
}

/// Returns the text of a cell without links and marks of Markdown.
fn plain(cell: &str) -> String {
    let mut text = String::new();
    let mut rest = cell;
    while let Some((before, link)) = rest.split_once('[') {
        let (shown, after) = link.split_once("](").unwrap_or((link, ")"));
        let after = after.split_once(')').map_or("", |(_, after)| after);
        // A link in brackets of its own only refers to another page.
        match (before.strip_suffix(" ("), after.strip_prefix(')')) {
            (Some(before), Some(after)) => {
                text += before;
                rest = after;
            }
            _ => {
                text += &format!("{before}{shown}");
                rest = after;
            }
        }
    }
    text += rest;
    text.replace('`', "").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ombx_record::error::Exit;

    use super::*;

    #[test]
    fn cells_lose_their_markdown() {
        assert_eq!(plain(" a `b` ([statistics](statistics.md#x)) c "), "a b c");
        assert_eq!(plain("see [here](x)"), "see here");
        assert_eq!(plain("plain"), "plain");
    }

    #[test]
    fn the_tables_are_read() {
        assert!(marks().count() > 20 && marks().any(|mark| mark.code == "bimodal"));
        assert!(exit_codes().any(|row| row.code == "9" && row.is_of("links") && !row.is_of("run")));
        assert!(exit_codes().any(|row| row.code == "2" && row.is_of("run")));
        let kind = |name: &str| {
            columns().find(|column| column.names.iter().any(|other| other == name)).unwrap().kind
        };
        assert!(columns().count() > 30);
        assert_eq!(
            ["x ordinary", "verdict", "undecided", "baseline"].map(kind),
            ["column ", "column ", "", ""]
        );
        assert_eq!(levels().map(|[level, ..]| level).collect::<Vec<_>>(), ["note", "caution", "invalid"]);
    }

    #[test]
    fn the_table_has_every_exit_code_and_no_other() {
        let known: BTreeSet<String> = Exit::ALL.iter().map(|exit| exit.code().to_string()).collect();
        let signals = format!("{} + N", Exit::SIGNAL);
        let listed: BTreeSet<String> =
            exit_codes().map(|row| row.code.to_owned()).filter(|code| *code != signals).collect();
        assert_eq!(listed, known);
        assert!(exit_codes().any(|row| row.code == signals));
    }
}
