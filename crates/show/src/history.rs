//! Results over time as one JSON object, and as text: a table with a line per case, then each change with what else changed at that time.

use std::{
    collections::BTreeSet,
    io::{Result, Write},
};

use ombx_compare::history::{Case, Change, ChangeEvent, History, LEAST_RUNS, Point, Series, events};
use ombx_draw::terminal::{Characters, sparkline};
use ombx_estimate::{number::Decimals, text::plain};
use ombx_record::unit::counted;
use serde_json::{Value, json};

use crate::{
    Paint,
    compare::present,
    csv::{Lines, ends, text},
    table::cells::{Fitted, broken, fitted, grid, interval, size},
};

/// Width of the line of bars.
const TREND: usize = 16;
/// Beginning of lines that belong to a change.
const INDENT: &str = "  ";
/// Maximum number of differences that are named for a change.
const MOST_NAMED: usize = 8;
/// Number of characters of a date and of a time to the minute in RFC 3339.
const DATE: usize = 10;
const MINUTE: usize = 16;

/// Power of the search for changes, as `cargo xtask coverage verdicts` simulates it (docs/EVIDENCE.md).
const POWER: &str =
    "a change of 3 standard deviations is found after 5, 8 and 12 runs in about 30, 80 and 95 of 100 series";

/// How a table is shown.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// Colours.
    pub paint: Paint,
    /// Number of columns; `None` means that there is no limit.
    pub columns: Option<usize>,
    /// Characters of the bars.
    pub characters: Characters,
}

/// Writes the table of cases, those that changed first, then the changes by time, and a summary.
pub fn table(out: &mut dyn Write, history: &History, screen: Screen) -> Result<()> {
    let indented = |text: &str, indent: &str| broken(&plain(text), screen.columns, indent);
    let fit = |text: &str| indented(text, "");
    for cases in history.series.chunk_by(|a, b| heading(&a.case) == heading(&b.case)) {
        writeln!(out, "{}", screen.paint.heading(&fit(&heading(&cases[0].case))))?;
        writeln!(out, "{}\n", of_cases(history, cases, screen))?;
    }
    for event in events(history) {
        let sentence = fit(&sentence(&event));
        let painted = if event.slower { screen.paint.bad(&sentence) } else { screen.paint.good(&sentence) };
        writeln!(out, "{painted}")?;
        for line in details(&event) {
            writeln!(out, "{INDENT}{}", indented(&line, INDENT))?;
        }
        writeln!(out)?;
    }
    if history.series.iter().any(Series::is_judged) {
        writeln!(out, "{}", fit(POWER))?;
    }
    writeln!(out, "{}", fit(&summary(history)))
}

/// Returns the answer: how many cases changed, did not change, and have too few runs.
pub fn summary(history: &History) -> String {
    let all = history.series.len();
    let changed = history.series.iter().filter(|series| !series.changes.is_empty()).count();
    let short = history.series.iter().filter(|series| !series.is_judged()).count();
    let judged = counted(all - short, "case");
    let mut text = match changed {
        0 if short == all => {
            return format!(
                "{} with fewer than {LEAST_RUNS} runs: too few to find a change",
                counted(all, "case")
            );
        }
        0 => format!("no change found in {judged}"),
        _ => format!("{changed} of {judged} changed"),
    };
    let left_out: usize = history.series.iter().map(|series| series.left_out).sum();
    let counts = [
        (short, "cases with too few runs to find a change"),
        (left_out, "rows left out because of an invalid mark"),
        (history.copies, "results left out because they are copies"),
        (history.namesakes, "results left out because another result has their name"),
        (history.future, "results left out because they start in the future"),
        (history.unknown_states, "rows left out because the state of the machine is unknown"),
    ];
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!("; {what}: {count}");
    }
    text
}

/// Returns what cases of one table have in common: `p2p.bw depth=64 · 2 ranks on n[01-02] · mpi`.
pub fn heading(case: &Case) -> String {
    let placed = match (&case.hosts, &case.ends) {
        (Some(hosts), _) => format!("{} on {hosts}", counted(case.ranks as usize, "rank")),
        (None, Some(_)) => "between hosts".to_owned(),
        (None, None) => format!("{} on any hosts", counted(case.ranks as usize, "rank")),
    };
    let row = format!("{} {}", case.bench(), case.choices());
    let state = case.core_to_core_ns.map_or(String::new(), |ns| format!(" · cores {ns} ns apart"));
    format!("{} · {placed} · {}{state}", row.trim_end(), case.fabric)
}

