//! `cargo xtask test`, `ci` and `nightly`: the checks of a tier, or named ones.

use std::{
    cell::RefCell,
    env,
    process::{Child, Command, ExitCode, Stdio},
};

use ombx_toolchain::{
    Failure, Flavour, Mpi, Outcome, Places, Result, Share, Step, Summary, Tally, Which, Workspace,
    cannot_run, cargo, failed_if, output, release,
};

use crate::{
    checks::{CHECKS, Check, Tier, Variables},
    package::Need,
    setup::{self, Facts},
    slices::{self, Part, SLICES},
};

/// Seed of tests with random inputs. Without it, tests use one that never changes.
const SEED: &str = "OMBX_TEST_SEED";
/// Command that keeps both cores of a small machine busy, for `--under-load`.
const LOAD: [&str; 3] = ["stress-ng", "--cpu", "4"];

/// Options of all three commands.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Names of checks, of any tier [default: those of this command]; --list prints them
    checks: Vec<String>,
    /// Print the checks and run none
    #[arg(long)]
    list: bool,
    /// MPI to test with [default: every installed one; the first alone in `cargo xtask test`]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
    /// Install missing packages without asking
    #[arg(long)]
    yes: bool,
    /// Run each test program N times
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Run the tests beside `stress-ng --cpu 4`
    #[arg(long)]
    under_load: bool,
    /// Seed of random inputs [default: always the same; a new one in each slice of `cargo xtask nightly`]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run one of several parts of the named checks: of their tests, cases or libraries, for example 2/3
    #[arg(long, value_name = "PART/PARTS", requires = "checks")]
    share: Option<Share>,
    /// Parts of the names of tests to run
    #[arg(last = true, value_name = "TESTS")]
    filter: Vec<String>,
}

/// Options of `cargo xtask ci`.
#[derive(clap::Args)]
pub(crate) struct OfChange {
    #[command(flatten)]
    options: Options,
    /// Leave out the slice of the nightly checks
    #[arg(long)]
    no_slice: bool,
}

/// Options of `cargo xtask nightly`.
#[derive(clap::Args)]
pub(crate) struct OfNight {
    #[command(flatten)]
    options: Options,
    /// Print the slices with their numbers and usual times, and run none
    #[arg(long)]
    slices: bool,
    /// Run one slice
    #[arg(long, value_name = "K", conflicts_with_all = ["checks", "slices"], value_parser = clap::value_parser!(u64).range(1..=SLICES.len() as u64))]
    slice: Option<u64>,
}

/// Checks that run one after another with one seed.
struct Group {
    /// Line above the checks of a slice.
    title: Option<String>,
    parts: Vec<Part>,
    seed: Option<u64>,
}

impl Options {
    /// Returns the checks that were named, or else those of these tiers.
    fn group(&self, tiers: &[Tier]) -> Group {
        let chosen = |check: &&Check| match &self.checks[..] {
            [] => tiers.contains(&check.tier),
            names => names.iter().any(|name| name == check.name),
        };
        let parts =
            CHECKS.iter().filter(chosen).map(|check| Part { share: self.share, ..Part::whole(check.name) });
        Group { title: None, parts: parts.collect(), seed: self.seed }
    }

    /// Returns a slice of the nightly checks, with a seed of its own.
    fn slice(&self, number: usize, why: &str) -> Group {
        let slice = &SLICES[number - 1];
        let title = format!("slice {number} of {}{why}: {slice}", SLICES.len());
        Group {
            title: Some(title),
            parts: slice.parts.to_vec(),
            seed: self.seed.or_else(|| Some(new_seed())),
        }
    }
}

/// `cargo xtask test`: the checks of a new user.
pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    run(options, vec![options.group(&[Tier::Test])], Tier::Test)
}

/// `cargo xtask ci`: the checks of a change, then the slice of its commit.
pub(crate) fn of_change(of: &OfChange) -> Result<ExitCode> {
    let mut groups = vec![of.options.group(&[Tier::Test, Tier::Change])];
    if of.options.checks.is_empty() && !of.no_slice {
        let commits = slices::commits(&Workspace::read()?)?;
        groups.push(of.options.slice(slices::of_commit(commits), &format!(", for commit {commits}")));
    }
    run(&of.options, groups, Tier::Change)
}

/// `cargo xtask nightly`: named checks, one slice, or all slices.
pub(crate) fn of_night(of: &OfNight) -> Result<ExitCode> {
    if of.slices {
        print!("{}", slices::listed());
        return Ok(ExitCode::SUCCESS);
    }
    let groups = match of.slice {
        Some(number) => vec![of.options.slice(number as usize, "")],
        None if !of.options.checks.is_empty() => {
            let group = of.options.group(&[]);
            vec![Group { seed: group.seed.or_else(|| Some(new_seed())), ..group }]
        }
        None => (1..=SLICES.len()).map(|number| of.options.slice(number, "")).collect(),
    };
    run(&of.options, groups, Tier::Nightly)
}

