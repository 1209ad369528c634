//! The checks: what each one runs, and which command runs it by default.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use ombx_toolchain::{Mpi, NO_TEST, Outcome, Result, Share, Step, cannot_run, cargo, counts, succeeds};

use crate::{count, delegate::Program, fuzz, package::Need, sanitize, setup, slices, test::Run, tidy};

/// Oldest Rust with which ombx compiles: `rust-version` of the workspace.
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");
/// Directory of the published crates. The other packages of the workspace are tools of developers.
const PUBLISHED: &str = "crates/";
/// Test programs of the crates, which start no jobs.
const TESTS_OF_CRATES: [&str; 6] = ["claims", "figures", "legs", "page", "rendering", "result_format"];
/// Installation of cargo-deny. A debug build takes half the time.
const DENY: [&str; 4] = ["install", "--locked", "--debug", "cargo-deny"];
/// Time of each fuzz target.
const FUZZ_TIME: Duration = Duration::from_secs(20);
/// Time of random jobs with faults, with each MPI.
const SOAK_TIME: &str = "2m";

/// When a check runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    /// By `cargo xtask test`, and before a change lands.
    Test,
    /// Before a change lands.
    Change,
    /// Every night.
    Nightly,
}

impl Tier {
    /// Returns the command of xtask that runs the checks of this tier.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Change => "ci",
            Self::Nightly => "nightly",
        }
    }
}

/// Environment variables.
pub(crate) type Variables = &'static [(&'static str, &'static str)];

/// Open MPI without its search for fabrics, which takes half of the time in which it starts. The nightly checks let it search.
const ON_ONE_HOST: Variables = &[("OMPI_MCA_pml", "ob1"), ("OMPI_MCA_btl", "self,vader")];

/// Check with a name, which each of the three commands accepts.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) tier: Tier,
    pub(crate) about: &'static str,
    /// Whether it starts ranks or other processes that measure.
    pub(crate) starts_jobs: bool,
    /// Variables of its commands.
    pub(crate) variables: Variables,
    pub(crate) run: fn(&Run) -> Vec<Step>,
}

const fn check(name: &'static str, tier: Tier, about: &'static str, run: fn(&Run) -> Vec<Step>) -> Check {
    Check { name, tier, about, starts_jobs: false, variables: &[], run }
}

const fn jobs(name: &'static str, tier: Tier, about: &'static str, run: fn(&Run) -> Vec<Step>) -> Check {
    Check { starts_jobs: true, ..check(name, tier, about, run) }
}

const fn on_one_host(check: Check) -> Check {
    Check { variables: ON_ONE_HOST, ..check }
}