/// Returns the name of a case in its table.
pub fn label(case: &Case) -> String {
    match &case.ends {
        Some([from, to]) => plain(&format!("{from} -> {to}, {}", size(case.bytes()))),
        None => size(case.bytes()),
    }
}

fn of_cases(history: &History, cases: &[Series], screen: Screen) -> String {
    let unit = cases[0].metric.unit();
    let case = if cases[0].case.ends.is_some() { "link, bytes" } else { "bytes" };
    let titles = [case, "runs", "first", "last", "trend", unit, "interval", "change"];
    let rows = cases.iter().map(|series| cells(history, series, screen.characters)).collect();
    let Fitted { titles, rows, .. } = fitted(titles.map(str::to_owned).to_vec(), rows, screen.columns);
    let last = titles.len() - 1;
    let mut grid = grid(titles, 0..last - 3);
    for column in [last - 2, last - 1] {
        if let Some(column) = grid.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
    }
    for (series, mut row) in cases.iter().zip(rows) {
        let is_slower = series.changes.last().map(|change| change.ratio > 1.0);
        row[last] = match is_slower {
            Some(true) => screen.paint.bad(&row[last]),
            Some(false) => screen.paint.good(&row[last]),
            None => std::mem::take(&mut row[last]),
        };
        grid.add_row(row);
    }
    grid.trim_fmt()
}

/// Returns the cells of a case: its label, its number of values, the first and the last day, and the figures.
fn cells(history: &History, series: &Series, characters: Characters) -> Vec<String> {
    let (level, ends) = series.level();
    let decimals = Decimals::new(level, ends);
    let values: Vec<f64> = series.points.iter().map(|point| point.value).collect();
    let day = |at: usize| start(history.started(series, at), DATE);
    vec![
        label(&series.case),
        series.points.len().to_string(),
        day(0),
        day(series.points.len() - 1),
        sparkline(&values, TREND, characters),
        decimals.format(level),
        interval(ends, |end| decimals.format(end)),
        change(history, series),
    ]
}

/// Returns the last change of a case and how many there were before, or why there is none.
pub fn change(history: &History, series: &Series) -> String {
    let Some(last) = series.changes.last() else {
        return if series.is_judged() {
            "no change".into()
        } else {
            format!("too few runs: {LEAST_RUNS} needed")
        };
    };
    let text = format!("{} since {}", factor(last), start(history.started(series, last.at), DATE));
    match series.changes.len() - 1 {
        0 => text,
        earlier => format!("{text}, {earlier} earlier"),
    }
}

/// Returns the size of a change with its interval: `1.20 times slower (1.18 .. 1.22)`.
pub fn factor(change: &Change) -> String {
    let is_slower = change.ratio > 1.0;
    let of = |ratio: f64| if is_slower { ratio } else { 1.0 / ratio };
    let ends = change.ci90.map(|[low, high]| if is_slower { [low, high] } else { [of(high), of(low)] });
    let range = match ends {
        Some(_) => interval(ends, |ratio| format!("{ratio:.2}")),
        None => "no interval: too few runs".to_owned(),
    };
    let word = if is_slower { "slower" } else { "faster" };
    format!("{:.2} times {word} ({range})", of(change.ratio))
}

/// Returns what happened at one time, in a sentence.
pub fn sentence(event: &ChangeEvent<'_>) -> String {
    let Some((series, largest)) = event.changes.first() else { return String::new() };
    let cases: BTreeSet<&Case> = event.changes.iter().map(|(series, _)| &series.case).collect();
    let what = name(series);
    let since = start(event.since, MINUTE);
    match cases.len() {
        1 => format!("since {since} {what} is {}", factor(largest)),
        several => {
            let word = if event.slower { "slower" } else { "faster" };
            format!("since {since} {several} cases are {word}, most {what}: {}", factor(largest))
        }
    }
}

