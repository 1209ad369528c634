//! Tests of starting jobs: a copied binary, a scheduler's template, rings, several ranks per host, host files.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, time::Duration};

use ombx_record::result::{Check, Figure};
use ombx_tests::{mpi, results};

use crate::testbed::Bed;

const SHORT: &str = "--timeout 60s --fail-on nothing -- --sizes 8 --iterations 10 --warmup 1";

/// Hides the build and the runs of this machine from the hosts. Each host gets its own file system for copies, of the given size.
/// Returns an inventory that says so.
fn without_shared_files(bed: &Bed, sizes: [&str; 2]) -> PathBuf {
    let build = mpi::ombx().parent().expect("a directory").display().to_string();
    let (work, runs) = (bed.files.path("work"), bed.runs());
    for (host, size) in ["h1", "h2"].iter().zip(sizes) {
        for directory in [&work, &runs] {
            fs::create_dir_all(directory).expect("a directory");
            bed.on(host, &format!("mount -t tmpfs -o size={size} tmpfs {}", directory.display()));
        }
        bed.on(host, &format!("mount -t tmpfs tmpfs {build}"));
    }
    let text = format!("shared = false\nwork_dir = {work:?}\n");
    bed.inventory(|inventory| {
        inventory.replace("shared = true", &text.replace('#', "")).replace(&text, &format!("{text}#"))
    })
}

#[test]
fn a_binary_is_copied_to_hosts_that_share_no_files() {
    let Some(bed) = Bed::up("--hosts 2") else { return };
    let inventory = without_shared_files(&bed, ["400m", "400m"]);
    bed.cluster_bench_of(&inventory, SHORT).run().expect(0);
    assert!(bed.kept("links.csv").contains("pairs-h1-h2,pairs,h1,h2,0,1,8,"), "{}", bed.kept("links.csv"));
    assert!(bed.kept("report.html").contains("<html"));
    let there = bed.on("h2", &format!("find {} -name ombx", bed.files.path("work").display()));
    assert!(there.trim().ends_with("/ombx"), "{there}");
    bed.has_nothing_left();
}

#[test]
fn a_host_whose_disk_is_full_is_named() {
    let Some(bed) = Bed::up("--hosts 2") else { return };
    let inventory = without_shared_files(&bed, ["400m", "1m"]);
    let done = bed.cluster_bench_of(&inventory, SHORT).run().expect(6);
    assert!(done.stderr.contains("host h2") && done.stderr.contains("could not be copied"), "{done}");
    assert!(!done.stderr.contains("host h1"), "{done}");
}

/// The stand-in for rsh takes a host and a command, nothing else. Each host has a file system that no other host sees.
#[test]
fn a_pipeline_of_local_files_is_started_by_rsh() {
    let Some(bed) = Bed::up("--hosts 3") else { return };
    let rsh = bed.files.write("rsh", "#!/bin/sh\nhost=$1\nshift\nexec ssh \"$host\" \"$*\"\n");
    fs::set_permissions(&rsh, fs::Permissions::from_mode(0o755)).expect("a program");
    let local = bed.files.path("local");
    fs::create_dir_all(&local).expect("a directory");
    let hosts = ["h1", "h2", "h3"];
    for host in hosts {
        bed.on(host, &format!("mount -t tmpfs tmpfs {}", local.display()));
    }
    let line = format!(
        "run sockets.pipeline --nodes 3 --phases 3 --buffer-count 8 --block 16K --iterations 2 --warmup 1 \
         --remote-shell={} --source=file:{1}/in-{{node}} --sink=file:{1}/out-{{node}}",
        rsh.display(),
        local.display()
    );
    let done = bed.ombx("h1,h2,h3", &line).run().expect(0);
    let row = &results::run_of(&bed.out()).rows[0];
    assert_eq!(row.check, Check::Passed, "{done}");
    assert_eq!(row.figures["started_processes"], Figure::Value(48.0));
    assert!(matches!(row.figures["buffer_p50_us"], Figure::Value(us) if us > 0.0), "{done}");
    for (node, host) in hosts.iter().enumerate() {
        let local = local.display();
        bed.on(host, &format!("cmp {local}/in-{node} {local}/out-{node}"));
        assert_eq!(
            bed.on(host, &format!("stat -c %s {local}/out-{node}")).trim(),
            (3 * 8 * (16 << 10)).to_string()
        );
        // A host has the files of its own node only.
        assert_eq!(bed.on(host, &format!("ls {local}")).split_whitespace().count(), 2);
    }
    assert_eq!(fs::read_dir(&local).expect("a directory").count(), 0);
}

