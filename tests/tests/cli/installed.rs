//! The script `bin/ombx` of an installation: which build it starts.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use ombx_tests::{Done, Files, Job, missing, skipped};

/// Version texts of launchers, as MPICH 4, Open MPI 4 and 5, and Intel MPI print them.
const VERSIONS: [(&str, &str); 4] = [
    ("mpich", "HYDRA build details:"),
    ("openmpi", "mpiexec (OpenRTE) 4.1.4"),
    ("openmpi", "mpirun (Open MPI) 5.0.6"),
    ("mpich", "Intel(R) MPI Library for Linux* OS, Version 2021.16 Build 20250513"),
];

/// Installation with a program in place of each build, which prints its name and its words.
struct Installation(Files);

impl Installation {
    fn with(builds: &[&str]) -> Installation {
        let files = Files::default();
        let place = |path: &str, text: &str| {
            let path = files.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        place("bin/ombx", include_str!("../../../packaging/ombx.sh"));
        for build in builds {
            let text = format!("#!/bin/sh\necho '{build}' \"$#\" \"$@\"\n");
            place(&format!("libexec/ombx/{build}/ombx"), &text);
        }
        for (at, (_, version)) in VERSIONS.iter().enumerate() {
            place(&format!("mpi{at}/mpiexec"), &format!("#!/bin/sh\necho '{version}'\n"));
        }
        place("other/mpiexec", "#!/bin/sh\necho 'LAM 7.1'\n");
        for (link, program) in [(OSU, "../../../../bin/ombx"), (IMB, "../../bin/ombx")] {
            let link = files.path(link);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(program, link).unwrap();
        }
        Installation(files)
    }

    /// Runs a program of the installation, with an MPI in the search path and without variables of launchers.
    fn run(&self, program: &str, words: &[&str], mpi: &str, variables: &[(&str, &str)]) -> Done {
        let path = self.tools().join(":") + ":" + &self.0.path(mpi).display().to_string();
        let mut all = vec![("PATH", path.as_ref())];
        all.extend(variables.iter().map(|(name, value)| (*name, value.as_ref())));
        Job::new(self.0.path(program)).args(words).only_env(&all).run()
    }

    /// Returns a search path with the programs that the script needs, and no launcher.
    fn tools(&self) -> [String; 1] {
        let tools = self.0.path("tools");
        fs::create_dir_all(&tools).unwrap();
        for name in ["readlink", "timeout", "echo", "sh"] {
            let found = ["/usr/bin", "/bin"].map(|directory| Path::new(directory).join(name));
            let found: PathBuf = found.into_iter().find(|path| path.exists()).expect("a basic program");
            let _ = symlink(found, tools.join(name));
        }
        [tools.display().to_string()]
    }

    fn ombx(&self, words: &[&str], mpi: &str) -> Done {
        self.run("bin/ombx", words, mpi, &[])
    }
}

const OSU: &str = "libexec/osu-micro-benchmarks/mpi/pt2pt/osu_latency";
const IMB: &str = "libexec/intel-mpi-benchmarks/IMB-MPI1";
const BOTH: [&str; 2] = ["mpich", "openmpi"];

#[test]
fn the_mpi_in_the_search_path_is_taken_and_named() {
    let installation = Installation::with(&BOTH);
    for (at, (mpi, _)) in VERSIONS.iter().enumerate() {
        let done = installation.ombx(&["run", "p2p.*", "a  b"], &format!("mpi{at}")).expect(0);
        assert_eq!(done.stdout, format!("{mpi} 3 run p2p.* a  b\n"));
        let name = if *mpi == "mpich" { "build with MPICH: " } else { "build with Open MPI: " };
        assert!(done.sentence().starts_with(name) && done.sentence().contains("--mpi"), "{done}");
    }
    installation.ombx(&["run"], "mpi3").expect(0).complains(&["is of Intel MPI"]);
    // Commands that measure nothing are silent.
    let done = installation.ombx(&["cluster"], "mpi0").expect(0);
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("mpich 1 cluster\n", ""));
}