/// Returns the name of a case with its benchmark.
fn name(series: &Series) -> String {
    match &series.case.ends {
        Some([from, to]) => format!("{} from {from} to {to}", series.case.key),
        None => series.case.key.clone(),
    }
}

/// Returns the hosts whose links changed, and what else changed at the same time.
pub fn details(event: &ChangeEvent<'_>) -> Vec<String> {
    let mut lines = vec![format!("the last run before: {}", start(event.before, MINUTE))];
    if let Some(hosts) = &event.hosts {
        lines.push(format!("hosts of which several links changed: {hosts}"));
    }
    if event.differences.is_empty() {
        lines.push("nothing else that is recorded changed between these runs".into());
    }
    for difference in event.differences.iter().take(MOST_NAMED) {
        lines.push(format!("{}: {} -> {}", difference.name, difference.before, difference.after));
    }
    if let Some(more @ 1..) = event.differences.len().checked_sub(MOST_NAMED) {
        lines.push(format!("and {more} other differences (--format json has all)"));
    }
    lines
}

/// Returns a time in UTC without its end: `2026-03-16 02:00`.
fn start(started: &str, length: usize) -> String {
    let text: String = started.chars().take(length).collect();
    text.replace('T', " ")
}

/// Columns in order. New columns are added at the end only.
const COLUMNS: &str = "\
    key,fabric,ranks,hosts,from_host,to_host,unit,runs,first,last,level,level_low,level_high,judged,since,before,time_ratio,\
    time_ratio_low,time_ratio_high,differences,core_to_core_ns";

/// Writes a header line, then the lines. A value that does not exist is empty.
pub fn history_csv(out: &mut dyn Write, history: &History) -> Result<()> {
    let mut lines = Lines::default();
    for series in &history.series {
        if series.changes.is_empty() {
            lines.write(out, COLUMNS, &fields(history, series, None))?;
        }
        for change in &series.changes {
            lines.write(out, COLUMNS, &fields(history, series, Some(change)))?;
        }
    }
    out.flush()
}

fn fields(history: &History, series: &Series, change: Option<&Change>) -> Vec<String> {
    let (case, (level, interval)) = (&series.case, series.level());
    let [from, to] = case.ends.clone().unwrap_or_default();
    let [low, high] = ends(interval);
    let started = |at: usize| history.started(series, at).to_owned();
    let mut fields = vec![
        case.key.clone(),
        case.fabric.clone(),
        case.ranks.to_string(),
        case.hosts.clone().unwrap_or_default(),
        from,
        to,
        series.metric.unit().to_owned(),
        series.points.len().to_string(),
        started(0),
        started(series.points.len() - 1),
        level.to_string(),
        low,
        high,
        series.is_judged().to_string(),
    ];
    fields.extend(match change {
        None => vec![String::new(); 6],
        Some(change) => {
            let [low, high] = ends(change.ci90);
            let each = change.differences.iter().map(|d| format!("{}={}->{}", d.name, d.before, d.after));
            vec![
                started(change.at),
                started(change.at - 1),
                change.ratio.to_string(),
                low,
                high,
                each.collect::<Vec<_>>().join(";"),
            ]
        }
    });
    fields.push(text(case.core_to_core_ns));
    fields
}

/// Name, major and minor version of the schema.
const SCHEMA: (&str, u32, u32) = ("ombx.history", 1, 0);

/// Returns the JSON object of a history.
pub fn json(history: &History) -> Value {
    json!({
        "schema": {"name": SCHEMA.0, "major": SCHEMA.1, "minor": SCHEMA.2},
        "summary": summary(history),
        "cases": history.series.iter().map(|series| case_object(history, series)).collect::<Vec<_>>(),
        "events": events(history).iter().map(event_object).collect::<Vec<_>>(),
        "copies": history.copies,
        "namesakes": history.namesakes,
        "future": history.future,
    })
}

fn case_object(history: &History, series: &Series) -> Value {
    let (case, (level, ends)) = (&series.case, series.level());
    present(json!({
        "key": case.key, "bench": case.bench(), "fabric": case.fabric, "ranks": case.ranks, "hosts": case.hosts,
        "ends": case.ends, "core_to_core_ns": case.core_to_core_ns, "unit": series.metric.unit(), "judged": series.is_judged(), "left_out": series.left_out,
        "level": present(json!({"value": level, "interval": ends})),
        "runs": series.points.iter().map(|point| run_object(history, point)).collect::<Vec<_>>(),
        "changes": series.changes.iter().map(|found| change_object(history, series, found)).collect::<Vec<_>>(),
    }))
}

