//! Comparison as text tables.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Result, Write},
};

use ombx_compare::{
    CaseComparison, CaseId, Comparison, Counts, DecidedBy, HOST, INSTRUCTIONS_MARGIN, Note, Power, Reason,
    Side, SideInfo, Unit, UnitMedians, Verdict,
};
use ombx_estimate::{
    number::figure,
    text::{plain, title},
};
use ombx_record::unit::{Bytes, counted};
use serde_json::{Map, Value, json};

use crate::{
    Paint,
    table::cells::{Fitted, NO_VALUE, broken, fitted, grid, interval, size},
};

/// Returns the Markdown text of a comparison.
pub fn markdown(comparison: &Comparison) -> String {
    let sides = [&comparison.base, &comparison.new];
    let [base, new] = sides.map(|side| cell(&side.label));
    let mut lines = vec![format!("**{}.**", cell(&sentence(comparison))), String::new()];
    lines.extend(sides.map(|side| format!("- {}: {}", cell(&side.label), cell(&describe(side)))));
    lines.extend([
        String::new(),
        format!("| case | bytes | {base} | {new} | unit | time | 90% interval | verdict |"),
        "|:---|---:|---:|---:|:---|---:|---:|:---|".into(),
    ]);
    lines.extend(comparison.cases.iter().map(|case| row(case, comparison.margin)));
    let remarks: Vec<String> = comparison
        .broken
        .iter()
        .map(|(key, why)| format!("- failed only in {new}: {}", cell(&format!("{key}: {why}"))))
        .chain(comparison.notes.iter().map(|note| format!("- {}", cell(&note.text))))
        .collect();
    if !remarks.is_empty() {
        lines.push(String::new());
        lines.extend(remarks);
    }
    lines.join("\n") + "\n"
}

fn row(case: &CaseComparison, margin: f64) -> String {
    let cells = [
        cell(&heading(&case.id)),
        size(case.id.bytes),
        figure(case.base.median),
        figure(case.new.median),
        case.id.unit.to_owned(),
        percent(case.change.estimate),
        interval(case.change.ci90, percent),
        cell(&verdict(&case.verdict, margin)),
    ];
    format!("| {} |", cells.join(" | "))
}

/// Escapes what Markdown would read as markup: text of a file stays text.
fn cell(text: &str) -> String {
    plain(text)
        .chars()
        .flat_map(|c| ['\\'].into_iter().filter(move |_| "\\|`*_<>[]#".contains(c)).chain([c]))
        .collect()
}

/// Name, major and minor version of the schema.
const SCHEMA: (&str, u32, u32) = ("ombx.comparison", 1, 0);

/// Returns the JSON object of a comparison.
pub fn comparison_json(comparison: &Comparison) -> Value {
    let Counts { worse, better, same, undecided } = comparison.counts();
    json!({
        "schema": {"name": SCHEMA.0, "major": SCHEMA.1, "minor": SCHEMA.2},
        "base": side(&comparison.base),
        "new": side(&comparison.new),
        "margin": comparison.margin,
        "unit": if comparison.unit == Unit::Run { "run" } else { "turn" },
        "state": present(json!(comparison.state)),
        "summary": {
            "cases": comparison.cases.len(), "worse": worse, "better": better, "same": same,
            "undecided": undecided, "text": sentence(comparison),
        },
        "cases": comparison.cases.iter().map(case).collect::<Vec<_>>(),
        "unmatched": comparison.unmatched,
        "broken": comparison.broken.iter().map(|(key, why)| json!({"key": key, "reason": why})).collect::<Vec<_>>(),
        "notes": comparison.notes,
    })
}

fn side(side: &SideInfo) -> Value {
    json!({"label": side.label, "name": side.name, "launches": side.runs, "libraries": side.libraries})
}

