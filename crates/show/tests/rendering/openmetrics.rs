//! OpenMetrics. Its grammar is checked with the properties of all records.

use ombx_record::{
    file,
    result::{Growth, Mark, MarkCode, Measurement, Run, RunOutcome},
};
use ombx_show::{OpenMetrics, Renderer};

use crate::{golden, of_launches, rendered};

fn text_of(run: &Run, rows: &[Measurement]) -> String {
    let mut gauges = OpenMetrics::default();
    rendered(&mut gauges, run, rows, RunOutcome::Complete);
    let mut text = Vec::new();
    gauges.finish(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn gauges_count_doubts_by_level() {
    let file::RunWithRows { run, mut rows, .. } = golden();
    rows.truncate(1);
    rows[0].trust = vec![
        Mark::with_advice(MarkCode::Governor, "g", "a"),
        Mark::with_advice(MarkCode::Clock, "c", "a"),
        Mark::with_advice(MarkCode::SharedCpu, "s", "a"),
        Mark::with_advice(MarkCode::DebugBuild, "d", "a"),
    ];
    let text = text_of(&run, &rows);
    let found: Vec<&str> = text.lines().filter(|line| line.starts_with("ombx_doubts{")).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].ends_with("level=\"caution\"} 1") && found[1].ends_with("level=\"invalid\"} 2"),
        "{found:?}"
    );
}

#[test]
fn counters_that_grew_are_added_over_rows_and_launches() {
    let file::RunWithRows { run, mut rows, .. } = golden();
    rows.truncate(2);
    let grown = |counter: &str, by: u64| {
        let [host, device, counter] = ["n1", "eth0", counter].map(String::from);
        Growth { host, device, counter, by }
    };
    rows[0].grown = vec![grown("rx_crc_errors", 2)];
    rows[1].grown = vec![grown("rx_crc_errors", 3), grown("rx_priority_pause_frames", 40)];
    let text = text_of(&run, &rows);
    let found: Vec<&str> = text.lines().filter(|line| line.starts_with("ombx_device_")).collect();
    let expected = [
        "ombx_device_errors{host=\"n1\",device=\"eth0\",counter=\"rx_crc_errors\"} 5",
        "ombx_device_load{host=\"n1\",device=\"eth0\",counter=\"rx_priority_pause_frames\"} 40",
    ];
    assert_eq!(found, expected);
    assert!(text.contains("# TYPE ombx_device_errors gauge\n"), "the next run may have a smaller growth");
    // What grew after the last row counts too.
    let mut result = OpenMetrics::default();
    let after = vec![grown("rx_crc_errors", 4)];
    result.result(&[file::RunWithRows { rows, grown: after, ..file::RunWithRows::new(run) }]);
    let mut out = Vec::new();
    result.finish(&mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains(&expected[0].replace('5', "9")) && text.contains(expected[1]), "{text}");
}

#[test]
fn gauges_tell_launches_their_range_and_their_coverage() {
    let file::RunWithRows { run, rows, .. } = of_launches();
    let text = text_of(&run, &rows);
    let values = |family: &str| -> Vec<f64> {
        let lines = text.lines().filter(|line| line.starts_with(&format!("{family}{{")));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect()
    };
    assert_eq!(values("ombx_launches"), [3.0, 3.0]);
    assert_eq!(values("ombx_interval_coverage_ratio"), [0.75, 0.75]);
    for (lowest, headline, highest) in [
        ("ombx_latency_lowest_launch_seconds", "ombx_latency_seconds", "ombx_latency_highest_launch_seconds"),
        (
            "ombx_bandwidth_lowest_launch_bytes_per_second",
            "ombx_bandwidth_bytes_per_second",
            "ombx_bandwidth_highest_launch_bytes_per_second",
        ),
    ] {
        let (lowest, headline, highest) = (values(lowest), values(headline), values(highest));
        assert!(!headline.is_empty() && lowest.len() == headline.len(), "{text}");
        let within =
            headline.iter().zip(lowest.iter().zip(&highest)).all(|(x, (low, high))| low < x && x < high);
        assert!(within, "{lowest:?} {headline:?} {highest:?}");
    }
    let one = golden();
    let text = text_of(&one.run, &one.rows);
    assert!(!text.contains("_coverage_ratio") && !text.contains("_lowest_launch_"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("ombx_launches{") && line.ends_with(" 1")), "{text}");
}