/// To ask a launcher for its version takes up to 0.1 s. What starts no MPI takes none of it.
#[test]
fn commands_without_mpi_ask_no_launcher() {
    let installation = Installation::with(&["mpich", "no-mpi", "openmpi"]);
    let asked = installation.0.path("asked");
    let launcher = format!("#!/bin/sh\necho > '{}'\necho 'mpirun (Open MPI) 5.0.6'\n", asked.display());
    fs::write(installation.0.path("mpi1/mpiexec"), launcher).unwrap();
    let of = |words: &[&str], variables: &[(&str, &str)]| {
        let done = installation.run("bin/ombx", words, "mpi1", variables).expect(0);
        assert_eq!(done.stderr, "", "{words:?}");
        done.stdout.split(' ').next().unwrap().trim().to_owned()
    };
    for command in ["report", "plot", "compare", "history"] {
        assert_eq!(of(&[command, "f"], &[]), "no-mpi", "{command}");
    }
    // `show --format osu` needs names of programs, and completions name their build.
    for words in [
        &[][..],
        &["list"],
        &["show", "f"],
        &["completions", "bash"],
        &["help", "x"],
        &["run", "--help"],
        &["show", "-h"],
        &["--help"],
    ] {
        assert_eq!(of(words, &[]), "mpich", "{words:?}");
    }
    assert_eq!(of(&["--", "ombx", "ru"], &[("_OMBX_COMPLETE", "bash")]), "mpich");
    assert!(!asked.exists());
    // Others still have the build of the launcher, and a rank that of its own.
    assert_eq!(of(&["cluster", "--", "-h"], &[]), "openmpi");
    assert!(asked.exists());
    assert_eq!(of(&["show", "f"], &[("OMPI_COMM_WORLD_RANK", "0")]), "openmpi");
    // The first build that starts is taken.
    fs::write(installation.0.path("libexec/ombx/mpich/ombx"), "#!/bin/sh\nexit 127\n").unwrap();
    assert_eq!(of(&["list"], &[]), "openmpi");
}

#[test]
fn the_user_chooses_the_mpi() {
    let installation = Installation::with(&BOTH);
    let of = |words: &[&str], expected: &str| {
        let done = installation.ombx(words, "mpi0").expect(0);
        assert_eq!(done.stdout, format!("{expected}\n"), "{words:?}");
        done.stderr
    };
    assert_eq!(of(&["run", "x", "--mpi", "openmpi"], "openmpi 2 run x"), "");
    assert_eq!(of(&["--mpi=openmpi", "run", "x"], "openmpi 2 run x"), "");
    // These are options of a launcher, and words after `--`.
    of(&["run", "--launcher-arg", "--mpi=pmix"], "mpich 3 run --launcher-arg --mpi=pmix");
    of(&["run", "--launcher-arg", "--mpi", "x"], "mpich 4 run --launcher-arg --mpi x");
    of(&["run", "--", "--mpi", "x"], "mpich 4 run -- --mpi x");
    for words in
        [&["run", "--mpi"][..], &["run", "--mpi="], &["run", "--mpi", "lam"], &["--mpi", "../ombx/mpich"]]
    {
        let done = installation.ombx(words, "mpi0").expect(2);
        assert!(done.sentence().ends_with("--mpi takes one of: mpich openmpi"), "{words:?}: {done}");
    }
}

#[test]
fn a_launcher_decides_for_its_ranks() {
    let installation = Installation::with(&BOTH);
    let of = |variable: (&str, &str), expected: &str| {
        // The launcher in the search path is the other one.
        let other = if expected.starts_with("mpich") { "mpi1" } else { "mpi0" };
        let done = installation.run(OSU, &["-m", "8:8"], other, &[variable]).expect(0);
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), (expected, ""));
    };
    of(("OMPI_COMM_WORLD_RANK", "1"), "openmpi 4 osu osu_latency -m 8:8\n");
    of(("PMI_RANK", "1"), "mpich 4 osu osu_latency -m 8:8\n");
    let done = installation.run(IMB, &["PingPong", "-iter", "10"], "mpi1", &[("PMI_RANK", "1")]).expect(0);
    assert_eq!(
        (done.stdout.as_str(), done.stderr.as_str()),
        ("mpich 5 imb IMB-MPI1 PingPong -iter 10\n", "")
    );
    let done = installation.run(IMB, &["PingPong"], "mpi1", &[]).expect(0);
    assert!(done.sentence().starts_with("build with Open MPI: "), "{done}");
    // PMIx says no MPI: the launcher in the search path does, and one rank names it.
    for (rank, is_named) in [("0", true), ("1", false)] {
        let done = installation.run(OSU, &[], "mpi1", &[("PMIX_RANK", rank)]).expect(0);
        assert_eq!(
            (done.stdout.as_str(), !done.stderr.is_empty()),
            ("openmpi 2 osu osu_latency\n", is_named)
        );
    }
    // A program that was copied instead of linked finds its builds too.
    let copy = installation.0.path("libexec/osu-micro-benchmarks/mpi/pt2pt/osu_bw");
    fs::copy(installation.0.path("bin/ombx"), &copy).unwrap();
    let done = installation.run("libexec/osu-micro-benchmarks/mpi/pt2pt/osu_bw", &[], "mpi0", &[]).expect(0);
    assert_eq!(done.stdout, "mpich 2 osu osu_bw\n");
    for (name, expected) in
        [("mpitests-osu_bw", "mpich 2 osu osu_bw\n"), ("mpitests-IMB-MPI1", "mpich 2 imb IMB-MPI1\n")]
    {
        symlink("ombx", installation.0.path("bin").join(name)).unwrap();
        assert_eq!(installation.run(&format!("bin/{name}"), &[], "mpi0", &[]).expect(0).stdout, expected);
    }
}