/// All checks, in the order in which they run.
pub(crate) const CHECKS: &[Check] = &[
    check("format", Tier::Change, "cargo fmt", |run| {
        with_tool(run, "fmt", "rustup component add rustfmt", &["--all", "--check"])
    }),
    check("count", Tier::Change, "circles of imports, sizes of crates, no parser in ranks", |_| {
        vec![Step::timed("count", || count::check().map(|count| outcome(count, "bound(s) broken")))]
    }),
    check("tidy", Tier::Change, "rules of the repository", |run| {
        let violations = || tidy::check(&run.workspace).map(|count| outcome(count, "violation(s)"));
        vec![Step::timed("tidy", violations)]
    }),
    check("clippy", Tier::Change, "lints", |run| {
        let words =
            ["--workspace", "--all-targets", "--features", "ombx-cost/benches", "--", "-D", "warnings"];
        with_tool(run, "clippy", "rustup component add clippy", &words)
    }),
    check("documentation", Tier::Change, "links of rustdoc", |run| {
        let mut docs = cargo_with_first(run, &["doc", "--no-deps", "--workspace"]);
        vec![Step::run("documentation", docs.env("RUSTDOCFLAGS", "-D warnings"))]
    }),
    check("packages", Tier::Change, "cargo package of the published crates", packages),
    check("dependencies", Tier::Nightly, "licenses and sources of dependencies", |run| {
        with_deny(run, &["check", "bans", "licenses", "sources"])
    }),
    check("advisories", Tier::Nightly, "known defects of dependencies, by the RustSec database", advisories),
    check("unit", Tier::Test, "unit tests of all crates", |run| {
        let of_crates = TESTS_OF_CRATES.iter().flat_map(|test| ["--test", test]);
        let words: Vec<&str> = ["--lib", "--bins"].into_iter().chain(of_crates).collect();
        run.unit_tests("unit tests", &words)
    }),
    jobs("cli", Tier::Test, "the command line, files and terminals", |run| {
        run.tests("cli", &["--test", "cli"])
    }),
    on_one_host(jobs(
        "ranks",
        Tier::Test,
        "every benchmark once, a flipped byte of each data flow, ends of jobs",
        |run| run.tests_with_each("ranks"),
    )),
    jobs("sockets", Tier::Test, "ranks without MPI", |run| run.tests("sockets", &["--test", "sockets"])),
    jobs("report", Tier::Change, "pages and figures", |run| run.tests("report", &["--test", "report"])),
    on_one_host(jobs("rank_harness", Tier::Change, "the library on ranks", |run| {
        run.tests_with_each("rank_harness")
    })),
    jobs("selection", Tier::Change, "choices by name that select nothing are refused", selection),
    on_one_host(jobs(
        "faults",
        Tier::Change,
        "a third of the faults that matter most, drawn by the number of commits",
        faults,
    )),
    check(
        "examples",
        Tier::Change,
        "programs in the documentation of the crates, and one that reads results",
        |run| [run.unit_tests("examples", &["--doc"]), vec![reader(run)]].concat(),
    ),
    check("oldest-rust", Tier::Nightly, "compiles with the oldest supported Rust", oldest_rust),
    check(
        "without-mpi",
        Tier::Nightly,
        "compiles for sockets alone, without MPI, bindgen and a C compiler",
        without_mpi,
    ),
    jobs("matrices", Tier::Nightly, "combinations of options on ranks and sockets", |run| {
        run.tests_with_each("matrices")
    }),
    jobs("hosts", Tier::Nightly, "several emulated hosts, with days of checks; needs root", |run| {
        with_tools(run, Need::Testbed, || run.tests_with_each("hosts"))
    }),
    check("browser", Tier::Nightly, "pages in Chromium", |run| {
        with_tools(run, Need::Browser, || run.tests("browser", &["--test", "browser"]))
    }),
    jobs(
        "monitoring",
        Tier::Nightly,
        "rules of Prometheus, checks of ReFrame, recipes for Slurm and NHC",
        |run| with_tools(run, Need::Packaging, || run.tests("monitoring", &["--test", "monitoring"])),
    ),
    jobs("instructions", Tier::Nightly, "instructions of timed loops beside those of C", |run| {
        with_tools(run, Need::Valgrind, || {
            delegated(run, "instructions", Program::Fidelity, &["--instructions", "--sample"])
        })
    }),
    check("work", Tier::Nightly, "instructions of reading, writing, estimates and verdicts", work),
    jobs("fault-table", Tier::Nightly, "every fault", |run| {
        delegated(run, "fault table", Program::Faults, &[])
    }),
    jobs("soak", Tier::Nightly, "random jobs with faults", |run| {
        delegated(run, "soak", Program::Faults, &["--soak", SOAK_TIME])
    }),
    check("fuzz", Tier::Nightly, "parsers with random input", |_| {
        let options = fuzz::Options { targets: Vec::new(), time: FUZZ_TIME, yes: true };
        vec![Step::timed("fuzz", || fuzz::failures(&options).map(|count| outcome(count, "target(s)")))]
    }),
    check("sanitize", Tier::Nightly, "unsafe code under valgrind", |run| {
        with_tools(run, Need::Valgrind, || {
            let failures = || sanitize::failures(&run.workspace, &run.mpis);
            vec![Step::timed("sanitize", || failures().map(|count| outcome(count, "run(s)")))]
        })
    }),
    jobs(
        "libraries",
        Tier::Nightly,
        "every benchmark on other MPI libraries, with the published binaries",
        |run| {
            let binaries = Step::timed("binaries for every MPI", || {
                crate::dist::portable::main().map(|_| Outcome::Passed)
            });
            if binaries.failed() {
                return vec![binaries];
            }
            let mut command = Program::Libraries.run();
            command.args(run.share.iter().flat_map(|share| ["--share".to_owned(), share.to_string()]));
            command.current_dir(&run.workspace.root).env("CARGO_TARGET_DIR", &run.workspace.target);
            vec![binaries, Step::run("libraries", &mut command)]
        },
    ),
    check("published", Tier::Nightly, "packages and container, tried as users do", |run| {
        tried(run, &["packages", "container", "debian"])
    }),
    check("wheel", Tier::Nightly, "the Python wheel, tried as users do", |run| tried(run, &["wheel"])),
    check("easybuild", Tier::Nightly, "the recipe of EasyBuild, tried as users do", |run| {
        tried(run, &["easybuild"])
    }),
];

