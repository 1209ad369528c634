//! Daily checks of emulated hosts: a link that becomes slower is named, in the result and by Prometheus, and nothing is named before.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use ombx_record::{event::Event, file};
use ombx_tests::{Done, mpi, print_note, prometheus::Prometheus, skipped};
use serde_json::Value;

use crate::testbed::{Bed, eventually};

/// Good days that are learnt before the first day.
const LEARNT: u32 = 7;
const DAYS: u32 = 14;
/// First day on which the link is slow.
const SLOW_FROM: u32 = 9;
/// Network of the good days, and of the others.
const GOOD: &str = "--hosts 3 --delay 5ms";
const SLOW: &str = "--hosts 3 --delay 5ms --link h1-h3:delay=6ms";
const SLOW_LINK: &str = "h1-h3";
/// Alert of a limit that a check has missed.
const MISSED: &str = "OmbxCheckMissed";
/// Alert of a slow part of a sweep.
const SLOW_PART: &str = "OmbxSlowPart";

/// Returns the file of expectations: the latency of each link may be 10 % above that of good days.
fn expectations() -> String {
    let entries = ["h1,h2", "h1,h3"]
        .map(|hosts| format!("[[entry]]\nrun = 'sockets.latency'\nhosts = '{hosts}'\nwithin = '10%'\n"));
    format!(
        "busy = 'never'\nbudget = '400s'\npause = '100ms'\nbaseline = 'good'\n[defaults]\nlaunches = 6\n\
         sizes = 8\nmax-time = '60ms'\nbind = 'none'\ninterface = 'eth0'\n{}",
        entries.concat()
    )
}

/// Runs a check on the first host.
fn check(bed: &Bed, options: &[&str]) -> Done {
    let ombx = mpi::ombx().to_string_lossy().into_owned();
    let file = bed.files.path("check.toml").display().to_string();
    let mut words = vec![ombx, "check".into(), file, "--format=json".into()];
    words.extend(options.iter().map(|&option| option.to_owned()));
    bed.job(&words).run()
}

/// Gives the only file of a directory without a date in its name the date of a day of March: in its name and in its runs.
fn move_to(directory: &Path, day: u32) {
    let is_new =
        |path: &PathBuf| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("march"));
    let new: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).filter(is_new).collect();
    let [new] = &new[..] else { panic!("{new:?}") };
    let mut moved = Vec::new();
    for line in fs::read_to_string(new).unwrap().lines() {
        let mut record = file::parse(line, 1).unwrap().expect("a known record");
        if let Event::Run(run) = &mut record {
            let started = format!("2026-03-{day:02}T03{}", &run.started[13..]);
            run.to_mut().started = started;
        }
        file::write(&mut moved, &record).unwrap();
    }
    fs::write(directory.join(format!("march-{day:02}.jsonl")), moved).unwrap();
    fs::remove_file(new).unwrap();
}

/// Gives the misses of today the date of a day of March.
fn move_misses_to(directory: &Path, day: u32) {
    let path = directory.join("missed-h1.json");
    let Ok(text) = fs::read_to_string(&path) else { return };
    let mut dates: BTreeMap<String, String> = serde_json::from_str(&text).expect("dates");
    let new = dates.values_mut().filter(|date| !date.starts_with("2026-03"));
    new.for_each(|date| *date = format!("2026-03-{day:02}"));
    fs::write(path, serde_json::to_string(&dates).expect("dates")).expect("misses");
}

/// Returns the names of the limits that are missed.
fn missed(done: &Done) -> Vec<String> {
    let result: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}\n{done}"));
    let findings = result["findings"].as_array().expect("findings").clone();
    assert_eq!(findings.len(), 2, "{done}");
    let of = findings.iter().filter(|finding| finding["result"] == "missed");
    of.map(|finding| finding["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn a_link_that_becomes_slower_on_day_nine_is_named() {
    let Some(bed) = Bed::up(GOOD) else { return };
    let prometheus =
        Prometheus::start().map_err(|why| print_note(&format!("without Prometheus: {why}"))).ok();
    let metrics = prometheus.as_ref().map_or_else(|| bed.files.path("ombx-check.prom"), Prometheus::metrics);
    let metrics = metrics.to_string_lossy().into_owned();
    let days = bed.files.path("days");
    let store = days.to_string_lossy().into_owned();
    bed.files.write("check.toml", expectations());
    for day in 1..=LEARNT {
        check(&bed, &["--learn"]).expect(0);
        move_to(&bed.files.path("good"), day);
    }
    let mut first = None;
    for day in 1..=DAYS {
        if day == SLOW_FROM {
            let firing = prometheus.as_ref().map_or(Vec::new(), |server| server.firing(MISSED));
            assert!(firing.is_empty(), "{firing:?}");
            assert!(bed.xtask("down", "").status.success() && bed.xtask("up", SLOW).status.success());
        }
        let done = check(&bed, &["--store", &store, "--openmetrics", &metrics]);
        move_to(&days, LEARNT + day);
        move_misses_to(&bed.files.path("good"), LEARNT + day);
        let named = missed(&done);
        print_note(&format!("day {day}: exit code {:?}, missed: {named:?}", done.code));
        assert!(matches!(done.code, Some(0 | 8 | 9)), "{done}");
        assert!(day >= SLOW_FROM || named.is_empty(), "a false alarm on day {day}: {done}");
        assert!(named.iter().all(|name| name.ends_with(SLOW_LINK)), "a wrong link on day {day}: {done}");
        if !named.is_empty() && first.is_none() {
            first = Some(day);
            if let Some(server) = &prometheus {
                server.until("the slow link is reported", |server| !server.firing(MISSED).is_empty());
                let alerts = server.firing(MISSED);
                let labels = &alerts[0]["labels"];
                let hosts =
                    [&labels["from_host"], &labels["to_host"]].map(|host| host.as_str().unwrap_or_default());
                assert!(alerts.len() == 1 && hosts.join("-") == SLOW_LINK, "{alerts:?}");
            }
        }
    }
    assert!(first.is_some_and(|day| day <= SLOW_FROM + 1), "named first on day {first:?}");
    let history =
        bed.job(&[mpi::ombx().to_string_lossy().into_owned(), "history".into(), store]).run().expect(0);
    let since = format!("2026-03-{:02}", LEARNT + SLOW_FROM);
    assert!(history.stdout.contains(&since), "{history}");
}

#[test]
fn a_slow_host_of_a_sweep_is_reported() {
    let Some(bed) = Bed::up("--hosts 4 --delay 2ms --host h3:delay=6ms") else { return };
    let prometheus = match Prometheus::start() {
        Ok(prometheus) => prometheus,
        Err(why) => return skipped(&why),
    };
    let file = prometheus.metrics().display().to_string();
    eventually(3, || {
        let done = bed
            .ombx(
                "h1,h2,h3,h4",
                &format!("links --sizes 8 --max-time 100ms --timeout 60s --openmetrics {file}"),
            )
            .run();
        if done.code == Some(9) { Ok(()) } else { Err(format!("{done}")) }
    });
    prometheus.until("the slow host is reported", |server| !server.firing(SLOW_PART).is_empty());
    let alerts = prometheus.firing(SLOW_PART);
    let labels = &alerts[0]["labels"];
    assert!(alerts.len() == 1 && labels["part"] == "host" && labels["hosts"] == "h3", "{alerts:?}");
}