fn case(case: &CaseComparison) -> Value {
    let CaseId { bench, key, metric, unit, bytes, depth, pairs, axes } = &case.id;
    let reason = match &case.verdict {
        Verdict::Undecided(reason) => Some(reason.to_string()),
        Verdict::Better | Verdict::Worse | Verdict::Same => None,
    };
    let power = |of: fn(&Power) -> Option<usize>| case.power.as_ref().and_then(of);
    present(json!({
        "bench": bench, "key": key, "metric": metric.name(), "unit": unit, "bytes": bytes, "depth": depth,
        "pairs": pairs, "axes": axes,
        "base": level(&case.base),
        "new": level(&case.new),
        "time_change": present(json!({"estimate": case.change.estimate, "ci90": case.change.ci90})),
        "p_adjusted": case.p_adjusted, "p_beyond_margin": case.p_beyond,
        "detectable": case.power.map(|power| power.detectable),
        "units_to_decide": power(|power| power.units_to_decide),
        "outlying_turn": case.outlying_turn,
        "not_slower": case.is_not_slower,
        "verdict": case.verdict.name(), "reason": reason,
        "decided_by": case.decided_by(),
        "instructions": case.instructions.as_deref().map(instructions),
    }))
}

/// Returns the comparison of a case by instructions per operation.
fn instructions(case: &CaseComparison) -> Value {
    present(json!({
        "base": case.base.median, "new": case.new.median,
        "change": present(json!({"estimate": case.change.estimate, "ci90": case.change.ci90})),
        "verdict": case.verdict.name(),
    }))
}

fn level(level: &UnitMedians) -> Value {
    json!({"median": level.median, "values": level.values, "range": level.range(), "trust": level.marks})
}

/// Removes fields that are null.
pub(crate) fn present(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().filter(|(_, field)| !field.is_null()).collect::<Map<_, _>>())
        }
        other => other,
    }
}

/// Returns the answer: `B is 1.08 times faster than A (1.03 to 1.13) for 8 bytes; same within 5% in 21 of 23 cases`.
pub fn sentence(comparison: &Comparison) -> String {
    let [base, new] = [&comparison.base.label, &comparison.new.label];
    let all = comparison.cases.len();
    let of = |verdict: &Verdict| -> Vec<&CaseComparison> {
        comparison.cases.iter().filter(|case| case.verdict == *verdict).collect()
    };
    let mut parts = Vec::new();
    for cases in [of(&Verdict::Worse), of(&Verdict::Better)] {
        let subject = if parts.is_empty() { format!("{new} is") } else { "it is".into() };
        parts.extend(changed(comparison, &cases).map(|text| format!("{subject} {text}")));
    }
    let broken = comparison.broken.len();
    parts.extend((broken > 0).then(|| format!("{} failed only in {new}", counted(broken, "case"))));
    let (same, within) = (of(&Verdict::Same).len(), margin(comparison.margin));
    parts.extend(match same {
        0 => None,
        same if same == all => {
            Some(format!("{new} and {base} are the same within {within} in {}", of_all(all, all)))
        }
        same => Some(format!("same within {within} in {}", of_all(same, all))),
    });
    let open = comparison.counts().undecided;
    parts.extend((open > 0).then(|| {
        let advice = advice(comparison);
        let advice = if advice.is_empty() { advice } else { format!(": {advice}") };
        format!("undecided in {}{advice}", of_all(open, all))
    }));
    parts.extend(by_instructions(comparison));
    let cores = comparison.state.core_to_core_ns.map(|ns| format!("; all with cores {ns:.0} ns apart"));
    parts.join("; ") + &cores.unwrap_or_default()
}

/// Returns what instructions say about the cases that times do not decide: `by instructions: B has 1.0% more than A for 8 bytes`.
fn by_instructions(comparison: &Comparison) -> Option<String> {
    let decided = comparison.cases.iter().filter(|case| case.decided_by() == Some(DecidedBy::Instructions));
    let (same, changed): (Vec<_>, Vec<_>) = decided
        .filter_map(|case| Some((case, case.instructions.as_deref()?)))
        .partition(|(_, counted)| counted.verdict == Verdict::Same);
    let same = (!same.is_empty()).then(|| {
        format!(
            "the same within {} in {}",
            margin(INSTRUCTIONS_MARGIN),
            of_all(same.len(), comparison.cases.len())
        )
    });
    let part = |verdict, word| changed_instructions(comparison, &changed, verdict, word);
    let all = [part(Verdict::Worse, "more"), part(Verdict::Better, "fewer"), same];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| format!("by instructions: {}", all.join(", ")))
}

