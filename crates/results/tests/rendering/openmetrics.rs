//! OpenMetrics. Its grammar is checked with the properties of all records.

use ombx_core::result::Mark;
use ombx_results::{
    file,
    render::{OpenMetrics, Renderer},
};

use crate::{golden, rendered};

#[test]
fn gauges_count_doubts_by_level() {
    let file::RunWithRows { run, mut rows, .. } = golden();
    rows.truncate(1);
    rows[0].trust = vec![
        Mark::note("governor", "g", "a"),
        Mark::caution("clock", "c", "a"),
        Mark::invalid("shared_cpu", "s", "a"),
        Mark::invalid("debug_build", "d", "a"),
    ];
    let mut gauges = OpenMetrics::default();
    rendered(&mut gauges, &run, &rows, file::RunOutcome::Complete);
    let mut text = Vec::new();
    gauges.finish(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let found: Vec<&str> = text.lines().filter(|line| line.starts_with("ombx_doubts{")).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].ends_with("level=\"caution\"} 1") && found[1].ends_with("level=\"invalid\"} 2"),
        "{found:?}"
    );
}
