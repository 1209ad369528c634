//! Links on the page: the heat map, the histogram, the steps, and launches of one sweep.

use ombx_record::{
    file::ResultFile,
    link,
    result::{Level, Mark, MarkCode, Measurement, Metric, Work},
    stats::Summary,
};

use crate::{file, rendered, row, run};

/// Returns a sweep over four hosts with one rank each: 1 ms for each link, and 2 ms between ranks 1 and 3.
pub(crate) fn links(trust: &[Mark]) -> ResultFile {
    let name = |rank: u32| rank.to_string();
    let pairs = (0u32..4).flat_map(|a| (0u32..4).map(move |b| (a, b))).filter(|(a, b)| a != b);
    let rows = pairs.map(|(from, to)| {
        let ns = if from.min(to) == 1 && from.max(to) == 3 { 2e6 } else { 1e6 };
        let axes = [("pattern", "semidirectional"), ("from", &name(from)), ("to", &name(to))];
        let work = Some(Work { bytes: 2_000_000, ops: 2, legs: 2 });
        Measurement {
            metric: Metric::Bandwidth,
            work,
            trust: trust.to_vec(),
            ..row("links", &axes, 1_000_000, ns)
        }
    });
    file(run(&["n0", "n1", "n2", "n3"]), rows.collect())
}

#[test]
fn the_heat_map_outlines_slow_links() {
    let html = rendered(&[("l", &links(&[]))]);
    assert_eq!(html.matches("role=\"gridcell\"").count(), 16);
    assert_eq!(html.matches("tabindex=\"0\" x=").count(), 1, "one stop of the Tab key");
    assert_eq!(html.matches("class=\"none\"").count(), 4, "a rank and itself");
    let outlines = html.split("class=\"outlines\"").nth(1).unwrap().split("</g>").next().unwrap();
    assert_eq!(outlines.matches("<rect").count(), 2, "both directions of the slow link");
    assert!(html.contains("rank 1 on n1 and rank 3 on n3: 2000.0"), "cells say what they are");
    assert_eq!(html.matches("The link between n1 and n3 is slow").count(), 1, "the answer is not repeated");
    let evidence = "Evidence: n1-n3 2.00 x, against the median of 5 ordinary links (such as n0-n1, ";
    assert!(html.find(evidence).is_some() && html.find(evidence) < html.find("id=\"links\""), "{html}");
    assert!(html.contains("<h1>l · n0 .. n3 (4 hosts) · 2026-01-01</h1>"), "{html}");
    let slowest = "<td class=\"word\">n1 1</td><td class=\"word\">n3 3</td><td>2.00</td><td>2000</td>";
    assert!(html.contains(slowest), "from, to, ratio, time: {html}");
    let row =
        "<td class=\"word\">n3 3</td><td class=\"word\">n1 1</td><td class=\"word\">semidirectional</td>";
    assert!(html.contains(row), "both ends first: {html}");
    let shared = Mark::with_advice(MarkCode::SharedCpu, "s", "a");
    let html = rendered(&[("l", &links(&[shared]))]);
    assert!(html.contains("No verdict</span><div><p><b>Ranks share CPUs") && !html.contains("is slow"));
}

#[test]
fn the_heat_map_has_links_in_rounds() {
    let mut file = links(&[]);
    let map = |file: &ResultFile| {
        let html = rendered(&[("l", file)]);
        let map = html.split_once("role=\"grid\"").and_then(|(_, rest)| rest.split_once("</svg>"));
        map.expect("a map").0.to_owned()
    };
    let of_rows = map(&file);
    let mut run = file.runs.remove(0);
    for row in &mut run.rows {
        row.key = link::key_of_link(&row.axes, row.bytes, row.depth);
    }
    file.runs.push(run.in_rounds());
    assert_eq!((file.runs[0].rows.len(), file.runs[0].rounds.len()), (0, 1));
    assert_eq!(map(&file), of_rows);
}

#[test]
fn doubts_about_links_are_one_line_without_codes() {
    let mark = Mark::with_advice(MarkCode::NotConverged, "not converged (9%)", "raise --max-time")
        .at(Level::Caution);
    let mut file = links(&[]);
    file.runs[0].rows[..2].iter_mut().for_each(|row| row.trust.push(mark.clone()));
    let html = rendered(&[("l", &file)]);
    let line = "<summary>Doubts: 2 of 12 rows of links are marked: precision not reached (2).</summary>";
    assert!(html.contains(line), "{html}");
    assert!(html.contains(">n0 0 to n1 1, 1000000 bytes</a>") && !html.contains("not_converged"), "{html}");
}

#[test]
fn launches_of_a_sweep_are_one_with_a_histogram_and_steps() {
    let mut all = ResultFile::default();
    for (launch, factor) in [(1u32, 1.0), (2, 9.0), (3, 2.0)] {
        let mut of_launch = links(&[]).runs.remove(0);
        let options = [("launch", launch), ("launches", 3), ("randomize", 10 + launch)];
        of_launch.run.plan.extend(options.map(|(name, value)| (name.to_owned(), value.to_string())));
        for row in &mut of_launch.rows {
            // The circle method on four ranks: 1 with 3 in the second round, 0 with 2 in the same one.
            let rank = |axis: &str| row.axes[axis].parse::<u32>().unwrap();
            let round = match (rank("from").min(rank("to")), rank("from").max(rank("to"))) {
                (0, 1) | (2, 3) => 0,
                (1, 3) | (0, 2) => 1,
                _ => 2,
            };
            row.axes.insert("round".into(), round.to_string());
            let ns = row.summary.as_ref().unwrap().median * factor;
            row.summary = Summary::new(&[ns; 20]);
        }
        all.runs.push(of_launch);
    }
    let html = rendered(&[("l", &all)]);
    assert_eq!(html.matches("role=\"grid\"").count(), 1, "one map for all launches");
    assert!(html.contains("each the median of 3 launches"), "{html}");
    assert!(html.contains("rank 0 on n0 and rank 1 on n1: 2000"), "the median of 1, 9 and 2 ms: {html}");
    // Five links of 2 ms, one of 4 ms.
    assert!(html.contains("5 links from 2000") && html.contains("1 link from 3363"), "{html}");
    assert!(html.contains("18 steps: the links of a step"), "three rounds, two directions, three launches");
    let lines = html.split("Links that were measured at the same time").nth(1).unwrap();
    let lines = lines.split("</table>").next().unwrap();
    assert_eq!(lines.matches("<tr>").count(), 1 + 18, "{lines}");
    let second_round = "<td>3</td><td>2</td><td>1000.0</td><td>1500.0</td><td>2000.0</td><td>500.00</td><td>750.00</td><td>1000.00</td>";
    assert!(lines.contains(second_round), "{lines}");
}
