//! Comparison of two sides: number of cases per verdict, change of each case with its interval, and notes.

use std::collections::BTreeSet;

use maud::{Markup, html};
use ombx_compare::{CaseComparison, Comparison, Side, SideInfo, Unit, Verdict};
use ombx_draw::terminal::LinearAxis;
use ombx_estimate::{number::figure, text::title};
use ombx_record::{
    result::MarkCode,
    unit::{Bytes, counted},
};
use ombx_show::compare::{margin, verdict};

use crate::plot::{Canvas, Labels, n, symbol};

const TOP: f64 = 8.0;
/// Maximum number of ticks, which an axis that is symmetric about 0 does not exceed.
const TICKS: usize = 7;
/// Maximum number of cases in the chart. The table has all.
const MAX_DRAWN: usize = 40;
/// Maximum number of cases for which the table is initially open.
const MAX_OPEN: usize = 120;
/// Maximum number of listed cases that only one side has.
const MAX_UNMATCHED: usize = 40;

/// Returns the sort key of a verdict: worse, better, undecided, same.
fn rank(case: &CaseComparison) -> usize {
    match case.verdict {
        Verdict::Worse => 0,
        Verdict::Better => 1,
        Verdict::Undecided(_) => 2,
        Verdict::Same => 3,
    }
}

pub(crate) fn section(comparison: &Comparison) -> Markup {
    let mut cases: Vec<&CaseComparison> = comparison.cases.iter().collect();
    cases.sort_by(|a, b| {
        rank(a).cmp(&rank(b)).then(b.change.estimate.abs().total_cmp(&a.change.estimate.abs()))
    });
    let names = [&comparison.base, &comparison.new].map(|side| side.label.as_str());
    let heading = format!("Time in {} against {}", names[1], names[0]);
    html! {
        section #comparison aria-labelledby="comparison-h" {
            h2 #comparison-h { "Comparison" }
            p { (names[0]) ": " b { (side(&comparison.base)) } ". " (names[1]) ": " b { (side(&comparison.new)) } "." }
            p.soft {
                "The unit of the comparison is the " (if comparison.unit == Unit::Run { "run" } else { "turn" }) ". A case is worse or better if its difference is shown to be beyond ±"
                (margin(comparison.margin)) ", among all cases. Intervals are not corrected for the number of cases."
                @if let Some(ns) = comparison.state.core_to_core_ns { " All with cores " (format!("{ns:.0}")) " ns apart." }
            }
            @if !cases.is_empty() {
                figure #comparison-changes {
                    figcaption {
                        h3 { (heading) }
                        p {
                            "Hodges-Lehmann estimate of the difference in percent with its 90 % interval. \
                             More time is slower, for bandwidths too."
                            @if cases.len() > MAX_DRAWN { " The first " (MAX_DRAWN) " of " (cases.len()) " cases; the table has all." }
                        }
                    }
                    div.wide role="group" aria-label={ (heading) ", chart" } {
                        (Canvas::both(|canvas| draw(canvas, &cases[..cases.len().min(MAX_DRAWN)], &heading)))
                        (symbols())
                    }
                }
                details.rows open[cases.len() <= MAX_OPEN] {
                    summary { b { "All cases" } " · " (cases.len()) }
                    (table(&cases, comparison))
                }
            }
            @if !comparison.broken.is_empty() {
                h3 { "Failed only in " (names[1]) }
                ul.notes { @for (key, why) in &comparison.broken { li { code { (key) } ": " (why) } } }
            }
            @if !comparison.unmatched.is_empty() {
                details {
                    summary { b { "Measured on one side only" } " · " (counted(comparison.unmatched.len(), "case")) }
                    ul.notes {
                        @for one in comparison.unmatched.iter().take(MAX_UNMATCHED) {
                            li { code { (one.key) } ", only in " (names[usize::from(one.only == Side::New)]) ": " (one.why) }
                        }
                        @if comparison.unmatched.len() > MAX_UNMATCHED { li { "and " (comparison.unmatched.len() - MAX_UNMATCHED) " more" } }
                    }
                }
            }
        }
    }
}

fn side(side: &SideInfo) -> String {
    let libraries: Vec<&str> = side.libraries.iter().map(String::as_str).collect();
    format!("{} ({}, {})", side.name, counted(side.launches, "launch"), libraries.join(", "))
}

/// Formats a fraction as a signed percentage.
fn percent(fraction: f64) -> String {
    format!("{:+.1} %", fraction * 100.0).replace('-', "\u{2212}")
}

/// Returns the name of a case that people read: benchmark, axes and size.
fn name(case: &CaseComparison) -> String {
    let id = &case.id;
    let size = id.bytes.map(|bytes| format!(" · {}", Bytes(bytes).with_noun()));
    format!("{}{}", title(&id.bench, &id.axes, id.depth, id.pairs), size.unwrap_or_default())
}

fn interval(case: &CaseComparison) -> String {
    case.change.ci90.map_or("n/a".into(), |[low, high]| format!("{} .. {}", percent(low), percent(high)))
}

/// Returns the axis in percent, symmetric about 0.
fn axis(cases: &[&CaseComparison]) -> LinearAxis {
    let ends = cases.iter().flat_map(|case| {
        let [low, high] = case.change.ci90.unwrap_or([case.change.estimate; 2]);
        [low, high, case.change.estimate]
    });
    // Changes above 1000 % are clipped. The number beside the line shows the value.
    let most = ends.map(|x| (x * 100.0).abs()).filter(|x| x.is_finite()).fold(1.0, f64::max).min(1000.0);
    LinearAxis::covering(-most, most)
}

