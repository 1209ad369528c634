//! Test of the records of a result file.

use ombx_tests::{kept::Kept, results};

/// Other programs rely on the names of these fields.
#[test]
fn records_have_the_documented_fields() {
    let kept = Kept::new();
    kept.job("p2p.bw p2p.latency --sizes 8 --iterations 80 --batch 4 -n 2").run().expect(0);
    let lines = results::lines_of(&kept.out());
    let (run, bw, latency) = (&lines[0], &lines[1], &lines[2]);
    let end = lines.iter().find(|line| line["kind"] == "end").unwrap();
    assert_eq!(run["kind"], "run");
    assert_eq!(run["schema"]["name"], "ombx.result");
    assert_eq!(run["schema"]["major"], 1);
    assert_eq!(run["argv"][1], "run");
    assert_eq!(run["fabric"], "mpi");
    assert_eq!(run["profile"], "debug");
    assert_eq!(run["ranks"].as_array().unwrap().len(), 2);
    assert!(run["ranks"][1]["host"].is_string() && run["ranks"][1]["cpus"].is_string(), "{run}");
    assert!(run["clock"]["overhead_ns"].is_u64() && run["plan"].is_object(), "{run}");
    for (row, bench) in [(bw, "p2p.bw"), (latency, "p2p.latency")] {
        assert_eq!(row["kind"], "case");
        assert_eq!(row["bench"], bench);
        assert_eq!(
            (&row["outcome"], &row["check"], &row["across"]),
            (&"ok".into(), &"passed".into(), &"origin".into())
        );
        let sample = &row["samples"][0];
        assert_eq!(
            (sample["batch"].as_u64(), sample["elapsed_ns"].as_array().map(Vec::len)),
            (Some(4), Some(20))
        );
        for field in ["n", "median_ns", "min_ns", "mean_ns", "max_ns", "mad_ns", "lag1"] {
            assert!(!row["summary"][field].is_null(), "{field}: {}", row["summary"]);
        }
        // Correlated samples may be too few for an interval. The row then has a notice.
        let mut words = row["trust"].as_array().unwrap().iter();
        let without = words.any(|word| word["code"] == "no_interval");
        assert_eq!(row["summary"]["ci95_ns"].is_array(), !without, "{row}");
        if bench == "p2p.bw" {
            assert_eq!(row["rates"]["messages_per_s"]["ci95"].is_array(), !without, "{row}");
        }
    }
    assert_eq!(bw["key"], "p2p.bw/bytes=8,depth=64");
    let (rate, median) = (&bw["rates"]["mb_per_s"]["median"], &bw["summary"]["median_ns"]);
    let expected = bw["work"]["bytes"].as_f64().unwrap() / median.as_f64().unwrap() * 1e3;
    assert!((rate.as_f64().unwrap() / expected - 1.0).abs() < 1e-9, "{rate} {expected}");
    assert!(latency["rates"].is_null());
    assert_eq!(
        (&end["kind"], &end["outcome"], &end["cases"]),
        (&"end".into(), &"complete".into(), &2.into())
    );
}
