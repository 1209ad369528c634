//! Tests of hosts: mistakes in them are found first, and each host is reached before anything starts.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, path::PathBuf};

use ombx_host::node_set;
use ombx_tests::{Files, Job, missing, mpi, print_note, skipped};

/// Writes a stand-in for ssh. It takes the options of ssh, notes each host in the file `noted`, and knows all hosts but those whose
/// names begin with `typo`. Commands run on this host.
fn remote_shell(files: &Files) -> PathBuf {
    let script = format!(
        "#!/bin/sh\nwhile [ $# -gt 0 ]; do case $1 in -o) shift 2;; -*) shift;; *) break;; esac; done\n\
         host=$1; shift\necho \"$host\" >>{}\n\
         case $host in typo*) echo \"ssh: Could not resolve hostname $host: Name or service not known\" \
         >&2; exit 255;; esac\nexec sh -c \"$*\"\n",
        files.path("noted").display()
    );
    let path = files.write("ssh", script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    path
}

#[test]
fn numbers_of_ranks_are_refused_on_the_command_line() {
    for hosts in ["n01:0", "n01:-1", "n01:x", "n01:", "n01,n02:0", "n[01-02]:0"] {
        for command in ["run p2p.latency", "run sockets.latency", "run sockets.pipeline", "links", "doctor"] {
            let done = Job::ombx(&format!("{command} --hosts {hosts}")).run().expect(2);
            let wrong = hosts.rsplit(',').next().unwrap_or_default().replace("[01-02]", "01");
            assert!(done.sentence().starts_with(&format!("--hosts: \"{wrong}\"")), "{done}");
        }
    }
}

#[test]
fn mistakes_in_a_host_file_are_named_with_their_line() {
    let files = Files::default();
    for line in ["n02:0", "n02:-1", "n02:x", "n[04-01]", "n02 n03", "n02 binding=", "n02 port=22", "+x1"] {
        let file = files.write("hosts", format!("n01 # the first\n\n{line}\n"));
        for command in ["run p2p.latency", "links", "doctor"] {
            let done = Job::ombx(command).arg("--hostfile").arg(&file).run().expect(2);
            let place = format!("{}, line 3: ", file.display());
            assert!(done.sentence().starts_with(&place) && done.sentence().contains("n"), "{line}: {done}");
        }
    }
    let file = files.write("hosts", "n01\nn02 slots=0\n");
    let done = Job::ombx("run sockets.latency").arg("--hostfile").arg(&file).run().expect(2);
    assert!(done.sentence().contains("line 2"), "{done}");
}

#[test]
fn a_mistyped_host_is_named_with_the_words_of_the_remote_shell() {
    let files = Files::default();
    let shell = remote_shell(&files);
    let hostfile = files.write("hosts", "n01\ntypo\n");
    let words = "typo: ssh: Could not resolve hostname typo: Name or service not known";
    for (command, option) in [
        ("run p2p.latency -n 2 --hosts n01,typo", "--ssh"),
        ("run p2p.latency -n 2 --hostfile", "--ssh"),
        ("links -n 2 --hosts n01,typo", "--ssh"),
        ("run sockets.latency -n 2 --hosts n01,typo", "--ssh"),
        ("run sockets.pipeline --nodes 2 --hosts n01,typo", "--remote-shell"),
    ] {
        let mut job = Job::ombx(command);
        if command.ends_with("--hostfile") {
            job = job.arg(&hostfile);
        }
        let out = files.path("out.jsonl");
        let done = job.arg(option).arg(&shell).arg("-o").arg(&out).run().expect(6);
        assert!(
            done.sentence().starts_with("cannot reach 1 of 2 hosts: ") && done.sentence().contains(words),
            "{done}"
        );
        assert!(!out.exists(), "a result file was begun: {done}");
        done.leaves_nothing();
    }
}

#[test]
fn a_hundred_hosts_that_do_not_answer_are_named_in_one_message() {
    let files = Files::default();
    let done = Job::ombx("run p2p.latency --hosts typo[000-099] --ssh").arg(remote_shell(&files));
    let done = done.run().expect(6);
    assert!(done.sentence().starts_with("cannot reach 100 of 100 hosts: "), "{done}");
    // Sets of hosts stand before the words of the remote shell.
    let sets = done.sentence().split_whitespace().filter_map(|word| word.strip_suffix(':'));
    let sets = sets.filter(|set| set.starts_with("typo")).map(|set| node_set::expand(set).expect("a set"));
    let named: BTreeSet<String> = sets.flatten().collect();
    assert_eq!(named, (0..100).map(|n| format!("typo{n:03}")).collect(), "{done}");
}

#[test]
fn the_variables_of_the_launcher_choose_the_remote_shell() {
    let files = Files::default();
    let name = if mpi::is_open_mpi() { "OMPI_MCA_plm_rsh_agent" } else { "HYDRA_LAUNCHER_EXEC" };
    let job = Job::ombx("run p2p.latency -n 2 --hosts n01,typo").env(name, remote_shell(&files));
    let done = job.run().expect(6);
    assert!(done.sentence().contains("Could not resolve hostname typo"), "{done}");
    assert!(fs::read_to_string(files.path("noted")).expect("notes").contains("n01"));
}

/// Hydra's launcher `fork` needs no remote shell: it starts the processes of all hosts on this one.
#[test]
fn a_launcher_with_a_way_of_its_own_is_not_second_guessed() {
    if mpi::is_open_mpi() {
        return skipped("the launcher of Open MPI has no way to start processes without a remote shell");
    }
    let files = Files::default();
    let path = remote_shell(&files).parent().expect("a directory").display().to_string();
    let path = format!("{path}:{}", std::env::var("PATH").unwrap_or_default());
    let job = Job::ombx("run p2p.latency -n 2 --hosts typo1,typo2 --sizes 8 --iterations 10 --bind none");
    job.env("PATH", path).env("HYDRA_LAUNCHER", "fork").run().expect(0);
    assert!(!files.path("noted").exists(), "the remote shell was called");
}

#[test]
fn ranks_start_on_hosts_that_are_reached() {
    let files = Files::default();
    let shell = remote_shell(&files);
    let job = Job::ombx("run p2p.latency -n 2 --sizes 8 --iterations 10 --bind none --hosts n01,n02 --ssh")
        .arg(shell);
    if mpi::is_open_mpi() {
        // Its daemons on hosts that are one machine collide.
        print_note("only the reaching of hosts is tested with Open MPI");
        drop(job.run());
    } else {
        job.run().expect(0);
    }
    let noted = fs::read_to_string(files.path("noted")).expect("notes");
    assert!(["n01", "n02"].iter().all(|host| noted.lines().any(|line| line == *host)), "{noted}");
}

#[test]
fn ssh_itself_says_why_it_cannot_reach_a_host() {
    if !missing(&["ssh"]).is_empty() {
        return skipped("ssh is not installed");
    }
    let done = Job::ombx("run p2p.latency -n 2 --hosts localhost,no-such-host.invalid").run().expect(6);
    assert!(done.sentence().contains("no-such-host.invalid: ssh: "), "{done}");
}
