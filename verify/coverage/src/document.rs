//! Tables, and docs/COVERAGE.md.

use crate::{
    launches::Launched,
    line::{Line, Verdict, wilson},
};

/// Lines before and after the table of METHODOLOGY.md.
pub(crate) const BEGINNING: &str = "<!-- Written by `cargo xtask coverage --write`. -->\n";
const END: &str = "<!-- End of what is written. -->\n";

fn percent(hits: u64, of: u64) -> String {
    if of == 0 { "n/a".into() } else { format!("{:.1}", hits as f64 / of as f64 * 100.0) }
}

pub(crate) fn with_interval(hits: u64, of: u64) -> String {
    if of == 0 {
        return "n/a".into();
    }
    let [low, high] = wilson(hits, of);
    format!("{} ({:.1} to {:.1})", percent(hits, of), low * 100.0, high * 100.0)
}

/// Returns a line that is printed when a model is done.
pub(crate) fn progress(line: &Line) -> String {
    let c = line.coverage;
    format!(
        "{:14} {:24} {} samples, covered {} %, marked {} %, without a mark covered {} %: {}",
        line.model.family,
        line.model.name,
        c.samples / c.rows.max(1),
        percent(c.covered, c.intervals),
        percent(c.marked, c.rows),
        with_interval(c.silent_covered, c.silent),
        line.verdict()
    )
}

const HEAD: &str = "| noise | parameter | rows | samples | covered % | marked % | without a mark, covered % | covered or marked % | |\n\
    |---|---|---|---|---|---|---|---|---|\n";

/// Returns a line for each model.
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
            line.verdict(),
        )
    };
    HEAD.chars().chain(lines.iter().map(line).collect::<String>().chars()).collect()
}

/// Returns a line for each family, with the range over its models, for METHODOLOGY.md.
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
            range(&|line| (line.verdict() != Verdict::Marked)
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

/// Returns the table of launches on this machine.
pub(crate) fn launches(launched: &[Launched]) -> String {
    let mut text = String::from(
        "| over | bytes | launches | median of launches | smallest | largest | half-width of an interval, % | intervals that contain it, % |\n\
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

/// Returns docs/COVERAGE.md.
pub(crate) fn page(lines: &[Line], launched: &[Launched], rows: u64) -> String {
    let launched = if launched.is_empty() {
        "Not measured in this run: `cargo xtask coverage --launches 30` does.\n".into()
    } else {
        launches(launched)
    };
    let date = ombx_core::system::environment::timestamp();
    format!(include_str!("method.md"), rows = rows, date = date, table = table(lines), launched = launched)
}

/// Replaces the table of a text; `None` if the text has no place for it.
pub(crate) fn placed(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGINNING)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGINNING}{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_replaces_the_marked_part_of_the_page() {
        let text = format!("a\n{BEGINNING}old\n{END}b\n");
        assert_eq!(placed(&text, "new\n"), Some(format!("a\n{BEGINNING}new\n{END}b\n")));
        assert_eq!(placed("a", "new"), None);
    }
}