#[test]
fn without_its_mpi_a_build_that_starts_is_taken() {
    let installation = Installation::with(&["mpich"]);
    assert_eq!(installation.ombx(&["show", "f"], "nowhere").expect(0).stdout, "mpich 2 show f\n");
    // A single build needs no sentence; the program itself reports a launcher of another MPI.
    assert_eq!(installation.ombx(&["run", "x"], "mpi1").expect(0).stderr, "");
    let both = Installation::with(&BOTH);
    fs::write(both.0.path("libexec/ombx/mpich/ombx"), "#!/bin/sh\nexit 127\n").unwrap();
    let done = both.ombx(&["run", "x"], "other").expect(0);
    assert_eq!(done.stdout, "openmpi 2 run x\n");
    assert!(done.sentence().contains("is neither of MPICH nor of Open MPI"), "{done}");
    fs::write(both.0.path("libexec/ombx/openmpi/ombx"), "#!/bin/sh\nexit 127\n").unwrap();
    both.ombx(&["run", "x"], "nowhere")
        .expect(6)
        .complains(&["no mpiexec in PATH; there are builds for: mpich openmpi"]);
    let empty = Installation::with(&[]);
    empty.ombx(&["list"], "mpi0").expect(6).complains(&["no build of ombx"]);
}

/// A build that was named, but whose library is missing, is an error, not a reason for another one.
#[test]
fn a_chosen_build_that_does_not_start_is_named() {
    let installation = Installation::with(&BOTH);
    let failing = "#!/bin/sh\necho 'libmpi.so.40: cannot open shared object file' >&2\nexit 127\n";
    fs::write(installation.0.path("libexec/ombx/openmpi/ombx"), failing).unwrap();
    installation
        .ombx(&["list", "--mpi", "openmpi"], "mpi0")
        .expect(6)
        .complains(&["the build with Open MPI does not start: libmpi.so.40: cannot open"]);
}

#[test]
fn without_any_mpi_results_and_sockets_work() {
    let installation = Installation::with(&["mpich", "no-mpi"]);
    // A build that starts without MPI does not replace one with MPI.
    assert_eq!(installation.ombx(&["cluster"], "other").expect(0).stdout, "mpich 1 cluster\n");
    fs::write(installation.0.path("libexec/ombx/mpich/ombx"), "#!/bin/sh\nexit 127\n").unwrap();
    let done = installation.ombx(&["show", "f"], "nowhere").expect(0);
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("no-mpi 2 show f\n", ""));
    let done = installation.ombx(&["run", "sockets.bw"], "nowhere").expect(0);
    assert_eq!(done.stdout, "no-mpi 2 run sockets.bw\n");
    assert!(done.sentence().starts_with("build with no MPI: no mpiexec in PATH"), "{done}");
    for words in [&["run", "p2p.latency"][..], &["osu", "osu_latency"], &["doctor"]] {
        installation.ombx(words, "nowhere").expect(6).complains(&["there are builds for: mpich, but"]);
    }
}

/// Debian names MPICH's library otherwise, and MPI 5 has a standard library.
#[test]
fn an_mpi_has_builds_for_several_libraries() {
    let all = ["abi", "mpich", "mpich-debian", "openmpi"];
    let installation = Installation::with(&all);
    let of = |mpi: &str| installation.ombx(&["cluster"], mpi).expect(0).stdout;
    assert_eq!((of("mpi0"), of("mpi2")), ("mpich 1 cluster\n".into(), "openmpi 1 cluster\n".into()));
    let break_one = |name: &str| {
        fs::write(installation.0.path(&format!("libexec/ombx/{name}/ombx")), "#!/bin/sh\nexit 127\n")
            .unwrap();
    };
    for (broken, expected) in [("mpich", "mpich-debian"), ("mpich-debian", "abi"), ("abi", "openmpi")] {
        break_one(broken);
        assert_eq!(of("mpi0"), format!("{expected} 1 cluster\n"));
    }
    let done = installation.ombx(&["run", "x"], "mpi0").expect(0);
    assert!(done.sentence().starts_with("build with Open MPI: "), "{done}");
}

#[test]
fn the_shells_of_systems_read_the_script() {
    let missing = missing(&["dash", "bash"]);
    if !missing.is_empty() {
        return skipped(&format!("not installed: {}", missing.join(", ")));
    }
    let installation = Installation::with(&BOTH);
    for shell in ["dash", "bash"] {
        let words =
            [installation.0.path("bin/ombx").display().to_string(), "list".into(), "--mpi=openmpi".into()];
        let done = Job::new(shell).args(&words).arg("a b").run().expect(0);
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("openmpi 2 list a b\n", ""), "{shell}");
    }
}
