//! Packages of each distribution, and the commands that install them.

use ombx_toolchain::{Flavour, Places, consent::Rights};

/// Prerequisite of a build or a test of ombx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Compiler,
    Libclang,
    Mpi(Flavour),
    Browser,
    Testbed,
    Packaging,
    /// Busy processes beside tests.
    Load,
    Valgrind,
}

/// Package manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manager {
    Apt,
    Dnf,
    Zypper,
    Pacman,
}

impl Manager {
    const ALL: [Self; 4] = [Self::Apt, Self::Dnf, Self::Zypper, Self::Pacman];

    /// Returns the installed package manager.
    pub(crate) fn find(places: &Places) -> Option<Self> {
        Self::ALL.into_iter().find(|manager| places.program(manager.program()).is_some())
    }

    fn program(self) -> &'static str {
        match self {
            Self::Apt => "apt-get",
            Self::Dnf => "dnf",
            Self::Zypper => "zypper",
            Self::Pacman => "pacman",
        }
    }

    /// Returns the packages of a prerequisite, separated by blanks; empty if the distribution has none.
    fn packages(self, need: Need) -> &'static str {
        use Flavour::{Mpich, OpenMpi};
        use Need::{Browser, Compiler, Libclang, Load, Mpi, Packaging, Testbed, Valgrind};
        match (self, need) {
            (_, Browser) => "chromium",
            (_, Load) => "stress-ng",
            (_, Valgrind) => "valgrind",
            (Self::Apt, Packaging) => "prometheus prometheus-node-exporter python3 python3-venv",
            (_, Packaging) => "", // the packages of Prometheus are known for Debian only
            (Self::Apt, Compiler) => "gcc libc6-dev",
            (Self::Apt, Libclang) => "libclang-dev",
            (Self::Apt, Mpi(Mpich)) => "mpich libmpich-dev",
            (Self::Apt, Mpi(OpenMpi)) => "openmpi-bin libopenmpi-dev",
            (Self::Apt, Testbed) => {
                "ethtool iproute2 iputils-ping openssh-client openssh-server procps slurm-wlm munge clustershell"
            }
            (Self::Dnf, Testbed) => "ethtool iproute iputils openssh-clients openssh-server procps-ng",
            (Self::Zypper, Testbed) => "ethtool iproute2 iputils openssh procps",
            (Self::Pacman, Testbed) => "ethtool iproute2 iputils openssh procps-ng",
            (Self::Dnf | Self::Zypper, Compiler) => "gcc glibc-devel",
            (Self::Dnf | Self::Zypper, Libclang) => "clang-devel",
            (Self::Dnf | Self::Zypper, Mpi(Mpich)) => "mpich mpich-devel",
            (Self::Dnf, Mpi(OpenMpi)) => "openmpi openmpi-devel",
            (Self::Zypper, Mpi(OpenMpi)) => "openmpi4 openmpi4-devel",
            (Self::Pacman, Compiler) => "gcc",
            (Self::Pacman, Libclang) => "clang",
            (Self::Pacman, Mpi(OpenMpi)) => "openmpi",
            (Self::Pacman, Mpi(Mpich)) => "", // only in the user repository
        }
    }

    /// Returns the prerequisites without a package.
    pub(crate) fn unknown(self, needs: &[Need]) -> Vec<Need> {
        needs.iter().copied().filter(|&need| self.packages(need).is_empty()).collect()
    }

    /// Returns the commands that install the prerequisites; with [`Rights::None`] those that an administrator types.
    pub(crate) fn commands(self, needs: &[Need], rights: Rights) -> Vec<Vec<&'static str>> {
        let packages = needs.iter().flat_map(|&need| self.packages(need).split_whitespace());
        // `env`: sudo does not pass the environment of the caller.
        let (before, install) = match self {
            Self::Apt => (
                Some("env DEBIAN_FRONTEND=noninteractive apt-get update"),
                "env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends",
            ),
            Self::Dnf => (None, "dnf install -y"),
            Self::Zypper => (None, "zypper --non-interactive install"),
            Self::Pacman => (None, "pacman -S --needed --noconfirm"),
        };
        let prefix = if rights == Rights::Sudo { "sudo -n" } else { "" };
        let with_prefix = |words: &'static str| [prefix, words].into_iter().flat_map(str::split_whitespace);
        let install: Vec<&'static str> = with_prefix(install).chain(packages).collect();
        before.map(|words| with_prefix(words).collect()).into_iter().chain([install]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_updates_first_and_installs_without_questions() {
        let commands = Manager::Apt.commands(&[Need::Mpi(Flavour::Mpich), Need::Libclang], Rights::Root);
        let typed: Vec<String> = commands.iter().map(|words| words.join(" ")).collect();
        assert_eq!(
            typed,
            [
                "env DEBIAN_FRONTEND=noninteractive apt-get update",
                "env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends mpich \
                 libmpich-dev libclang-dev",
            ]
        );
    }

    #[test]
    fn sudo_never_asks_for_a_password() {
        let commands = Manager::Dnf.commands(&[Need::Compiler], Rights::Sudo);
        assert_eq!(commands, [["sudo", "-n", "dnf", "install", "-y", "gcc", "glibc-devel"]]);
    }

    #[test]
    fn missing_packages_are_reported() {
        assert_eq!(
            Manager::Pacman.unknown(&[Need::Mpi(Flavour::Mpich), Need::Compiler]),
            [Need::Mpi(Flavour::Mpich)]
        );
        for manager in [Manager::Apt, Manager::Dnf, Manager::Zypper] {
            assert!(manager.unknown(&[Need::Testbed, Need::Valgrind]).is_empty());
            let needs =
                [Need::Compiler, Need::Libclang, Need::Mpi(Flavour::Mpich), Need::Mpi(Flavour::OpenMpi)];
            assert!(manager.unknown(&needs).is_empty(), "{manager:?}");
        }
    }

    #[test]
    fn without_a_package_manager_there_is_no_install_command() {
        assert_eq!(Manager::find(&Places { mpicc: None, directories: Vec::new() }), None);
    }
}