/// The scheduler is a script: it runs the job on the first host and prints a job number in the format of LSF.
#[test]
fn a_scheduler_template_is_submitted_and_its_job_followed() {
    let Some(bed) = Bed::up("--hosts 2") else { return };
    let config = bed.files.path("bed/ssh_config");
    let submit = bed.files.write(
        "submit.sh",
        format!(
            "ssh -F {0} h1 \"setsid sh '$1' >/dev/null 2>&1 </dev/null &\"\necho 'Job <7> is submitted.'\n",
            config.display()
        ),
    );
    let template = bed
        .files
        .write("template", "#!/bin/sh\n#X -N {{name}} -n {{nodes}} -t {{minutes}} {{hosts}}\n{{command}}\n");
    let line = format!("submit = [\"sh\", {submit:?}]\n[env]");
    let inventory = bed.inventory(|text| text.replace("[env]", &line));
    let job = bed.cluster_bench_of(&inventory, "--launcher script --template").arg(template);
    job.args(SHORT.split(' ')).run().expect(0);
    let batch = bed.kept("jobs/pairs-h1-h2/batch.sh");
    assert!(batch.contains("#X -N ombx-pairs-h1-h2 -n 2 -t 2 h1,h2\n"), "{batch}");
    assert_eq!(bed.kept("jobs/pairs-h1-h2/exit").trim(), "0");
    assert!(bed.kept("links.csv").contains("pairs-h1-h2,pairs,h1,h2,0,1,8,"));
    bed.has_nothing_left();
}

#[test]
fn rings_and_several_ranks_per_host() {
    let Some(bed) = Bed::up("--hosts 3") else { return };
    // `setup` has a line of shell that sets a variable for MPI.
    let inventory = bed.inventory(|text| {
        text.replace("slots = 1", "slots = 2")
            .replace("[env]", "setup = [\"export OMPI_MCA_x='a b'\"]\n[env]")
    });
    bed.cluster_bench_of(&inventory, &format!("--pairs ring --hosts h1,h2 {SHORT}")).run().expect(0);
    let summary = bed.kept("summary.txt");
    assert!(summary.starts_with("3 of 3 jobs complete"), "{summary}");
    let run = results::run_of(&bed.runs().join("latest/jobs/crowded/results.jsonl")).run;
    let hosts: Vec<&str> = run.places.iter().map(|place| place.host.as_str()).collect();
    assert_eq!(
        {
            let mut sorted = hosts.clone();
            sorted.sort();
            sorted
        },
        ["h1", "h1", "h2", "h2"],
        "{hosts:?}"
    );
    let done = bed.cluster_bench("--pairs ring --dry-run").run().expect(0);
    for pair in ["pairs-h1-h2", "pairs-h2-h3", "pairs-h1-h3"] {
        assert!(done.stdout.contains(pair), "{done}");
    }
}

/// Returns the hosts of a sweep over the hosts of a host file with these lines, which one launch measures.
fn swept(bed: &Bed, lines: &str, options: &str) -> Vec<String> {
    let hostfile = bed.files.write("hosts", lines);
    let words = format!(
        "links --sizes 8 --iterations 10 --warmup 1 --retest 0 --bind none --fail-on nothing {options}"
    );
    let ombx = mpi::ombx().display().to_string();
    let mut words: Vec<String> =
        [ombx.as_str()].into_iter().chain(words.split_whitespace()).map(str::to_owned).collect();
    if !options.contains("--fabric") {
        words.extend(["--interface", "eth0"].map(str::to_owned));
    }
    let job = bed.job(&words).arg("--force").arg("-o").arg(bed.out()).arg("--hostfile").arg(hostfile);
    job.run().expect(0);
    results::run_of(&bed.out()).run.places.into_iter().map(|place| place.host).collect()
}

#[test]
fn links_start_a_rank_on_each_host_of_a_host_file() {
    let Some(bed) = Bed::up("--hosts 4") else { return };
    assert_eq!(swept(&bed, "h1\nh2\nh3\nh4\n", ""), ["h1", "h2", "h3", "h4"]);
    assert_eq!(swept(&bed, "h1\nh2\nh3\nh4\n", "--fabric tcp"), ["h1", "h2", "h3", "h4"]);
}

#[test]
fn each_form_of_a_host_file_serves_every_launcher() {
    let Some(bed) = Bed::up("--hosts 2") else { return };
    for lines in [
        "h1,h2\n",
        "h[1-2]\n",
        "h1 slots=1\nh2 slots = 1 max-slots=2 # two\n",
        "h1:1\nh2:1\n",
        "h1 1\n// the second\nh2 1\n",
        "h1 user=root\nroot@h2\n",
        "node1.testbed\nnode2.testbed\n",
    ] {
        for options in ["", "--fabric tcp"] {
            assert_eq!(swept(&bed, lines, options), ["h1", "h2"], "{lines} {options}");
        }
    }
    assert_eq!(swept(&bed, "h1*2\n", ""), ["h1", "h1"]);
}

#[test]
fn hosts_that_do_not_answer_after_a_time_limit_are_named() {
    let Some(bed) = Bed::up("--hosts 2") else { return };
    let options = "links --sizes 8,16 --max-time 2500ms --precision 0.0001% --retest 0 --timeout 12s";
    let mut running = bed.ombx("h1,h2", options).limit(Duration::from_secs(120)).start();
    let out = bed.out();
    running.until("a row", |_| results::rows_so_far(&out) >= 1);
    assert!(bed.xtask("cut", "h2").status.success());
    let done = running.wait().expect(6);
    assert!(done.stderr.contains("cannot reach") && done.stderr.contains("h2: "), "{done}");
    assert!(!done.stderr.contains("--timeout"), "more time does not help: {done}");
}