/// Returns what instructions say about the changed cases with this verdict; `None` without one.
fn changed_instructions(
    comparison: &Comparison,
    changed: &[(&CaseComparison, &CaseComparison)],
    verdict: Verdict,
    word: &str,
) -> Option<String> {
    let [base, new] = [&comparison.base.label, &comparison.new.label];
    let cases: Vec<_> = changed.iter().filter(|(_, counted)| counted.verdict == verdict).collect();
    let size = |counted: &CaseComparison| counted.change.estimate.abs();
    let (case, most) = cases.iter().max_by(|a, b| size(a.1).total_cmp(&size(b.1)))?;
    let which = match cases.len() {
        1 => format!("for {}", name(comparison, case)),
        some => format!("in {}, most for {}", of_all(some, comparison.cases.len()), name(comparison, case)),
    };
    Some(format!("{new} has {:.1}% {word} than {base} {which}", size(most) * 100.0))
}

/// Returns what is said of the cases that are slower, or of those that are faster; `None` without one.
fn changed(comparison: &Comparison, cases: &[&CaseComparison]) -> Option<String> {
    let base = &comparison.base.label;
    let by_factor = |a: &&&CaseComparison, b: &&&CaseComparison| {
        a.change.estimate.abs().total_cmp(&b.change.estimate.abs())
    };
    let (least, most) = (cases.iter().min_by(by_factor)?, cases.iter().max_by(by_factor)?);
    let is_slower = most.verdict == Verdict::Worse;
    let word = if is_slower { "slower" } else { "faster" };
    let times = |change: f64| times(if is_slower { 1.0 + change } else { 1.0 / (1.0 + change) });
    let range = most.change.ci90.map(|[low, high]| {
        let [low, high] = if is_slower { [low, high] } else { [high, low] }.map(times);
        format!(" ({low} to {high})")
    });
    let range = range.unwrap_or_default();
    let (at, of) = (name(comparison, most), of_all(cases.len(), comparison.cases.len()));
    let [least, most] = [least, most].map(|case| times(case.change.estimate));
    Some(match cases.len() {
        1 => format!("{most} times {word} than {base}{range} for {at}"),
        _ if least == most => format!("{most} times {word} than {base} in {of}, most for {at}{range}"),
        _ => format!("{least} to {most} times {word} than {base} in {of}, most for {at}{range}"),
    })
}

/// Returns the name of a case: its size, and the benchmark unless all cases share it.
fn name(comparison: &Comparison, case: &CaseComparison) -> String {
    let heading_of = heading(&case.id);
    let one_bench = comparison.cases.iter().all(|other| heading(&other.id) == heading_of);
    match (case.id.bytes, one_bench) {
        (Some(bytes), true) => Bytes(bytes).with_noun(),
        (Some(bytes), false) => format!("{} of {heading_of}", Bytes(bytes).with_noun()),
        (None, _) => heading_of,
    }
}

/// Formats a factor with three digits.
fn times(factor: f64) -> String {
    match factor {
        x if x >= 100.0 => format!("{x:.0}"),
        x if x >= 10.0 => format!("{x:.1}"),
        x => format!("{x:.2}"),
    }
}

fn of_all(count: usize, all: usize) -> String {
    match (count, all) {
        (1, 1) => "the only case".into(),
        (2, 2) => "both cases".into(),
        (count, all) if count == all => format!("all {all} cases"),
        (count, all) => format!("{count} of {all} cases"),
    }
}