/// Makes what is published and runs trials of it, or a share of them.
fn tried(run: &Run, trials: &[&str]) -> Vec<Step> {
    let trials = run.share.map_or(trials.to_vec(), |share| share.select(trials.to_vec(), None));
    let script = run.workspace.root.join("packaging/try-all");
    let mut command = Command::new(script);
    vec![Step::run(trials.join(" and "), command.args(&trials).current_dir(&run.workspace.root))]
}

/// Runs a subcommand of cargo, or says how to install it.
fn with_tool(run: &Run, tool: &str, installation: &str, words: &[&str]) -> Vec<Step> {
    vec![if succeeds(cargo().args([tool, "--version"])) {
        Step::run(tool, &mut cargo_with_first(run, &[&[tool], words].concat()))
    } else {
        Step::skipped(tool, format!("cargo-{tool} is not installed ({installation})"))
    }]
}

/// Runs cargo-deny, which is installed first with consent.
fn with_deny(run: &Run, words: &[&str]) -> Vec<Step> {
    let mut steps = Vec::new();
    if run.yes && !succeeds(cargo().args(["deny", "--version"])) {
        steps.push(Step::run("cargo-deny", cargo().args(DENY).current_dir(&run.workspace.root)));
    }
    steps.extend(with_tool(run, "deny", &format!("cargo {}", DENY.join(" ")), words));
    steps
}

/// Compares the dependencies with the database of advisories: its newest version, or the one that is here.
fn advisories(run: &Run) -> Vec<Step> {
    let tool = succeeds(cargo().args(["deny", "--version"]));
    let is_newest = tool && succeeds(cargo().args(["deny", "fetch", "db"]).current_dir(&run.workspace.root));
    let homes = [("CARGO_HOME", "advisory-dbs"), ("HOME", ".cargo/advisory-dbs")];
    // An attempt to fetch leaves an empty directory.
    let has_database = |directory: PathBuf| {
        let mut entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.any(|entry| entry.path().is_dir())
    };
    let is_here = || {
        homes
            .iter()
            .any(|(home, below)| env::var_os(home).is_some_and(|at| has_database(Path::new(&at).join(below))))
    };
    if tool && !is_newest && !is_here() {
        return vec![Step::skipped(
            "advisories",
            "there is no advisory database, and none can be fetched (cargo deny fetch db)",
        )];
    }
    let words: &[&str] =
        if is_newest { &["check", "advisories"] } else { &["--offline", "check", "advisories"] };
    with_deny(run, words)
}

/// Returns a command of cargo in the target directory of the first MPI: the result does not depend on the MPI.
fn cargo_with_first(run: &Run, words: &[&str]) -> Command {
    match run.mpis.first() {
        Some(mpi) => run.command(mpi, words),
        None => {
            let mut command = cargo();
            command.args(words).current_dir(&run.workspace.root);
            command
        }
    }
}

/// Packs the published crates. It fails if a dependency has no version, or is not published.
fn packages(run: &Run) -> Vec<Step> {
    let mut command =
        cargo_with_first(run, &["package", "--no-verify", "--allow-dirty", "--offline", "--quiet"]);
    for package in &run.workspace.packages {
        if package.manifest.starts_with(PUBLISHED) {
            command.args(["-p", &package.name]);
        }
    }
    vec![Step::run("packages", &mut command)]
}

/// Name that no check, test, case, suite or benchmark has.
const NO_NAME: &str = "no-such-name";
/// Programs of `verify/`, with options that choose by name.
const CHOICES: [(Program, &str); 8] = [
    (Program::Faults, "--no-build --only"),
    (Program::Faults, "--no-build --gate --only"),
    (Program::Faults, "--no-build --soak 1s --only"),
    (Program::Fidelity, "--outside --row"),
    (Program::Speed, ""),
    (Program::Coverage, "--model"),
    (Program::Coverage, "invocations"),
    (Program::Libraries, "--only"),
];
/// Commands of xtask that choose by name. Those of tests have a harness each.
const OWN_CHOICES: [&str; 6] =
    ["test", "nightly", "fuzz", "test ranks --", "test rank_harness --", "test ranks --share 1/2 --"];
/// Commands of ombx that choose by name.
const CHOICES_OF_USERS: [&str; 3] = ["run", "list", "help"];

