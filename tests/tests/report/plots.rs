//! Charts in the terminal.

use ombx_tests::{Files, Job};

use crate::GOLDEN;

/// Writes a file with a sweep over sizes.
fn sweep(files: &Files) -> std::path::PathBuf {
    let mut lines: Vec<String> = GOLDEN.lines().take(1).map(str::to_owned).collect();
    let row = GOLDEN.lines().nth(1).unwrap();
    lines.extend([8u64, 64, 4096].map(|size| {
        row.replace("bytes=8\"", &format!("bytes={size}\""))
            .replace("\"bytes\":8,", &format!("\"bytes\":{size},"))
    }));
    files.write("sweep.jsonl", lines.join("\n") + "\n")
}

#[test]
fn a_sweep_has_a_chart_as_wide_as_the_screen() {
    let files = Files::default();
    let path = sweep(&files);
    let plain = Job::ombx("show").arg(&path).run().expect(0);
    for columns in ["50", "70"] {
        let done = Job::ombx("show --plot").arg(&path).env("COLUMNS", columns).run().expect(0);
        assert!(done.stdout.contains("us by bytes") && !plain.stdout.contains("us by bytes"), "{done}");
        let chart = done
            .stdout
            .lines()
            .skip_while(|line| !line.contains("us by bytes"))
            .take_while(|line| !line.is_empty());
        let widest = chart.map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns.parse().unwrap() && widest > 30, "{done}");
    }
}

#[test]
fn other_formats_and_links_have_no_charts() {
    let files = Files::default();
    let path = sweep(&files);
    for format in ["csv", "jsonl", "osu"] {
        let done = Job::ombx("show --plot --format").arg(format).arg(&path).run().expect(2);
        assert!(done.sentence().contains("--plot") && done.stdout.is_empty(), "{done}");
        let done = Job::ombx("run p2p.latency --plot --format").arg(format).run().expect(2);
        assert!(done.sentence().contains("--plot"), "{done}");
    }
    let done = Job::ombx("links -n 2 --plot").run().expect(2);
    assert!(done.sentence().contains("--plot"), "{done}");
}