/// Returns one line with the number of cases of each verdict, and what could decide the others.
pub fn summary(comparison: &Comparison) -> String {
    let Counts { worse, better, same, undecided } = comparison.counts();
    let mut parts = vec![format!("{worse} worse")];
    parts.extend((better > 0).then(|| format!("{better} better")));
    parts.push(format!("{same} same within {}", margin(comparison.margin)));
    parts.push(format!("{undecided} undecided"));
    let line = parts.join(", ");
    let advice = advice(comparison);
    if advice.is_empty() { line } else { format!("{line}: {advice}") }
}

/// Returns what could decide the undecided cases.
fn advice(comparison: &Comparison) -> String {
    let undecided = || undecided_with_reasons(comparison);
    let open: Vec<&CaseComparison> =
        undecided().filter(|(_, reason)| !is_beyond_more_runs(reason)).map(|(case, _)| case).collect();
    let marks: BTreeSet<&Reason> =
        undecided().map(|(_, reason)| reason).filter(|reason| is_beyond_more_runs(reason)).collect();
    let needed = |case: &&CaseComparison| match case.power {
        Some(power) => power.units_to_decide,
        None => Some(comparison.unit.least()),
    };
    let reachable: Vec<usize> = open.iter().filter_map(needed).collect();
    let units = match comparison.unit {
        Unit::Run => "runs a side",
        Unit::Turn => "turns",
    };
    let more = reachable.iter().max().map(|number| {
        let which = match (reachable.len() == undecided().count(), reachable.len()) {
            (true, 1) => "it".to_owned(),
            (true, _) => "them".to_owned(),
            (false, some) => format!("{some} of them"),
        };
        format!("about {number} {units} could decide {which}")
    });
    let hopeless = open.len() - reachable.len();
    let hopeless = (hopeless > 0).then(|| format!("more than 100 {units} for {hopeless}"));
    more.into_iter()
        .chain(hopeless)
        .chain(outlying(comparison))
        .chain(marks.into_iter().map(Reason::to_string))
        .collect::<Vec<_>>()
        .join("; ")
}

/// Names the turns that alone keep cases undecided.
fn outlying(comparison: &Comparison) -> Vec<String> {
    let mut turns: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for turn in comparison.cases.iter().filter_map(|case| case.outlying_turn) {
        turns.entry(turn.number).or_default().push(turn.slower);
    }
    let [base, new] = [&comparison.base.label, &comparison.new.label];
    let text = |(number, slower): (u32, Vec<f64>)| {
        let most = slower
            .iter()
            .copied()
            .fold(1.0, |most: f64, one| if one.ln().abs() > most.ln().abs() { one } else { most });
        let (slow, fast) = if most < 1.0 { (base, new) } else { (new, base) };
        format!(
            "turn {number}, in which {slow} took up to {} times as long as {fast}, alone keeps {} from a verdict",
            times(most.max(1.0 / most)),
            counted(slower.len(), "case")
        )
    };
    turns.into_iter().map(text).collect()
}

/// Returns the undecided cases, each with the reason.
fn undecided_with_reasons(comparison: &Comparison) -> impl Iterator<Item = (&CaseComparison, &Reason)> {
    comparison.cases.iter().filter_map(|case| match &case.verdict {
        Verdict::Undecided(reason) => Some((case, reason)),
        Verdict::Worse | Verdict::Better | Verdict::Same => None,
    })
}

/// Returns whether more runs decide nothing, because those that exist say nothing.
fn is_beyond_more_runs(reason: &Reason) -> bool {
    matches!(reason, Reason::Marked(_) | Reason::OtherLinks | Reason::MachineChanged | Reason::UnknownState)
}

#[cfg(test)]
mod tests;

/// Maximum length of a label in the title of a column.
const LONGEST_LABEL: usize = 10;

