//! `cargo xtask setup`: reports what a build of ombx needs and lacks, and installs it with consent.

use std::{
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
};

use ombx_toolchain::consent::{self, Rights};
use ombx_toolchain::{Failure, Flavour, Mpi, Places, Result, Which, succeeds, testbed};

use crate::{
    libclang,
    package::{Manager, Need},
};

/// Find or install what a build needs: a C compiler, libclang and an MPI
///
/// If something is missing, shows the packages and asks before it installs them with the package manager (apt-get, dnf, zypper or
/// pacman), as root or with `sudo -n`. Without these rights, prints the commands for your administrator.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask setup --mpi mpich")]
pub(crate) struct Options {
    /// MPI to install
    #[arg(long, value_enum, default_value = "all")]
    mpi: Which,
    /// Also install Chromium, in which pages of `ombx report` are tested
    #[arg(long)]
    browser: bool,
    /// Also install what `cargo xtask testbed` and the tests between hosts need: ssh, iproute2, ethtool, ping, Slurm, ClusterShell
    #[arg(long)]
    testbed: bool,
    /// Also install promtool and Python, with which files of `packaging` are tested: rules of Prometheus and checks of ReFrame
    #[arg(long)]
    packaging: bool,
    /// Also install valgrind, with which nightly checks count instructions and test unsafe code
    #[arg(long)]
    valgrind: bool,
    /// Install without asking
    #[arg(long)]
    yes: bool,
}

/// Prerequisites of a build on this machine.
pub(crate) struct Facts {
    /// `$MPICC`, if it is not one of the MPIs.
    unused_mpicc: Option<PathBuf>,
    compiler: std::result::Result<PathBuf, String>,
    libclang: std::result::Result<PathBuf, String>,
    mpis: Vec<(Flavour, std::result::Result<Mpi, String>)>,
}

impl Facts {
    /// Searches this machine for compiler, libclang and these MPIs.
    pub(crate) fn gather(flavours: &[Flavour]) -> Self {
        let places = Places::here();
        let mpis: Vec<_> = flavours.iter().map(|&flavour| (flavour, Mpi::find(flavour, &places))).collect();
        let used =
            |mpicc: &PathBuf| mpis.iter().flat_map(|(_, found)| found).any(|mpi| mpi.mpicc.ends_with(mpicc));
        let unused_mpicc = places.mpicc.clone().filter(|mpicc| !used(mpicc));
        Self { unused_mpicc, compiler: compiler(&places), libclang: libclang::find(), mpis }
    }

    /// Returns the MPIs that can be used.
    pub(crate) fn mpis(&self) -> Vec<Mpi> {
        self.mpis.iter().filter_map(|(_, found)| found.clone().ok()).collect()
    }

    /// Returns the MPIs that were not found, with the reason.
    pub(crate) fn absent(&self) -> impl Iterator<Item = (Flavour, &str)> {
        self.mpis.iter().filter_map(|(flavour, found)| Some((*flavour, found.as_ref().err()?.as_str())))
    }

    /// Returns whether ombx can be built with at least one MPI.
    pub(crate) fn suffice(&self) -> bool {
        self.compiler.is_ok() && self.libclang.is_ok() && self.mpis.iter().any(|(_, found)| found.is_ok())
    }

    fn missing(&self) -> Vec<Need> {
        let compiler = self.compiler.is_err().then_some(Need::Compiler);
        let libclang = self.libclang.is_err().then_some(Need::Libclang);
        compiler
            .into_iter()
            .chain(libclang)
            .chain(self.absent().map(|(flavour, _)| Need::Mpi(flavour)))
            .collect()
    }