/// Chooses by a name that does not exist, wherever checks are chosen by name. Each command must fail and say the name.
fn selection(run: &Run) -> Vec<Step> {
    let Some(mpi) = run.mpis.first() else { return Vec::new() };
    let mut steps = run.build(mpi);
    if steps.iter().any(Step::failed) {
        return steps;
    }
    let mut refused = |mut command: Command, words: &str| {
        command.args(words.split_whitespace()).arg(NO_NAME).current_dir(&run.workspace.root);
        let what = format!(
            "{} {words} {NO_NAME}",
            Path::new(command.get_program()).file_name().unwrap_or_default().display()
        );
        steps.push(Step::timed(what, || refuses(&mut command)));
    };
    for (program, words) in CHOICES {
        refused(run.program(mpi, program.name()), words);
    }
    for words in OWN_CHOICES {
        refused(Command::new(env::current_exe().unwrap_or_else(|_| "xtask".into())), words);
    }
    for words in CHOICES_OF_USERS {
        refused(run.program(mpi, "ombx"), words);
    }
    steps
}

/// Returns whether a command fails with a sentence about [`NO_NAME`], or because it selects no test, and without a panic. Command
/// lines that it prints contain the name in any case.
fn refuses(command: &mut Command) -> Result<Outcome> {
    let done = command.output().map_err(|source| cannot_run(command, source))?;
    let text = [done.stdout, done.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let mut said = text.lines().filter(|line| !line.trim_start().starts_with("$ "));
    let has_reason = said.any(|line| line.contains(NO_NAME) || line.contains(NO_TEST));
    let is_refused = !done.status.success() && has_reason && !text.contains("panicked");
    Ok(if is_refused {
        Outcome::Passed
    } else {
        Outcome::Failed(format!("{}: {}", done.status, text.trim()))
    })
}

/// Part of the gate of faults that a change passes.
const SAMPLE: Share = Share::new(1, 3);

fn faults(run: &Run) -> Vec<Step> {
    run.mpis.iter().flat_map(|mpi| faults_with(run, mpi)).collect()
}

/// Runs the faults of the gate with an MPI, if everything builds with it.
fn faults_with(run: &Run, mpi: &Mpi) -> Vec<Step> {
    let mut steps = run.build(mpi);
    if steps.iter().any(Step::failed) {
        return steps;
    }
    let mut faults = run.program(&run.mpis[0], Program::Faults.name());
    faults.args(["--gate", "--no-build", "--mpi", mpi.flavour.key()]);
    let seed = run.seed.map_or_else(|| slices::commits(&run.workspace), Ok);
    match seed {
        Ok(seed) => {
            faults.args(["--share", &run.share.unwrap_or(SAMPLE).to_string(), "--seed", &seed.to_string()])
        }
        Err(failure) => return vec![Step::timed("faults", || Err(failure))],
    };
    steps.push(Step::run(format!("faults with {}", mpi.name()), &mut faults));
    steps
}

/// Runs tests whose programs are installed first, with consent. They report what is missing afterwards.
fn with_tools(run: &Run, need: Need, tests: impl Fn() -> Vec<Step>) -> Vec<Step> {
    if let Err(why) = setup::ensure_tools(need, run.yes) {
        println!("{why}");
    }
    tests()
}

/// Runs a verification program, which builds what it needs.
fn delegated(run: &Run, what: &str, program: Program, words: &[&str]) -> Vec<Step> {
    let with = |mpi: &Mpi| {
        let mut command = verification(run, program);
        command.args(words).args(["--mpi", mpi.flavour.key()]);
        if let Some(seed) = run.seed.filter(|_| words.contains(&"--soak")) {
            command.args(["--seed", &seed.to_string()]);
        }
        if let Some(share) = run.share {
            command.args(["--share", &share.to_string()]);
        }
        Step::run(format!("{what} with {}", mpi.name()), &mut command)
    };
    run.mpis.iter().map(with).collect()
}

/// Returns a command of a verification program: that which was built with the tests, or else one that is built first.
fn verification(run: &Run, program: Program) -> Command {
    if let Some(mpi) = run.mpi_of_everything() {
        return run.program(mpi, program.name());
    }
    let mut command = program.run();
    command.current_dir(&run.workspace.root).env("CARGO_TARGET_DIR", &run.workspace.target);
    command
}

/// Compares instructions of work on results with the recorded counts, if valgrind can count and the compiler is that of the counts.
fn work(run: &Run) -> Vec<Step> {
    let valgrind = setup::ensure_tools(Need::Valgrind, run.yes).map_err(|why| why.to_string());
    if let Some(why) = valgrind.err().or_else(|| counts::incomparable(&run.workspace)) {
        return vec![Step::skipped("work", why)];
    }
    let mut command = Program::Benches.run();
    command.arg("--instructions").current_dir(&run.workspace.root);
    vec![Step::run("work", command.env("CARGO_TARGET_DIR", &run.workspace.target))]
}

/// Compiles everything with the oldest Rust, if it can be installed.
fn oldest_rust(run: &Run) -> Vec<Step> {
    let name = format!("Rust {OLDEST}");
    let install = ["toolchain", "install", "--profile", "minimal", OLDEST];
    let rustup = |words: &[&str]| succeeds(Command::new("rustup").args(words));
    let is_there = rustup(&["run", OLDEST, "cargo", "--version"]) || run.yes && rustup(&install);
    if !is_there {
        return vec![Step::skipped(name, format!("it is not installed (rustup {})", install.join(" ")))];
    }
    let mut check = Command::new("rustup");
    check.args(["run", OLDEST, "cargo", "check", "--locked", "--workspace", "--target-dir"]);
    check.arg(run.workspace.target.join("oldest")).current_dir(&run.workspace.root);
    if let Some(mpi) = run.mpis.first() {
        check.env("MPICC", &mpi.mpicc);
    }
    vec![Step::run(name, &mut check)]
}

/// Compiles and runs the program of `examples/reader`, which reads a result file.
fn reader(run: &Run) -> Step {
    let root = &run.workspace.root;
    let mut program = cargo();
    program
        .args(["run", "--quiet", "--locked", "--manifest-path"])
        .arg(root.join("examples/reader/Cargo.toml"));
    program.arg("--target-dir").arg(run.workspace.target.join("reader"));
    program.arg("--").arg(root.join("crates/record/tests/golden/one_launch.jsonl"));
    Step::run("examples/reader", &mut program)
}

/// Compiles ombx for sockets alone. Whatever looks for an MPI or a C compiler finds none.
fn without_mpi(run: &Run) -> Vec<Step> {
    let words = ["check", "-p", "ombx-cli", "--no-default-features", "--features", "sockets"];
    let mut check = cargo_with_first(run, &words);
    check.env("RUSTFLAGS", "-D warnings").env("MPICC", "/none").env("CC", "/none");
    vec![Step::run("without-mpi", check.env("LIBCLANG_PATH", "/none"))]
}

fn outcome(count: usize, of_what: &str) -> Outcome {
    if count == 0 { Outcome::Passed } else { Outcome::Failed(format!("{count} {of_what}")) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_integration_test_belongs_to_a_check() {
        let manifest = include_str!("../../tests/Cargo.toml");
        let names = manifest.split("[[test]]\nname = \"").skip(1).filter_map(|rest| rest.split('"').next());
        let names: Vec<&str> = names.collect();
        let known = |name: &&str| CHECKS.iter().any(|check| check.name == *name);
        assert!(!names.is_empty() && names.iter().all(known), "{names:?}");
    }

    /// Data of tests has no program.
    #[test]
    fn every_test_program_of_a_crate_runs() {
        let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates");
        let folders = fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path().join("tests"));
        let entries = folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        let programs = paths
            .filter(|path| path.join("main.rs").exists() || path.extension().is_some_and(|end| end == "rs"));
        let mut names: Vec<String> =
            programs.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
        names.sort();
        assert_eq!(names, TESTS_OF_CRATES);
    }

    /// Where the oldest Rust cannot be installed, this and clippy's `incompatible_msrv` are what is left of `oldest-rust`.
    #[test]
    fn no_dependency_needs_a_newer_rust() {
        let mut metadata = cargo();
        metadata
            .args(["metadata", "--locked", "--format-version", "1"])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        let printed = ombx_toolchain::output(&mut metadata).unwrap();
        let metadata: serde_json::Value = serde_json::from_str(&printed).unwrap();
        let number =
            |version: &str| -> Vec<u32> { version.split('.').map(|part| part.parse().unwrap()).collect() };
        for package in metadata["packages"].as_array().unwrap() {
            let needed = package["rust_version"].as_str().unwrap_or("1");
            assert!(
                number(needed)[..] <= number(&format!("{OLDEST}.99"))[..],
                "{} needs {needed}",
                package["name"]
            );
        }
    }

    #[test]
    fn names_differ() {
        let names: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), CHECKS.len());
    }
}