/// Writes a comparison: one table per benchmark and choice of axes, then cases of one side, notes, and the summary. Lines fit into this
/// many columns of a terminal; `None` means that there is no limit.
pub fn table(
    out: &mut dyn Write,
    comparison: &Comparison,
    paint: Paint,
    columns: Option<usize>,
) -> Result<()> {
    let fit = |text: &str| broken(text, columns, "");
    let sides = [&comparison.base, &comparison.new];
    let width = sides.iter().map(|side| side.label.chars().count()).max().unwrap_or(0);
    for side in sides {
        let text = format!("{:width$}  {}", plain(&side.label), plain(&describe(side)));
        let fits = columns.is_none_or(|columns| text.chars().count() <= columns);
        writeln!(out, "{}", if fits { text } else { fit(&text) })?;
    }
    for cases in comparison.cases.chunk_by(|a, b| table_heading(&a.id) == table_heading(&b.id)) {
        writeln!(out, "\n{}", paint.heading(&fit(&plain(&table_heading(&cases[0].id)))))?;
        let has_interval = cases.iter().any(|case| case.change.ci90.is_some());
        let cells = if has_interval { intervals } else { ranges };
        let (grid, left_out) = cells(comparison, cases).with_hosts(cases).fitted(cases, paint, columns);
        writeln!(out, "{grid}")?;
        if let (Some(columns), false) = (columns, left_out.is_empty()) {
            let left_out = left_out.join(", ");
            writeln!(
                out,
                "{}",
                fit(&format!("{columns} columns are too few for: {left_out} (--format json has all)"))
            )?;
        }
    }
    writeln!(out)?;
    for (key, why) in &comparison.broken {
        let label = &comparison.new.label;
        writeln!(out, "{}", paint.bad(&fit(&plain(&format!("FAILED only in {label}: {key}: {why}")))))?;
    }
    for lost in &comparison.unmatched {
        let (has, not) = match lost.only {
            Side::Base => (sides[0], sides[1]),
            Side::New => (sides[1], sides[0]),
        };
        let text = format!("only in {}: {} ({}: {})", has.label, lost.key, not.label, lost.why);
        writeln!(out, "{}", fit(&plain(&text)))?;
    }
    for Note { text, .. } in &comparison.notes {
        writeln!(out, "{}", fit(&plain(text)))?;
    }
    writeln!(out, "{}", fit(&plain(&sentence(comparison))))
}

/// Formats a fraction as a signed percentage: `+10.1%`.
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent.abs() >= 1000.0 { format!("{percent:+.0}%") } else { format!("{percent:+.1}%") }
}

/// Formats a margin: `5%`.
pub fn margin(fraction: f64) -> String {
    format!("{}%", (fraction * 1e6).round() / 1e4)
}

/// Formats a verdict: `same within 5%`.
pub fn verdict(verdict: &Verdict, within: f64) -> String {
    match verdict {
        Verdict::Same => format!("same within {}", margin(within)),
        Verdict::Undecided(reason) => format!("undecided: {reason}"),
        Verdict::Worse | Verdict::Better => verdict.name().to_owned(),
    }
}

fn describe(side: &SideInfo) -> String {
    let (launches, runs) = (side.launches, side.commands);
    let launches = counted(launches, "launch");
    let runs = if runs > 1 { format!("{runs} runs, ") } else { String::new() };
    let libraries: Vec<&str> = side.libraries.iter().map(String::as_str).collect();
    format!("{} · {runs}{launches} · {}", side.name, libraries.join(", "))
}

fn heading(id: &CaseId) -> String {
    title(&id.bench, &id.axes, id.depth, id.pairs)
}

/// Returns the heading of the table of a case: hosts have one table, with a column for their names.
fn table_heading(id: &CaseId) -> String {
    let axes = id.axes.iter().filter(|(name, _)| id.host().is_none() || *name != HOST);
    title(&id.bench, axes, id.depth, id.pairs)
}

/// Returns the titles of the columns with figures of the sides.
fn side_titles(comparison: &Comparison, cases: &[CaseComparison]) -> [String; 2] {
    let label = |side: &SideInfo| side.label.chars().take(LONGEST_LABEL).collect::<String>();
    let title = |side| plain(&format!("{} {}", label(side), cases[0].id.unit));
    [title(&comparison.base), title(&comparison.new)]
}