/// Returns the JSON object of a run of a case.
fn run_object(history: &History, point: &Point) -> Value {
    let result = &history.results[point.result];
    present(json!({"run": result.run, "started": result.started, "value": point.value, "ci95": point.ci95}))
}

fn change_object(history: &History, series: &Series, change: &Change) -> Value {
    present(json!({
        "since": history.started(series, change.at), "before": history.started(series, change.at - 1),
        "time_ratio": present(json!({"estimate": change.ratio, "ci90": change.ci90})),
        "differences": change.differences,
    }))
}

fn event_object(event: &ChangeEvent<'_>) -> Value {
    let name = |series: &Series| {
        present(json!({"key": series.case.key, "hosts": series.case.hosts, "ends": series.case.ends}))
    };
    present(json!({
        "since": event.since, "before": event.before, "slower": event.slower, "hosts": event.hosts,
        "cases": event.changes.iter().map(|(series, _)| name(series)).collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use ombx_compare::history::{DatedResult, Selection};

    use crate::history::*;

    const GOLDEN: &[u8] = include_bytes!("../../record/tests/golden/one_launch.jsonl");

    /// Returns the first row of the golden file as one of a day of March; the values of a week scatter.
    fn result(day: usize, value: f64) -> DatedResult {
        let mut result = ombx_compare::history::read(GOLDEN).unwrap().remove(0);
        result.rows.truncate(1);
        result.rows[0].value = value * (1.0 + 0.02 * ((day * 7 % 5) as f64 - 2.0) / 2.0);
        DatedResult {
            run: format!("r{day}"),
            started: format!("2026-03-{day:02}T02:00:00Z"),
            facts: [("kernel".to_owned(), if day < 16 { "6.1" } else { "6.2" }.to_owned())].into(),
            launches: Vec::new(),
            ..result
        }
    }

    fn history(late: f64) -> History {
        let value = |day: usize| if day < 16 { 10.0 } else { late };
        let of = |day: usize| result(day, value(day));
        History::new((1..=30).map(of).collect(), Selection::default(), |_| true)
    }

    fn shown(history: &History, columns: Option<usize>) -> String {
        let mut out = Vec::new();
        let screen = Screen { paint: Paint::Plain, columns, characters: Characters::Ascii };
        table(&mut out, history, screen).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_change_is_shown_with_its_date_and_what_changed() {
        let text = shown(&history(12.0), None);
        for part in [
            "p2p.latency · 2 ranks on n[01-02] · mpi\n",
            "     8    30  2026-03-01  2026-03-30",
            " times slower (1.1",
            "since 2026-03-16 02:00 p2p.latency/bytes=8 is 1.2",
            "  the last run before: 2026-03-15 02:00\n",
            "  kernel: 6.1 -> 6.2\n",
            "\n1 of 1 case changed\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }

    #[test]
    fn a_case_without_a_change_says_so() {
        let text = shown(&history(10.0), None);
        assert!(text.contains("  no change\n") && text.ends_with("\nno change found in 1 case\n"), "{text}");
        let mut short = history(10.0);
        short.series[0].points.truncate(5);
        let text = shown(&short, None);
        assert!(text.contains("too few runs: 12 needed") && !text.contains("no change"), "{text}");
    }

    #[test]
    fn lines_fit_into_a_terminal() {
        let text = shown(&history(12.0), Some(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("slower"), "{text}");
    }

    #[test]
    fn csv_and_json_have_the_same_change() {
        let history = history(8.0);
        let mut out = Vec::new();
        history_csv(&mut out, &history).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains(",2026-03-16T02:00:00Z,2026-03-15T02:00:00Z,0.8"), "{text}");
        let object = json(&history);
        let change = &object["cases"][0]["changes"][0];
        assert_eq!(change["since"], "2026-03-16T02:00:00Z", "{object}");
        assert_eq!(change["differences"][0]["after"], "6.2", "{object}");
        assert_eq!(object["cases"][0]["runs"].as_array().unwrap().len(), 30);
    }
}