/// Runs checks, also after a failure.
fn run(options: &Options, groups: Vec<Group>, tier: Tier) -> Result<ExitCode> {
    if let Some(wrong) = options.checks.iter().find(|name| CHECKS.iter().all(|check| check.name != **name)) {
        return Err(Failure::Usage(format!("there is no check {wrong}; cargo xtask test --list prints all")));
    }
    if options.list {
        CHECKS
            .iter()
            .for_each(|check| println!("{:14} {:8} {}", check.name, check.tier.command(), check.about));
        return Ok(ExitCode::SUCCESS);
    }
    let only_first = tier == Tier::Test && options.mpi.is_none();
    let facts = facts(options.mpi, options.yes, only_first)?;
    let mut mpis = facts.mpis();
    if only_first {
        mpis.truncate(1);
    }
    let mut run = Run {
        workspace: Workspace::read()?,
        mpis: mpis.clone(),
        installed: mpis.clone(),
        yes: options.yes,
        seed: options.seed,
        share: None,
        variables: &[],
        first: mpis.first().map(|mpi| mpi.flavour),
        repeat: options.repeat,
        filter: options.filter.clone(),
        built: RefCell::default(),
    };
    // Builds finish before the load starts, and before the tests, so that a test never waits for a compiler.
    let mut done: Vec<Done> = Vec::new();
    let mut load = None;
    for group in &groups {
        if let Some(title) = &group.title {
            println!("\n== {title}");
        }
        if let Some(seed) = group.seed {
            println!("{SEED}={seed}");
        }
        for part in &group.parts {
            let check = part.check();
            (run.seed, run.share, run.variables) = (group.seed, part.share, check.variables);
            run.mpis = mpis.iter().filter(|mpi| part.has(mpi.flavour)).cloned().collect();
            if options.under_load && load.is_none() && check.starts_jobs {
                mpis.iter().flat_map(|mpi| run.build(mpi)).try_for_each(|step| step.built())?;
                load = Some(Load::start(options.yes)?);
            }
            let steps = (check.run)(&run);
            done.extend(steps.into_iter().map(|step| Done { part: *part, seed: group.seed, step }));
        }
    }
    drop(load);
    run.mpis = mpis;
    let ran =
        |check: &Check| groups.iter().flat_map(|group| &group.parts).any(|part| part.check == check.name);
    let left_out: Vec<&Check> =
        CHECKS.iter().filter(|check| options.checks.is_empty() && !ran(check)).collect();
    Ok(run.report(&done, &left_out, &facts, only_first))
}

/// A step, and what it belongs to.
struct Done {
    part: Part,
    seed: Option<u64>,
    step: Step,
}

/// Returns the MPIs that can be used here, after the setup that was asked for.
fn facts(mpi: Option<Which>, yes: bool, only_first: bool) -> Result<Facts> {
    let flavours = mpi.unwrap_or(Which::All).flavours();
    let needed = if only_first { vec![Flavour::preferred(&Places::here())] } else { flavours.to_vec() };
    match setup::ensure(&needed, yes) {
        // No MPI was named and one is installed: test it, and report the missing one.
        Err(Failure::NotInstalled(why)) if mpi.is_none() && !yes => {
            let facts = Facts::gather(flavours);
            if !facts.suffice() {
                return Err(Failure::NotInstalled(why));
            }
            println!("Continuing without the missing packages: {why}.");
            Ok(facts)
        }
        done => done,
    }
}

/// Returns a number that differs from run to run.
fn new_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(()) >> 32
}

/// Busy processes beside the tests. Dropping it ends them.
struct Load(Child);

