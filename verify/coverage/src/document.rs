//! What coverage says, in tables.

use std::fmt;

use ombx_core::testkit::coverage::{Coverage, SLOWER};

use crate::{Line, launches::Launched};

/// Where the table of METHODOLOGY.md begins and ends.
pub(crate) const BEGINNING: &str = "<!-- Written by `cargo xtask coverage --write`. -->\n";
const END: &str = "<!-- End of what is written. -->\n";

/// Intervals of 95 % hold the truth so often, in practice.
const GOAL: [f64; 2] = [0.93, 0.97];

/// What follows from the rows of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// As often as they should, as far as can be told.
    Right,
    /// More often: intervals are wider than they need to be.
    Wide,
    /// Certainly less often.
    Low,
    /// No row can tell.
    Unseen,
    /// Most rows are marked.
    Marked,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Right => "as it should be",
            Verdict::Wide => "wider than needed",
            Verdict::Low => "TOO LOW",
            Verdict::Unseen => "not seen in a row",
            Verdict::Marked => "marked",
        })
    }
}

/// A row that misses the truth without a word is what must not be; that most are marked is no fault.
pub(crate) fn verdict(line: &Line) -> Verdict {
    let Coverage { rows, marked, silent, silent_covered, .. } = line.coverage;
    let [_, honest] = wilson(marked + silent_covered, rows);
    let [least, _] = wilson(silent_covered, silent);
    match () {
        () if honest < GOAL[0] && line.model.family == SLOWER => Verdict::Unseen,
        () if honest < GOAL[0] => Verdict::Low,
        () if silent * 2 < rows => Verdict::Marked,
        () if least > GOAL[1] => Verdict::Wide,
        () => Verdict::Right,
    }
}

/// Wilson's 95 % interval of a share.
pub(crate) fn wilson(hits: u64, of: u64) -> [f64; 2] {
    if of == 0 {
        return [0.0, 1.0];
    }
    let (n, z) = (of as f64, 1.959_964);
    let share = hits as f64 / n;
    let middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    [middle - half, middle + half]
}

fn percent(hits: u64, of: u64) -> String {
    if of == 0 { "n/a".into() } else { format!("{:.1}", hits as f64 / of as f64 * 100.0) }
}

fn with_interval(hits: u64, of: u64) -> String {
    if of == 0 {
        return "n/a".into();
    }
    let [low, high] = wilson(hits, of);
    format!("{} ({:.1} to {:.1})", percent(hits, of), low * 100.0, high * 100.0)
}

/// A line for who waits.
pub(crate) fn told(line: &Line) -> String {
    let c = line.coverage;
    format!(
        "{:14} {:24} {} samples, covered {} %, marked {} %, without a mark covered {} %: {}",
        line.model.family,
        line.model.name,
        c.samples / c.rows.max(1),
        percent(c.covered, c.intervals),
        percent(c.marked, c.rows),
        with_interval(c.silent_covered, c.silent),
        verdict(line)
    )
}

const HEAD: &str = "| noise | parameter | rows | samples | covered % | marked % | without a mark, covered % | covered or marked % | |\n\
    |---|---|---|---|---|---|---|---|---|\n";

/// Every model.
pub(crate) fn table(lines: &[Line]) -> String {
    let line = |line: &Line| {
        let c = line.coverage;
        format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            line.model.family,
            line.model.name,
            c.rows,
            c.samples / c.rows.max(1),
            percent(c.covered, c.intervals),
            percent(c.marked, c.rows),
            with_interval(c.silent_covered, c.silent),
            percent(c.marked + c.silent_covered, c.rows),
            verdict(line),
        )
    };
    HEAD.chars().chain(lines.iter().map(line).collect::<String>().chars()).collect()
}

/// Every family, for METHODOLOGY.md: the least and the most of its models.
pub(crate) fn families(lines: &[Line]) -> String {
    let mut text = String::from(
        "| noise | models | without a mark, of models not mostly marked: covered % | marked % | covered or marked % |\n|---|---|---|---|---|\n",
    );
    for family in lines.chunk_by(|a, b| a.model.family == b.model.family) {
        let range = |of: &dyn Fn(&Line) -> Option<f64>| {
            let values: Vec<f64> = family.iter().filter_map(of).collect();
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if values.is_empty() { "n/a".into() } else { format!("{least:.1} to {most:.1}") }
        };
        let share = |hits: u64, of: u64| 100.0 * hits as f64 / of as f64;
        text += &format!(
            "| {} | {} | {} | {} | {} |\n",
            family[0].model.family,
            family.len(),
            range(&|line| (verdict(line) != Verdict::Marked)
                .then(|| share(line.coverage.silent_covered, line.coverage.silent))),
            range(&|line| Some(share(line.coverage.marked, line.coverage.rows))),
            range(&|line| Some(share(
                line.coverage.marked + line.coverage.silent_covered,
                line.coverage.rows
            ))),
        );
    }
    text
}

/// Launches on this machine.
pub(crate) fn launches(launched: &[Launched]) -> String {
    let mut text = String::from(
        "| over | bytes | launches | median of launches | smallest | largest | half an interval, % | their intervals hold it, % |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for one in launched {
        let [least, most] = one.ends_us;
        text += &format!(
            "| {} | {} | {} | {:.3} us | {least:.3} | {most:.3} | {:.2} | {} |\n",
            one.over,
            one.bytes,
            one.launches,
            one.median_us,
            one.half * 100.0,
            with_interval(one.covered, one.launches),
        );
    }
    text
}

/// docs/COVERAGE.md.
pub(crate) fn page(lines: &[Line], launched: &[Launched], rows: u64) -> String {
    let launched = if launched.is_empty() {
        "Not measured in this run: `cargo xtask coverage --launches 30` does.\n".into()
    } else {
        launches(launched)
    };
    let date = ombx_core::env::timestamp();
    format!(include_str!("method.md"), rows = rows, date = date, table = table(lines), launched = launched)
}

/// A text with a table in its place.
pub(crate) fn placed(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGINNING)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGINNING}{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombx_core::testkit::coverage::MODELS;

    fn line(silent: u64, silent_covered: u64) -> Line {
        let coverage =
            Coverage { rows: 1000, marked: 1000 - silent, silent, silent_covered, ..Coverage::default() };
        Line { model: &MODELS[0], coverage }
    }

    #[test]
    fn a_verdict_allows_for_chance() {
        assert_eq!(verdict(&line(1000, 950)), Verdict::Right);
        assert_eq!(verdict(&line(1000, 920)), Verdict::Right);
        assert_eq!(verdict(&line(1000, 900)), Verdict::Low);
        assert_eq!(verdict(&line(1000, 990)), Verdict::Wide);
        assert_eq!(verdict(&line(10, 0)), Verdict::Marked);
        let [low, high] = wilson(950, 1000);
        assert!((low - 0.9347).abs() < 1e-3 && (high - 0.9619).abs() < 1e-3, "{low} {high}");
    }

    #[test]
    fn a_table_is_put_into_its_place() {
        let text = format!("a\n{BEGINNING}old\n{END}b\n");
        assert_eq!(placed(&text, "new\n"), Some(format!("a\n{BEGINNING}new\n{END}b\n")));
        assert_eq!(placed("a", "new"), None);
    }
}