/// Draws one size. Names stand beside the lines, or above them on a phone.
fn draw(canvas: Canvas, cases: &[&CaseComparison], heading: &str) -> Markup {
    let labels = Labels::new(canvas, cases.iter().map(|case| name(case)));
    let (width, line) = (canvas.width(), labels.height());
    let (right, id) = (width - canvas.pick(84.0, 66.0), canvas.id("compare"));
    let axis = axis(cases);
    let left = labels.width();
    let bottom = TOP + line * cases.len() as f64;
    let across = |percent: f64| left + 8.0 + axis.position(percent).clamp(0.0, 1.0) * (right - left - 16.0);
    html! {
        svg class=(canvas.class()) viewBox={ "0 0 " (width) " " (n(bottom + 44.0)) } role="img" aria-labelledby={ (id) "-t " (id) "-d" } {
            title id={ (id) "-t" } { (heading) }
            desc id={ (id) "-d" } {
                @for case in cases { (name(case)) ": " (percent(case.change.estimate)) ", " (case.verdict.name()) ". " }
            }
            @for value in axis.ticks(TICKS) {
                @let x = n(across(value));
                path class=(if value == 0.0 { "axis" } else { "grid" }) d={ "M" (x) " " (TOP) "V" (n(bottom)) } {}
                text x=(x) y=(n(bottom + 17.0)) text-anchor="middle" { (format!("{value:+}").replace("+0", "0").replace('-', "\u{2212}")) }
            }
            text.soft x=(n((left + right) / 2.0)) y=(n(bottom + 36.0)) text-anchor="middle" {
                "difference of the time in %"
            }
            @for (at, case) in cases.iter().enumerate() {
                @let middle = TOP + labels.middle(at);
                @let y = n(middle);
                @let (class, shape) = look(case);
                (labels.draw(at, middle))
                g class={ "series " (class) } {
                    @if let Some([low, high]) = case.change.ci90 {
                        path.ci d={ "M" (n(across(low * 100.0))) " " (y) "m0-3v6m0-3H" (n(across(high * 100.0))) "m0-3v6" } {}
                    }
                    path.mark.open[shape == 0] transform={ "translate(" (n(across(case.change.estimate * 100.0))) " " (y) ")" } d=(symbol(shape)) {
                        title { (name(case)) ": " (percent(case.change.estimate)) ", " (case.verdict.name()) ", 90 % interval " (interval(case)) }
                    }
                }
                text x=(n(right + 6.0)) y=(y) dy="4" { (percent(case.change.estimate)) }
            }
        }
    }
}

/// Returns the legend of the chart.
fn symbols() -> Markup {
    html! {
        ul.legend aria-label="Symbols" {
            @for (class, shape, word) in [("s1", 4, "worse"), ("s0", 2, "better"), ("s2", 1, "same"), ("s6", 0, "undecided")] {
                li { svg class={ "series " (class) } aria-hidden="true" viewBox="-7 -7 14 14" { path.mark.open[shape == 0] d=(symbol(shape)) {} } (word) }
            }
        }
    }
}

/// Returns class and symbol of a verdict.
fn look(case: &CaseComparison) -> (&'static str, usize) {
    match case.verdict {
        Verdict::Worse => ("s1", 4),
        Verdict::Better => ("s0", 2),
        Verdict::Same => ("s2", 1),
        Verdict::Undecided(_) => ("s6", 0),
    }
}

/// Formats the smallest difference that the launches of a case would have shown.
fn finds(case: &CaseComparison) -> String {
    case.power.map_or("n/a".into(), |power| format!("{:.1} %", power.detectable * 100.0))
}

fn table(cases: &[&CaseComparison], comparison: &Comparison) -> Markup {
    let marks = |case: &CaseComparison| {
        let marks = case.base.marks.iter().chain(&case.new.marks);
        let marks: BTreeSet<String> = marks.map(MarkCode::phrase).collect();
        marks.into_iter().collect::<Vec<_>>().join(", ")
    };
    let has_marks = cases.iter().any(|case| !marks(case).is_empty());
    html! {
        div.wide role="group" aria-label="All compared cases" {
            table {
                thead { tr {
                    th.word scope="col" { "case" } th.word scope="col" { "verdict" } th scope="col" { (comparison.base.label) } th scope="col" { (comparison.new.label) }
                    th.word scope="col" { "unit" } th scope="col" { "time" } th scope="col" { "90% interval" } th scope="col" { "finds" }
                    @if has_marks { th.word scope="col" { "trust" } }
                } }
                tbody {
                    @for case in cases {
                        tr {
                            th.word scope="row" { (name(case)) }
                            @match &case.verdict {
                                Verdict::Worse => td.word.is-bad { "worse" },
                                Verdict::Better => td.word.is-good { "better" },
                                other => td.word { (verdict(other, comparison.margin)) },
                            }
                            td { (figure(case.base.median)) } td { (figure(case.new.median)) }
                            td.word { (case.id.unit.replace("us", "µs")) }
                            td { (percent(case.change.estimate)) } td { (interval(case)) } td { (finds(case)) }
                            @if has_marks { td.word.is-doubt { (marks(case)) } }
                        }
                    }
                }
            }
        }
    }
}