impl Load {
    fn start(yes: bool) -> Result<Self> {
        setup::ensure_tools(Need::Load, yes)?;
        let mut command = Command::new(LOAD[0]);
        command.args(&LOAD[1..]).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().map_err(|source| cannot_run(&command, source))?;
        println!("\n== beside {}", LOAD.join(" "));
        Ok(Self(child))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Only SIGTERM lets it end its own children.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// What all checks of one command share.
pub(crate) struct Run {
    pub(crate) workspace: Workspace,
    /// MPIs to test with; tests that no MPI can change use the first.
    pub(crate) mpis: Vec<Mpi>,
    /// MPIs of this command, also those with which the present check does not test.
    installed: Vec<Mpi>,
    pub(crate) yes: bool,
    pub(crate) seed: Option<u64>,
    /// Part of the tests, cases or libraries of a check.
    pub(crate) share: Option<Share>,
    /// Variables of the commands of a check.
    pub(crate) variables: Variables,
    /// MPI with which everything is built, as opposed to what links the MPI.
    first: Option<Flavour>,
    repeat: u32,
    filter: Vec<String>,
    /// MPIs with which everything is built.
    built: RefCell<Vec<Flavour>>,
}

impl Run {
    /// Builds ombx and the tests with an MPI: everything with the first, otherwise what links the MPI. Returns the step, or none if this
    /// command has built it before.
    pub(crate) fn build(&self, mpi: &Mpi) -> Vec<Step> {
        if self.built.borrow().contains(&mpi.flavour) {
            return Vec::new();
        }
        let targets = if self.first == Some(mpi.flavour) { release::ALL } else { release::OF_EACH_MPI };
        let build = || release::built_for_tests(mpi, &self.workspace, targets).map(|_| Outcome::Passed);
        let step = Step::timed(format!("build with {}", mpi.name()), build);
        if !step.failed() {
            self.built.borrow_mut().push(mpi.flavour);
        }
        vec![step]
    }

    /// Returns the MPI with which this command has built everything, verification programs included.
    pub(crate) fn mpi_of_everything(&self) -> Option<&Mpi> {
        let is_built =
            |mpi: &&Mpi| self.first == Some(mpi.flavour) && self.built.borrow().contains(&mpi.flavour);
        self.installed.iter().find(is_built)
    }

    /// Runs tests that start jobs, one at a time, with the first MPI: ranks spin while they wait, so that two jobs on the same cores
    /// starve each other. `words` choose the tests.
    pub(crate) fn tests(&self, what: &str, words: &[&str]) -> Vec<Step> {
        self.with_first(what, &[words, &["--", "--test-threads=1"]].concat())
    }

    /// Runs tests that start no jobs, as many at a time as there are cores.
    pub(crate) fn unit_tests(&self, what: &str, words: &[&str]) -> Vec<Step> {
        self.with_first(what, &[words, &["--"]].concat())
    }

    fn with_first(&self, what: &str, words: &[&str]) -> Vec<Step> {
        self.mpis.first().map_or_else(Vec::new, |mpi| self.tests_with(mpi, what, words))
    }

    /// Runs tests on ranks with each MPI.
    pub(crate) fn tests_with_each(&self, test: &str) -> Vec<Step> {
        let words = ["--test", test, "--", "--test-threads=1"];
        let with = |mpi| self.tests_with(mpi, &format!("{test} with {}", mpi.name()), &words);
        self.mpis.iter().flat_map(with).collect()
    }

    fn tests_with(&self, mpi: &Mpi, what: &str, words: &[&str]) -> Vec<Step> {
        let mut steps = self.build(mpi);
        if steps.iter().any(Step::failed) {
            return steps;
        }
        let command = || {
            let mut command = self.command(mpi, &["test", "--no-fail-fast"]);
            command.args(release::TESTED).args(words).args(&self.filter);
            command
        };
        let names = match self.share.map(|share| self.tests_of(share, &mut command())).transpose() {
            Ok(names) => names,
            Err(failure) => return vec![Step::timed(what, || Err(failure))],
        };
        for number in 1..=self.repeat {
            let name = if self.repeat > 1 {
                format!("{what}, {number} of {}", self.repeat)
            } else {
                what.to_owned()
            };
            let mut command = command();
            if let Some(names) = &names {
                command.arg("--exact").args(names);
            }
            steps.push(Step::count(name, &mut command));
        }
        steps
    }

    /// Returns a command of cargo in the target directory of an MPI, in which tests find their launcher and their ombx.
    pub(crate) fn command(&self, mpi: &Mpi, words: &[&str]) -> Command {
        let mut command = cargo();
        command.args(words).current_dir(&self.workspace.root);
        mpi.build_with(&mut command, &self.workspace.target);
        mpi.launch_with(&mut command);
        command.envs(self.variables.iter().copied());
        command.env("OMBX_BIN", mpi.target(&self.workspace.target).join("debug/ombx"));
        if let Some(seed) = self.seed {
            command.env(SEED, seed.to_string());
        }
        if let Ok(own) = env::current_exe() {
            command.env("OMBX_XTASK", own);
        }
        command
    }

    /// Returns a verification program that was built with the tests.
    pub(crate) fn program(&self, mpi: &Mpi, name: &str) -> Command {
        // Programs of `verify/` find the workspace by the manifest of the running program.
        let mut command = Command::new(mpi.target(&self.workspace.target).join("debug").join(name));
        command.stdin(Stdio::null()).current_dir(&self.workspace.root);
        command.env("CARGO_TARGET_DIR", &self.workspace.target).envs(self.variables.iter().copied());
        command
    }

    /// Prints the summary, what was left out, the counts alone on a line, and what failed.
    fn report(&self, done: &[Done], left_out: &[&Check], facts: &Facts, only_first: bool) -> ExitCode {
        // A step that failed and counts no tests is one failure.
        let uncounted = done.iter().filter(|done| done.step.failed() && done.step.tally.failed == 0).count();
        let mut tally = Tally { failed: uncounted as u64, ..Tally::default() };
        done.iter().for_each(|done| tally += done.step.tally);
        let steps: Vec<Step> = done.iter().map(|done| done.step.clone()).collect();
        println!("\n{}", Summary(&steps));
        for tier in [Tier::Test, Tier::Change, Tier::Nightly] {
            let names: Vec<&str> =
                left_out.iter().filter(|check| check.tier == tier).map(|check| check.name).collect();
            if !names.is_empty() {
                println!("Left out, in cargo xtask {}: {}", tier.command(), names.join(", "));
            }
        }
        if only_first {
            println!("Left out: other MPIs (--mpi all)");
        }
        for (flavour, _) in facts.absent().filter(|_| !only_first) {
            println!("Left out: {flavour}, which is not installed (cargo xtask setup)");
        }
        if tally.skipped > 0 {
            println!(
                "{} tests were skipped on this machine; each printed the reason (`skipped: ..`).",
                tally.skipped
            );
        }
        let failed: Vec<String> =
            done.iter().filter(|done| done.step.failed()).map(|done| self.again(done)).collect();
        println!("{tally}");
        if !failed.is_empty() {
            println!("failed: {}", failed.join("; "));
        }
        failed_if(!failed.is_empty())
    }

    /// Returns the names of the tests of a share, among those that a test command selects.
    fn tests_of(&self, share: Share, command: &mut Command) -> Result<Vec<String>> {
        let listed = output(command.args(["--list", "--format", "terse"]))?;
        let names = listed.lines().filter_map(|line| Some(line.strip_suffix(": test")?.to_owned()));
        let names = share.select(names.collect(), None);
        if names.is_empty() {
            let filter = self.filter.join(" ");
            return Err(Failure::Missing(format!(
                "share {share} of the tests with {filter:?} in their names is empty"
            )));
        }
        Ok(names)
    }

    /// Returns the shortest command that repeats a failed step.
    fn again(&self, Done { part, seed, step }: &Done) -> String {
        let seed = seed.map_or_else(String::new, |seed| format!(" --seed {seed}"));
        let mpi = self.mpis.iter().find(|mpi| step.what.contains(&mpi.name()));
        let mpi = mpi.map_or_else(String::new, |mpi| format!(" --mpi {}", mpi.flavour.key()));
        let (share, tests) = match &step.failed_tests[..] {
            [] => (part.share.map_or_else(String::new, |share| format!(" --share {share}")), String::new()),
            tests => (String::new(), format!(" -- {}", tests.join(" "))),
        };
        format!("cargo xtask test {}{mpi}{share}{seed}{tests}", part.check)
    }
}

#[cfg(test)]
mod tests {
    use ombx_toolchain::{Flavour, shown};

    use super::*;

    fn mpi() -> Mpi {
        Mpi {
            flavour: Flavour::Mpich,
            mpicc: "mpicc.mpich".into(),
            mpiexec: "mpiexec.mpich".into(),
            version: "4".into(),
        }
    }

    fn a_run() -> Run {
        let workspace = Workspace { root: "/w".into(), target: "/w/target".into(), packages: Vec::new() };
        Run {
            workspace,
            mpis: vec![mpi()],
            installed: vec![mpi()],
            yes: false,
            seed: Some(7),
            share: None,
            variables: &[],
            first: Some(Flavour::Mpich),
            repeat: 1,
            filter: Vec::new(),
            built: RefCell::default(),
        }
    }

    #[test]
    fn a_test_gets_its_binary_its_launcher_and_its_seed() {
        let shown = shown(&a_run().command(&mpi(), &["test"]));
        for part in [
            "OMBX_BIN=/w/target/mpich/debug/ombx",
            "OMBX_MPIEXEC=mpiexec.mpich",
            "CARGO_TARGET_DIR=/w/target/mpich",
            "OMBX_TEST_SEED=7",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }

    #[test]
    fn a_failure_is_repeated_by_its_shortest_command() {
        let part = Part { share: Some(Share::new(1, 2)), ..Part::whole("ranks") };
        let mut done = Done { part, seed: Some(7), step: Step::skipped("ranks with MPICH 4", "no need") };
        assert_eq!(a_run().again(&done), "cargo xtask test ranks --mpi mpich --share 1/2 --seed 7");
        done.step.failed_tests = vec!["a::b".into()];
        assert_eq!(a_run().again(&done), "cargo xtask test ranks --mpi mpich --seed 7 -- a::b");
    }
}
