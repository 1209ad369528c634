//! Tests of OSU compatibility: every OSU program of this build, alone and under a launcher, prints the format of OMB.

use ombx_tests::{
    Files, Job, mpi,
    osu::{Links, QUICK, looks_like_omb, prints_what_omb_prints, recorded},
    results,
};
use serde_json::Value;

fn names() -> Vec<String> {
    let json = Job::ombx("list --format json").run().expect(0).stdout;
    let all: Value = serde_json::from_str(&json).unwrap();
    let names = |bench: &Value| -> Vec<String> {
        if bench["available"] != Value::Bool(true) {
            ombx_tests::print_note(&format!("{} is not available: {}", bench["name"], bench["available"]));
            return Vec::new();
        }
        bench["osu"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    all.as_array().unwrap().iter().flat_map(names).collect()
}

#[test]
fn every_program_alone_and_under_a_launcher() {
    let links = Links::install();
    let names = names();
    assert!(names.len() > 9, "{names:?}");
    for name in &names {
        for job in [links.alone(name), links.launched(2, name)] {
            let done = job.args(QUICK).run();
            // In MPICH 4.0.2 the second start of some persistent requests delivers no data. The row then has an error and no figure.
            if !mpi::is_open_mpi() && name.ends_with("_persistent") && done.code == Some(5) {
                assert!(done.stdout.contains("# FAILED at size 8: data arrived wrong"), "{done}");
                continue;
            }
            assert_eq!(done.code, Some(0), "{name}\n{done}");
            looks_like_omb(name, &done);
        }
    }
}

/// The broadcast of OMB 3.x has a name of its own: osu_bcast is that of OMB 7.
#[test]
fn the_broadcast_of_omb_3_subtracts_the_acknowledgement() {
    let (links, files) = (Links::install(), Files::default());
    let out = files.path("r.jsonl");
    let done = links.alone("osu_bcast_ack").args(["-m", "8:16", "-o"]).arg(&out).run().expect(0);
    assert!(done.stdout.starts_with("\n# OSU MPI Acknowledged Broadcast Latency Test"), "{done}");
    let rows = results::run_of(&out).rows;
    assert_eq!(rows.len(), 2, "{done}");
    for row in rows {
        assert_eq!(row.bench, "collective.bcast_ack");
        let trips = row.samples[0].round_trips.as_ref().unwrap();
        assert_eq!((trips.halves, row.samples[0].batch * row.samples[0].elapsed_ns.len() as u64), (1, 1000));
    }
    links.alone("osu_bcast").args(QUICK).args(["--force", "-o"]).arg(&out).run().expect(0);
    assert_eq!(results::run_of(&out).rows[0].bench, "collective.bcast");
}

#[test]
fn the_broadcast_of_omb_3_has_as_many_iterations_at_all_sizes() {
    let (links, files) = (Links::install(), Files::default());
    let out = files.path("r.jsonl");
    links
        .alone("osu_bcast_ack")
        .args(["-m", "8K:16K", "-k", "1", "-T", "mpi_int", "-o"])
        .arg(&out)
        .run()
        .expect(0);
    let rows = results::run_of(&out).rows;
    let iterations = |row: &ombx_record::result::Measurement| {
        row.samples[0].batch * row.samples[0].elapsed_ns.len() as u64
    };
    assert_eq!(rows.iter().map(iterations).collect::<Vec<_>>(), [1000, 1000]);
    assert!(rows.iter().all(|row| row.axes["type"] == "int32" && row.axes["root"] == "1"), "{rows:?}");
}

#[test]
fn passive_programs_lock_exclusively_on_demand() {
    let (links, files) = (Links::install(), Files::default());
    let out = files.path("r.jsonl");
    for name in ["osu_passive_put_latency", "osu_passive_get_bw", "osu_passive_acc_latency"] {
        let options = ["-s", "lock_exclusive", "--force", "-o"];
        links.alone(name).args(QUICK).args(options).arg(&out).run().expect(0);
        let axes = results::run_of(&out).rows.remove(0).axes;
        assert_eq!((axes["sync"].as_str(), axes["win"].as_str()), ("lock_exclusive", "alloc_mem"), "{name}");
    }
}

/// The outputs are those of the recorded programs, line for line. Where OMB ends with an error, ombx has its number of ranks or measures.
#[test]
fn every_recorded_output() {
    let links = Links::install();
    let available = names();
    let mut compared = 0;
    for one in recorded() {
        // On 2 ranks, OMB ends before it measures neighbourhoods.
        if !available.iter().any(|name| name == one.program) || one.program.contains("neighbor") {
            continue;
        }
        let done = links.launched(one.ranks(), one.program).args(one.options()).run();
        if one.variant.contains("rank") {
            assert!(done.code == Some(1) && done.stderr.contains("This test requires"), "{one:?}\n{done}");
        } else if one.program.ends_with("_persistent") && matches!(done.code, Some(4 | 5)) {
            assert!(!mpi::is_open_mpi(), "{done}");
        } else if one.code == 0 {
            assert_eq!(done.code, Some(0), "{one:?}\n{done}");
            prints_what_omb_prints(&one, &done);
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared} outputs");
}

/// The header, blanks and widths are those of osu_mbw_mr.c of OMB 7.
#[test]
fn several_windows_are_columns() {
    let options = ["-V", "-m", "4:8", "-i", "20", "-x", "2"];
    let done = Links::install().alone("osu_mbw_mr").args(options).run().expect(0);
    let lines: Vec<&str> = done.stdout.lines().skip(1).collect();
    let titles = "#                 1           2           4           8          16          32          \
                  64         128";
    let fixed =
        [(0, "# [ pairs: 1 ] [ window size: varied ]"), (1, ""), (2, "# Uni-directional Bandwidth (MB/sec)")];
    let more =
        [(3, "# Datatype: MPI_CHAR."), (4, titles), (7, ""), (8, "# Message Rate Profile"), (9, titles)];
    for (at, line) in fixed.into_iter().chain(more) {
        assert_eq!(lines[at], line, "{done}");
    }
    for (at, size) in [(5, "4"), (6, "8"), (10, "4"), (11, "8")] {
        let fields: Vec<&str> = lines[at].split_whitespace().collect();
        // As in OMB, a wide number makes its column wider.
        let width = 7 + fields[1..].iter().map(|field| 2 + field.len().max(10)).sum::<usize>();
        assert_eq!((fields[0], fields.len(), lines[at].len()), (size, 9, width), "{done}");
        assert!(fields[1..].iter().all(|field| field.parse::<f64>().unwrap() > 0.0), "{done}");
    }
    assert_eq!(lines.len(), 12, "{done}");
}

/// OMB 3.x: locks, and windows on memory of `MPI_Alloc_mem`, in the passive tests; `-no-hints` or `-n`; alone and under a launcher.
#[test]
fn windows_and_hints_as_in_omb_3() {
    let (links, files) = (Links::install(), Files::default());
    let out = files.path("r.jsonl");
    for (name, options, win, hints) in [
        ("osu_passive_put_latency", "", "alloc_mem", None),
        ("osu_passive_put_latency", "-no-hints", "alloc_mem", Some("off")),
        ("osu_passive_get_bw", "-n", "alloc_mem", Some("off")),
        ("osu_put_latency", "-n -w create -s lock", "create", Some("off")),
    ] {
        for job in [links.alone(name), links.launched(2, name)] {
            let options = options.split_whitespace();
            let done = job.args(options).args(QUICK).args(["--force", "-o"]).arg(&out).run().expect(0);
            let axes = results::run_of(&out).rows.remove(0).axes;
            let axis = |name: &str| axes.get(name).map(String::as_str);
            assert_eq!(
                (axis("win"), axis("hints"), axis("sync")),
                (Some(win), hints, Some("lock")),
                "{done}"
            );
            assert!(done.stdout.contains("# Window creation: MPI_Win_create\n"), "{done}");
        }
    }
    let done = links.alone("osu_latency").arg("-no-hints").run().expect(2);
    assert!(done.sentence().contains("osu_latency has no option -no-hints"), "{done}");
}

#[test]
fn an_odd_number_of_ranks_does_not_hang() {
    let links = Links::install();
    looks_like_omb("osu_mbw_mr", &links.launched(3, "osu_mbw_mr").args(QUICK).run().expect(0));
    let done = links.alone("osu_multi_lat").args(["-n", "3"]).args(QUICK).run().expect(0);
    looks_like_omb("osu_multi_lat", &done);
}

/// Checks the defaults of OMB: fewer iterations for messages larger than 8 KiB.
#[test]
fn iterations_by_size() {
    let (links, files) = (Links::install(), Files::default());
    let out = files.path("r.jsonl");
    for (name, options, expected) in [
        ("osu_bw", "", [(8192, 100), (16384, 20)]),
        ("osu_latency", "", [(8192, 10_000), (16384, 1000)]),
        ("osu_latency", "-i 50", [(8192, 50), (16384, 50)]),
    ] {
        let job = links
            .alone(name)
            .args(["-m", "8K:16K", "--force", "-o"])
            .arg(&out)
            .args(options.split_whitespace());
        job.run().expect(0);
        let rows = results::run_of(&out).rows;
        let counted = |row: &ombx_record::result::Measurement| {
            let samples = &row.samples[0];
            (row.bytes.unwrap(), samples.elapsed_ns.len() as u64 * samples.batch)
        };
        assert_eq!(rows.iter().map(counted).collect::<Vec<_>>(), expected, "{name} {options}");
    }
}

#[test]
fn a_program_works_without_a_link() {
    for name in ["osu_latency", "latency"] {
        let done = Job::ombx("osu").arg(name).args(QUICK).run().expect(0);
        looks_like_omb("osu_latency", &done);
    }
}

#[test]
fn version_and_help_are_printed_once() {
    let links = Links::install();
    for (option, says) in
        [("-v", "# OSU MPI Latency Test v7.4"), ("-h", "Usage: osu_latency"), ("--help", "-z")]
    {
        let done = links.launched(2, "osu_latency").arg(option).run().expect(0);
        assert_eq!(
            done.stdout.matches("OSU MPI").count().max(done.stdout.matches("Usage:").count()),
            1,
            "{done}"
        );
        assert!(done.stdout.contains(says), "{done}");
    }
}
