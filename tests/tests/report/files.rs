//! Input files, the page that is written, and errors of reading and writing.

use std::fs;

use ombx_tests::{
    Files, Job,
    results::{GOLDEN, links},
};

#[test]
fn several_files_become_one_page() {
    let files = Files::default();
    let (golden, links) =
        (files.write("golden.jsonl", GOLDEN), files.write("links.jsonl", links().replace("-4242", "-4243")));
    let out = files.write("page.html", "something else\n".repeat(100_000));
    let done = Job::ombx("report").args([&golden, &links]).args(["--force", "-o"]).arg(&out).run().expect(0);
    assert!(done.stdout.is_empty() && done.stderr.is_empty(), "{done}");
    let page = fs::read_to_string(&out).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"), "the whole file is the page");
    for part in
        ["golden.jsonl", "needs 4 ranks", "links.jsonl: the link between n1 and n3 is slow", "UCX_TLS"]
    {
        assert!(page.contains(part), "{part} is missing");
    }
}

#[test]
fn two_sides_are_compared_on_the_page() {
    let files = Files::default();
    let (base, new) = (files.write("base.jsonl", GOLDEN), files.write("new.jsonl", GOLDEN));
    let out = files.path("page.html");
    Job::ombx("report").arg(&base).arg("--against").arg(&new).arg("-o").arg(&out).run().expect(0);
    let page = fs::read_to_string(&out).unwrap();
    assert!(page.contains("id=\"comparison\"") && page.contains("undecided in both cases"));
}

#[test]
fn both_sides_lie_over_each_other_under_the_names_of_the_user() {
    let files = Files::default();
    let (base, new) =
        (files.write("base.jsonl", GOLDEN), files.write("new.jsonl", GOLDEN.replace("-4242", "-4243")));
    let out = files.path("page.html");
    let job = Job::ombx("report --names tcp,shm").arg(&base).arg("--against").arg(&new).arg("-o").arg(&out);
    job.run().expect(0);
    let page = fs::read_to_string(&out).unwrap();
    assert!(page.contains("<h1>shm compared with tcp</h1>"), "{page}");
    let chart = page.split("<figure id=").find(|chart| chart.starts_with("\"d0\"")).expect("a chart");
    assert!(chart.contains(">tcp</text>") && chart.contains(">shm</text>"), "{chart}");
}

#[test]
fn an_unwritable_page_is_an_error() {
    let files = Files::default();
    let golden = files.write("golden.jsonl", GOLDEN);
    let absent = files.path("absent/page.html").display().to_string();
    for out in [absent.as_str(), "/dev/full", "/"] {
        let done = Job::ombx("report").arg(&golden).args(["-o", out]).run().expect(7);
        assert!(done.sentence().contains(out), "{done}");
    }
}

#[test]
fn the_page_does_not_replace_a_result_file() {
    let files = Files::default();
    let golden = files.write("golden.jsonl", GOLDEN);
    let same = files.root().join(".").join("golden.jsonl");
    for against in [false, true] {
        let job = Job::ombx("report").arg(if against {
            files.write("other.jsonl", GOLDEN)
        } else {
            golden.clone()
        });
        let job = if against { job.arg("--against").arg(&golden) } else { job };
        let done = job.arg("-o").arg(&same).run().expect(2);
        assert!(done.sentence().contains("give another name"), "{done}");
    }
    assert_eq!(fs::read_to_string(&golden).unwrap(), GOLDEN);
    let page = files.write("page.html", "old");
    let job = |options: &str| Job::ombx(&format!("report {options}")).arg(&golden).arg("-o").arg(&page).run();
    assert!(job("").expect(2).sentence().contains("--force"));
    assert_eq!(fs::read_to_string(&page).unwrap(), "old");
    job("--force").expect(0);
    assert!(fs::read_to_string(&page).unwrap().contains("<html"));
}

#[test]
fn other_files_are_rejected() {
    let files = Files::default();
    let (garbage, out) = (files.write("garbage", "hello\n"), files.path("page.html"));
    let done = Job::ombx("report").arg(&garbage).arg("-o").arg(&out).run().expect(7);
    assert!(done.sentence().contains("garbage: line 1"), "{done}");
    assert!(!out.exists());
    let done = Job::ombx("report").arg(&garbage).run().expect(2);
    assert!(done.sentence().contains("--output <FILE>"), "{done}");
}

#[test]
fn a_truncated_file_gives_a_page() {
    let files = Files::default();
    let (cut, out) = (files.write("cut.jsonl", &GOLDEN[..GOLDEN.len() * 2 / 3]), files.path("page.html"));
    Job::ombx("report").arg(&cut).arg("-o").arg(&out).run().expect(0);
    assert!(fs::read_to_string(&out).unwrap().contains("the file ends inside a record"));
}

#[test]
fn a_page_of_two_thousand_rows() {
    let files = Files::default();
    let mut lines: Vec<String> = GOLDEN.lines().take(2).map(str::to_owned).collect();
    let row = lines.pop().unwrap();
    for at in 0..2000u32 {
        let (series, size) = (at / 20, 1u64 << (at % 20));
        let row = row.replace("p2p.latency/bytes=8", &format!("p2p.latency/v={series},bytes={size}"));
        lines.push(
            row.replace("\"bytes\":8,", &format!("\"bytes\":{size},"))
                .replace("\"axes\":{}", &format!("\"axes\":{{\"v\":\"{series}\"}}")),
        );
    }
    let (path, out) = (files.write("large.jsonl", lines.join("\n") + "\n"), files.path("page.html"));
    Job::ombx("report").arg(&path).arg("-o").arg(&out).run().expect(0);
    let page = fs::read_to_string(&out).unwrap();
    assert_eq!(page.matches("<tr id=\"r").count(), 2000);
}