/// Titles and cells of a table of cases. The last column is the verdict.
struct Cells {
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Cells {
    /// Adds a first column with the hosts of cases that have one.
    fn with_hosts(mut self, cases: &[CaseComparison]) -> Cells {
        if cases.iter().any(|case| case.id.host().is_some()) {
            self.titles.insert(0, HOST.to_owned());
            let names = cases.iter().map(|case| case.id.host().map_or_else(String::new, plain));
            self.rows.iter_mut().zip(names).for_each(|(row, name)| row.insert(0, name));
        }
        self
    }

    /// Returns the table, and the titles of the columns that did not fit.
    fn fitted(self, cases: &[CaseComparison], paint: Paint, columns: Option<usize>) -> (String, Vec<String>) {
        let Fitted { titles, rows, left_out } = fitted(self.titles, self.rows, columns);
        let last = titles.len() - 1;
        let mut grid = grid(titles, 0..last);
        for (case, mut row) in cases.iter().zip(rows) {
            // Escape sequences would count in the width of other columns.
            row[last] = match case.verdict {
                Verdict::Better => paint.good(&row[last]),
                Verdict::Worse => paint.bad(&row[last]),
                Verdict::Same | Verdict::Undecided(_) => std::mem::take(&mut row[last]),
            };
            grid.add_row(row);
        }
        (grid.trim_fmt(), left_out)
    }
}

/// Returns the table of cases with intervals.
fn intervals(comparison: &Comparison, cases: &[CaseComparison]) -> Cells {
    let [base, new] = side_titles(comparison, cases);
    let titles =
        ["bytes", &base, &new, "time", "90% interval", "finds", "verdict"].map(str::to_owned).to_vec();
    let row = |case: &CaseComparison| {
        vec![
            size(case.id.bytes),
            figure(case.base.median),
            figure(case.new.median),
            percent(case.change.estimate),
            interval(case.change.ci90, percent),
            case.power.map_or(NO_VALUE.into(), |power| finds(power.detectable)),
            verdict_cell(case, comparison.margin),
        ]
    };
    Cells { titles, rows: cases.iter().map(row).collect() }
}

/// Returns the table of cases that have too few launches for an interval.
fn ranges(comparison: &Comparison, cases: &[CaseComparison]) -> Cells {
    let [base, new] = side_titles(comparison, cases);
    let titles = ["bytes", &base, "range", &new, "range", "time", "verdict"].map(str::to_owned).to_vec();
    let row = |case: &CaseComparison| {
        vec![
            size(case.id.bytes),
            figure(case.base.median),
            range(&case.base),
            figure(case.new.median),
            range(&case.new),
            percent(case.change.estimate),
            verdict_cell(case, comparison.margin),
        ]
    };
    Cells { titles, rows: cases.iter().map(row).collect() }
}

fn range(side: &UnitMedians) -> String {
    interval((side.values.len() > 1).then(|| side.range()), figure)
}

/// Formats the smallest detectable difference with two digits.
fn finds(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let digits = usize::from(percent < 10.0);
    if percent >= 1000.0 { ">1000%".into() } else { format!("{percent:.digits$}%") }
}

/// Returns the verdict without its reason, which stands in the summary.
fn verdict_cell(case: &CaseComparison, within: f64) -> String {
    if case.decided_by() == Some(DecidedBy::Instructions)
        && let Some(counted) = &case.instructions
    {
        return match counted.verdict {
            Verdict::Worse => format!("more instructions ({})", percent(counted.change.estimate)),
            Verdict::Better => format!("fewer instructions ({})", percent(counted.change.estimate)),
            Verdict::Same | Verdict::Undecided(_) => "same instructions".into(),
        };
    }
    match &case.verdict {
        Verdict::Better => "better".into(),
        Verdict::Worse => "worse".into(),
        Verdict::Same => verdict(&case.verdict, within),
        Verdict::Undecided(Reason::SizeUnknown) => "differs".into(),
        Verdict::Undecided(_) => "undecided".into(),
    }
}
