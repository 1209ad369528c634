//! The build of this binary: its commit, its compiler, and what distinguishes it from other builds.

use std::{
    collections::hash_map::DefaultHasher,
    fs::File,
    hash::{Hash, Hasher},
    io::Read,
};

use ombx_record::fact::{Fact, Facts};

/// Returns the facts about this build that results keep.
pub(crate) fn facts() -> Facts {
    let of = |value: &str, reason: &str| Fact::new(Some(value).filter(|value| !value.is_empty()), reason);
    let commit =
        of(env!("OMBX_BUILD_COMMIT"), "ombx was built outside its repository; set OMBX_COMMIT for the build");
    // This crate has an optimisation of its own, which does not matter for what is timed.
    let compiler =
        format!("{}, timed code with opt-level {}", env!("OMBX_BUILD_COMPILER"), ombx_core::OPT_LEVEL);
    let compiler = of(&compiler, "the compiler did not say its version");
    Facts::from([("commit".to_owned(), commit), ("compiler".to_owned(), compiler)])
}

/// Name of the hidden command that prints the line of a build.
pub(crate) const SUBCOMMAND: &str = "build-line";
/// Start of that line.
const MARK: &str = "ombx-build ";
/// Number of bytes at the start of the executable that identify a build.
const HEAD: u64 = 4096;

/// A build of ombx with the MPI library that it loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Build {
    identity: u64,
    name: String,
}

impl Build {
    /// Returns the build of this process.
    pub(crate) fn here() -> Build {
        Build { identity: identity(), name: name() }
    }

    /// Returns the line that describes the build.
    pub(crate) fn line(&self) -> String {
        format!("{MARK}{:016x} {}", self.identity, self.name)
    }

    /// Reads the line of a build; `None` of another line.
    pub(crate) fn parse(line: &str) -> Option<Build> {
        let (identity, name) = line.trim().strip_prefix(MARK)?.split_once(' ')?;
        Some(Build { identity: u64::from_str_radix(identity, 16).ok()?, name: name.to_owned() })
    }

    /// Returns a sentence about a host that has another build than this host; `None` if it has the same. A remote shell may find another
    /// library than ranks, whose variables the launcher passes on, so that the library decides nothing here.
    pub(crate) fn difference(&self, host: &str, here: &Build) -> Option<String> {
        (self.identity != here.identity).then(|| another(host, &self.name, &here.name, "this host"))
    }
}

/// Returns the sentence about a host with another build, and what to do.
pub(crate) fn another(host: &str, its: &str, other: &str, of_other: &str) -> String {
    let differing = if its == other { " of another build" } else { "" };
    format!(
        "{host} has {its}{differing}, but {of_other} has {other}: install the same ombx and the same MPI on all hosts"
    )
}

/// Returns version and commit of ombx, and the MPI library that it loads.
pub(crate) fn name() -> String {
    let commit = match env!("OMBX_BUILD_COMMIT") {
        "" => String::new(),
        commit => format!(" ({commit})"),
    };
    #[cfg(feature = "mpi")]
    let library = format!(" with {}", ombx_mpi::library_version());
    #[cfg(not(feature = "mpi"))]
    let library = "";
    format!("ombx {}{commit}{library}", env!("CARGO_PKG_VERSION"))
}

/// Returns a number that differs between builds: from version and commit, so that hosts may compile the same sources each for itself. Of
/// sources that no commit describes it is from length and head of the executable.
pub(crate) fn identity() -> u64 {
    let mut hasher = DefaultHasher::new();
    let commit = env!("OMBX_BUILD_COMMIT");
    if !commit.is_empty() && !commit.ends_with("-dirty") {
        (env!("CARGO_PKG_VERSION"), commit).hash(&mut hasher);
        return hasher.finish();
    }
    let mut head = Vec::new();
    let length = File::open("/proc/self/exe").and_then(|file| {
        let length = file.metadata()?.len();
        file.take(HEAD).read_to_end(&mut head)?;
        Ok(length)
    });
    (length.unwrap_or(0), head).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use crate::build::*;

    #[test]
    fn a_host_with_another_build_is_named_with_both() {
        let here = Build { identity: 1, name: "ombx 1 with MPICH 4".into() };
        let there =
            |identity, name: &str| Build::parse(&Build { identity, name: name.into() }.line()).unwrap();
        assert_eq!(there(1, "ombx 1 with MPICH 3").difference("n01", &here), None);
        let said = there(2, "ombx 2 with Open MPI 5").difference("n01", &here).unwrap();
        assert!(
            said.starts_with("n01 has ombx 2 with Open MPI 5, but this host has ombx 1 with MPICH 4:"),
            "{said}"
        );
        let said = there(2, &here.name).difference("n01", &here).unwrap();
        assert!(said.starts_with("n01 has ombx 1 with MPICH 4 of another build, but"), "{said}");
        assert_eq!(Build::parse("n01"), None);
    }
}
