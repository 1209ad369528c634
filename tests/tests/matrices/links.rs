//! Tests of `ombx links`, which measures every pair of ranks.

use std::collections::BTreeSet;

use ombx_record::file;
use ombx_tests::{Job, kept::Kept, links::swept, results};

const SWEPT: &str = "--iterations 20 --batch 1";
const SHORT: &str = "--iterations 20 --batch 1 --retest 0 --fail-on nothing";

#[test]
fn every_ordered_pair_is_measured_once_at_each_size() {
    for ranks in 2..=5 {
        let rows = swept(&format!("-n {ranks} --sizes 8,4K {SWEPT}"));
        assert_eq!(rows.len() as u32, ranks * (ranks - 1) * 2, "{ranks} ranks");
        assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), rows.len(), "{ranks} ranks");
    }
}

#[test]
fn each_pattern_and_order_works() {
    for options in
        ["--pattern bidirectional", "--pattern unidirectional --window 4", "--serial", "--randomize 7"]
    {
        assert_eq!(swept(&format!("-n 3 --sizes 64 {options} {SWEPT}")).len(), 6, "{options}");
    }
    let rows = swept(&format!("-n 5 --halves --sizes 8 {SWEPT}"));
    assert_eq!(rows.len(), 2 * 2 * 3);
    assert!(rows.iter().all(|(from, to, _)| (*from < 2) != (*to < 2)), "{rows:?}");
    let rows = swept(&format!("-n 5 --bisection --sizes 8 {SWEPT}"));
    assert_eq!(
        rows.iter().copied().collect::<BTreeSet<_>>(),
        [(0, 2, 8), (2, 0, 8), (1, 3, 8), (3, 1, 8)].into()
    );
}

#[test]
fn links_run_under_an_explicit_launcher() {
    let done = Job::mpiexec(3, &format!("links --sizes 8 --format csv {SHORT}")).run().expect(0);
    // A line of names, one for each direction, and the verdict.
    assert_eq!(done.stdout.lines().count(), 1 + 6 + 1, "{done}");
    assert!(done.stdout.trim_end().ends_with("waiting for a CPU\""), "{done}");
}

#[test]
fn a_bisection_is_called_one() {
    for mode in ["--bisection", "--halves"] {
        let done = Job::ombx(&format!("links -n 4 {mode} --sizes 64 {SHORT}")).run().expect(0);
        assert!(done.stdout.contains("\nbisection, 2 pairs at the same time: min"), "{done}");
    }
}

#[test]
fn a_row_lasts_the_minimum_time() {
    let kept = Kept::new();
    // Only links that are measured again have samples in the file.
    let line = "links -n 2 --sizes 8 --iterations 20 --retest 1 --fail-on nothing --min-time 20ms -o";
    Job::ombx(line).arg(kept.out()).run().expect(0);
    let run = results::run_of(&kept.out());
    assert_eq!(run.run.plan["min_time_s"], "0.02");
    assert_eq!((run.rows.len(), run.row_count()), (3, 5));
    for row in &run.rows {
        let sampled = row.phases.expect("phases").sample_ns;
        let iterations = row.samples[0].batch * row.samples[0].elapsed_ns.len() as u64;
        assert!(sampled >= 20_000_000 && iterations >= 20, "{sampled} ns in {iterations}: {}", row.key);
    }
}

#[test]
fn every_connection_is_warmed_up_by_an_all_to_all() {
    let kept = Kept::new();
    Job::ombx(&format!("links -n 3 --sizes 8,1K --all-to-all {SHORT} -o")).arg(kept.out()).run().expect(0);
    let run = results::run_of(&kept.out());
    assert_eq!((&*run.run.plan["warm_up"], run.row_count()), ("collective.alltoall 8,1K", 12));
}

/// Each launch has other pairs at the same time. Together they are one result, of which the array has the medians.
#[test]
fn several_launches_are_one_result_of_medians() {
    let (kept, launches) = (Kept::new(), 3);
    let line = format!("links -n 4 --sizes 8,64 --launches {launches} --randomize 7 {SHORT} -o");
    let done = Job::ombx(&line).arg(kept.out()).run().expect(0);
    assert_eq!(done.stdout.matches("links, 8 bytes").count(), 1, "{done}");
    assert!(done.stdout.contains("each the median of 3 launches"), "{done}");
    let runs = file::open(kept.out()).unwrap().runs;
    let rounds = |run: &file::RunWithRows| -> BTreeSet<String> {
        run.each_row().map(|row| format!("{} in {}", row.key, row.axes["round"])).collect()
    };
    let seeds: Vec<&str> = runs.iter().map(|run| run.run.plan["randomize"].as_str()).collect();
    assert_eq!(seeds, ["8", "9", "10"]);
    assert!(runs.iter().any(|run| rounds(run) != rounds(&runs[0])), "another order of rounds");
    assert_eq!(runs[0].run.argv[1..4], ["links", "-n", "4"], "{:?}", runs[0].run.argv);
    let shown = Job::ombx("show").arg(kept.out()).run().expect(0);
    assert_eq!(shown.stdout, done.stdout);

    let array = kept.out().with_extension("npy");
    let done = Job::ombx("show --matrix").args([&array, &kept.out()]).run().expect(0);
    assert!(done.stdout.contains("float64 (2, 4, 4): message sizes 8 64, from, to;"), "{done}");
    let bytes = std::fs::read(&array).unwrap();
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let values = bytes[header..].chunks_exact(8).map(|value| f64::from_le_bytes(value.try_into().unwrap()));
    let values: Vec<f64> = values.collect();
    assert_eq!(values.iter().filter(|value| value.is_nan()).count(), 2 * 4, "ranks and themselves");
    let mut medians: Vec<f64> = runs
        .iter()
        .filter_map(|run| {
            let is_link = |row: &ombx_record::result::Measurement| {
                row.bytes == Some(64) && row.axes["from"] == "2" && row.axes["to"] == "1"
            };
            Some(run.each_row().find(|row| is_link(row))?.summary.as_ref()?.median / 1e3)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let value = values[16 + 2 * 4 + 1];
    assert_eq!(medians.len(), launches);
    assert!((value / medians[1] - 1.0).abs() < 1e-6, "{value} is not the median of {medians:?}");
    // A copy is no other result, whatever its name.
    let two = Job::ombx("show --matrix").args([&array, &kept.out(), &kept.out()]).run().expect(2);
    assert!(two.stderr.contains("repeats run"), "{two}");
    let other = kept.out().with_extension("other");
    let text = ombx_tests::results::without_checksums(&std::fs::read_to_string(kept.out()).unwrap());
    std::fs::write(&other, text.replace("\"run\":\"", "\"run\":\"x")).unwrap();
    let two = Job::ombx("show").args([&kept.out(), &other]).run().expect(2);
    assert!(two.stderr.contains("has the times of links of run"), "{two}");
}