    fn print(&self) {
        print_tool("C compiler", &self.compiler);
        print_tool("libclang", &self.libclang);
        for (flavour, found) in &self.mpis {
            match found {
                Ok(mpi) => println!("  {mpi}"),
                Err(why) => println!("  {flavour:<16} missing: {why}"),
            }
        }
        if let Some(mpicc) = &self.unused_mpicc {
            println!("  note: MPICC={} is not one of these and is not used", mpicc.display());
        }
    }
}

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    ensure(options.mpi.flavours(), options.yes)?;
    let chosen = [
        (options.browser, Need::Browser),
        (options.testbed, Need::Testbed),
        (options.packaging, Need::Packaging),
        (options.valgrind, Need::Valgrind),
    ];
    for (_, need) in chosen.into_iter().filter(|(is_chosen, _)| *is_chosen) {
        ensure_tools(need, options.yes)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Installs the programs that some tests need, with consent, and prints whether they are there.
pub(crate) fn ensure_tools(need: Need, yes: bool) -> Result<()> {
    if tools(need).is_err() {
        install(&[need], yes, Manager::find(&Places::here()), consent::rights, || {})?;
    }
    print_tool(&named(need), &tools(need));
    Ok(())
}

/// Finds the programs of a need of tests. The error says which are missing.
fn tools(need: Need) -> std::result::Result<PathBuf, String> {
    let places = Places::here();
    // The first program stands for all.
    let programs = |names: &[&str]| {
        let found = |name: &&str| places.program(name).ok_or_else(|| format!("no {name} on PATH"));
        let mut paths = names.iter().map(found).collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(paths.swap_remove(0))
    };
    match need {
        Need::Browser => programs(&["chromium"]),
        Need::Packaging => programs(&["promtool", "prometheus", "prometheus-node-exporter", "python3"]),
        Need::Load => programs(&["stress-ng"]),
        Need::Valgrind => programs(&["valgrind"]),
        Need::Testbed => {
            match &testbed::missing(&[&testbed::PROGRAMS[..], &testbed::OF_TESTS].concat())[..] {
                [] => Ok(PathBuf::from("all programs are installed")),
                programs => Err(format!("no {} on PATH", programs.join(", "))),
            }
        }
        Need::Compiler | Need::Libclang | Need::Mpi(_) => Err("this is no program of tests".into()),
    }
}

/// Ensures that everything for these MPIs is installed. Installs only with consent; an error if something is missing.
pub(crate) fn ensure(flavours: &[Flavour], yes: bool) -> Result<Facts> {
    ensure_beside(flavours, yes, || {})
}

/// The same, with something to do while packages are installed.
pub(crate) fn ensure_beside(flavours: &[Flavour], yes: bool, meanwhile: impl FnOnce()) -> Result<Facts> {
    let facts = Facts::gather(flavours);
    facts.print();
    let missing = facts.missing();
    if missing.is_empty() {
        println!("Nothing is missing.");
        return Ok(facts);
    }
    install(&missing, yes, Manager::find(&Places::here()), consent::rights, meanwhile)?;
    let facts = Facts::gather(flavours);
    facts.print();
    match facts.missing().as_slice() {
        [] => Ok(facts),
        _ => Err(Failure::Missing(
            "the packages were installed, but something is still missing (see above)".into(),
        )),
    }
}

fn install(
    missing: &[Need],
    yes: bool,
    manager: Option<Manager>,
    rights: impl Fn() -> Rights,
    meanwhile: impl FnOnce(),
) -> Result<()> {
    let stop = |why: &str| Err(Failure::NotInstalled(why.to_owned()));
    let Some(manager) = manager else {
        return stop(
            "something is missing (see above), and none of apt-get, dnf, zypper and pacman is installed",
        );
    };
    let unknown = manager.unknown(missing);
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().map(|&need| named(need)).collect();
        let why = format!("this distribution has no package for {}; install it manually", names.join(", "));
        return stop(&why);
    }
    let rights = rights();
    let commands = manager.commands(missing, rights);
    match rights {
        Rights::None => println!("As an administrator, run:"),
        Rights::Root | Rights::Sudo => println!("To install what is missing:"),
    }
    for words in &commands {
        println!("  {}", words.join(" "));
    }
    if rights == Rights::None {
        return stop("not root, and `sudo -n` is not allowed");
    }
    consent::ask(yes)?;
    meanwhile();
    for words in commands {
        println!("\n$ {}", words.join(" "));
        let status = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .status()
            .map_err(|source| Failure::Run { program: words[0].into(), source })?;
        if !status.success() {
            return Err(Failure::Command { command: words.join(" "), detail: status.to_string() });
        }
    }
    Ok(())
}

/// Finds `cc`, with which rustc links, or `gcc`.
fn compiler(places: &Places) -> std::result::Result<PathBuf, String> {
    let cc = places.program("cc").or_else(|| places.program("gcc")).ok_or("no cc on PATH")?;
    if succeeds(Command::new(&cc).arg("--version")) {
        Ok(cc)
    } else {
        Err(format!("{} does not run", cc.display()))
    }
}

fn print_tool(name: &str, found: &std::result::Result<PathBuf, String>) {
    match found {
        Ok(path) => println!("  {name:<16} {}", path.display()),
        Err(why) => println!("  {name:<16} missing: {why}"),
    }
}

fn named(need: Need) -> String {
    match need {
        Need::Compiler => "a C compiler".into(),
        Need::Libclang => "libclang".into(),
        Need::Mpi(flavour) => flavour.to_string(),
        Need::Testbed => "a test bed".into(),
        Need::Browser => "Chromium".into(),
        Need::Packaging => "promtool".into(),
        Need::Load => "stress-ng".into(),
        Need::Valgrind => "valgrind".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISSING: &[Need] = &[Need::Mpi(Flavour::Mpich)];

    fn refusal(manager: Option<Manager>, rights: Rights) -> String {
        // With --yes only the system can refuse. No case here runs a command.
        install(MISSING, true, manager, || rights, || {}).unwrap_err().to_string()
    }

    #[test]
    fn without_a_package_manager_nothing_is_installed() {
        assert!(refusal(None, Rights::Root).contains("none of apt-get"));
    }

    #[test]
    fn without_root_the_refusal_says_so() {
        assert!(refusal(Some(Manager::Apt), Rights::None).contains("not root"));
    }

    #[test]
    fn a_distribution_without_the_package_is_named() {
        assert!(refusal(Some(Manager::Pacman), Rights::Root).contains("no package for MPICH"));
    }

    #[test]
    fn missing_parts_are_those_not_found() {
        let facts = Facts {
            unused_mpicc: None,
            compiler: Ok("/usr/bin/cc".into()),
            libclang: Err("no libclang.so".into()),
            mpis: vec![(Flavour::Mpich, Err("no wrapper".into()))],
        };
        assert_eq!(facts.missing(), [Need::Libclang, Need::Mpi(Flavour::Mpich)]);
        assert!(!facts.suffice());
        assert!(facts.mpis().is_empty());
    }
}
