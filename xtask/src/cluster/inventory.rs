//! What an administrator says of a cluster: its hosts, how they are reached, and which MPI they have.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use ombx_core::system::host_name;
use serde::Deserialize;

use crate::failure::{Failure, Result};

/// The file `cluster.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Inventory {
    /// `mpich` or `openmpi`.
    pub(super) mpi: Option<String>,
    /// Where that MPI is installed on the hosts; `PREFIX/bin/mpiexec` starts ranks.
    pub(super) prefix: Option<PathBuf>,
    /// Where launchers run: on this machine, or on the first host of each job.
    #[serde(default)]
    pub(super) launch: Launch,
    /// Configuration for ssh from this machine.
    pub(super) ssh_config: Option<PathBuf>,
    /// Hosts see the files of this machine under the same names: nothing is copied.
    #[serde(default)]
    pub(super) shared: bool,
    /// Directory on the hosts for copies.
    pub(super) work_dir: Option<PathBuf>,
    /// Pairs that are measured at the same time, at the most.
    pub(super) at_once: Option<usize>,
    /// `auto`, `core` or `none`, as `ombx run --bind`.
    pub(super) bind: Option<String>,
    /// Lines of shell that make the MPI usable: `module load ..`, `. /opt/env.sh`.
    #[serde(default)]
    pub(super) setup: Vec<String>,
    /// For ranks and launchers.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// The command that submits a rendered template, such as `["qsub"]`, and the one that ends a job by its number.
    #[serde(default)]
    pub(super) submit: Vec<String>,
    #[serde(default)]
    pub(super) cancel: Vec<String>,
    /// The command that fails for the number of a job that is not there any more: `["qstat"]`.
    #[serde(default)]
    pub(super) status: Vec<String>,
    #[serde(default)]
    pub(super) hosts: Vec<Host>,
}

/// One host.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(super) struct Host {
    /// What ssh and the launcher call it.
    pub(super) name: String,
    /// Its address in the network that is measured, if the name means another.
    pub(super) address: Option<String>,
    /// The interface whose bytes are counted.
    pub(super) interface: Option<String>,
    /// Ranks when it has several.
    #[serde(default = "one")]
    pub(super) slots: u32,
}

/// Where a launcher runs.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Launch {
    #[default]
    Local,
    Host,
}

fn one() -> u32 {
    1
}

impl Inventory {
    /// Reads and checks a file; paths in it are relative to it.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|e| usage(format!("{}: {e}", path.display())))?;
        let mut inventory = Self::parse(&text).map_err(|why| usage(format!("{}: {why}", path.display())))?;
        let absolute = std::path::absolute(path).map_err(Failure::file(path))?;
        let beside = absolute.parent().unwrap_or(Path::new("/"));
        inventory.ssh_config = inventory.ssh_config.map(|config| beside.join(config));
        Ok(inventory)
    }

    fn parse(text: &str) -> std::result::Result<Self, String> {
        let inventory: Self = toml::from_str(text).map_err(|e| e.to_string().trim().replace('\n', " "))?;
        inventory.check()?;
        Ok(inventory)
    }

    /// Everything here ends up as an argument of a program: what could be taken for an option or for shell is refused.
    fn check(&self) -> std::result::Result<(), String> {
        if self.hosts.is_empty() {
            return Err("it has no [[hosts]]".into());
        }
        for host in &self.hosts {
            host_name(&host.name)?;
            if let Some(address) = &host.address {
                host_name(address)?;
            }
            if let Some(name) =
                host.interface.as_deref().filter(|name| !plain(name, "-._:") || name.len() > 15)
            {
                return Err(format!("{name:?} is not the name of a network interface"));
            }
            if !(1..=4096).contains(&host.slots) {
                return Err(format!("{} has {} slots, which are 1 to 4096", host.name, host.slots));
            }
            let same = |other: &&Host| file_name(&other.name).eq_ignore_ascii_case(&file_name(&host.name));
            if self.hosts.iter().filter(same).count() > 1 {
                return Err(format!("host {} is there twice", host.name));
            }
        }
        for name in self.env.keys() {
            let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            if !starts || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(format!("{name:?} is not the name of an environment variable"));
            }
        }
        if self.env.values().any(|value| value.contains(['\0', '\n'])) {
            return Err("an environment variable has a line end or a zero byte in it".into());
        }
        if let Some(bind) = self.bind.as_deref().filter(|bind| !["auto", "core", "none"].contains(bind)) {
            return Err(format!("bind is {bind:?}; it is auto, core or none"));
        }
        if let Some(mpi) = self.mpi.as_deref().filter(|mpi| !["mpich", "openmpi"].contains(mpi)) {
            return Err(format!("mpi is {mpi:?}; it is mpich or openmpi"));
        }
        for path in [&self.prefix, &self.work_dir].into_iter().flatten() {
            let text = path.to_string_lossy();
            if !path.is_absolute() || !plain(&text, "-._/+@=,") {
                return Err(format!("{text:?} is no absolute path without blanks"));
            }
        }
        let odd = |path: &&PathBuf| path.to_string_lossy().contains(|c: char| c.is_control());
        if let Some(path) = self.ssh_config.as_ref().filter(odd) {
            return Err(format!("{path:?} is no path of a configuration of ssh"));
        }
        if self.at_once == Some(0) {
            return Err("at_once is 0; it is a number of pairs".into());
        }
        Ok(())
    }

    /// This machine as a cluster of one.
    pub(super) fn this_machine() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let slots = u32::try_from(cores).unwrap_or(2).clamp(2, 8);
        let host = Host {
            name: ombx_core::system::environment::hostname(),
            address: None,
            interface: Some("lo".into()),
            slots,
        };
        Self { hosts: vec![host], ..Self::default() }
    }

    /// Keeps these hosts alone, in the order of the inventory.
    pub(super) fn keep(&mut self, names: &[String]) -> Result<()> {
        for name in names {
            host_name(name).map_err(Failure::Usage)?;
            if self.hosts.iter().all(|host| host.name != *name) {
                return Err(usage(format!("--hosts names {name}, which the inventory does not have")));
            }
        }
        if !names.is_empty() {
            self.hosts.retain(|host| names.contains(&host.name));
        }
        Ok(())
    }
}

/// A name or address that no program takes for anything else.
pub(super) fn host_name(text: &str) -> std::result::Result<(), String> {
    host_name::check_host(text).map(|_| ()).map_err(|e| e.to_string())
}

/// What files of a host are called.
pub(super) fn file_name(host: &str) -> String {
    host.chars().map(|c| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '_' }).collect()
}

fn plain(text: &str, more: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(good)
}

fn usage(why: String) -> Failure {
    Failure::Usage(why)
}

/// An inventory of any bytes: what is kept of it could be an argument of any program.
#[cfg(any(test, fuzzing))]
pub(super) fn any(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(inventory) = Inventory::parse(text) else { return };
    let hosts = inventory.hosts.iter().flat_map(|host| [Some(&host.name), host.address.as_ref()]).flatten();
    for word in hosts.chain(inventory.hosts.iter().filter_map(|host| host.interface.as_ref())) {
        assert!(
            !word.is_empty() && !word.starts_with('-') && !word.contains([' ', '\'', '"', '$', '\n', ';'])
        );
    }
    assert!(inventory.env.keys().all(|name| !name.contains(['=', ' '])));
    let _ = inventory.clone().keep(&[text.to_owned()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_an_inventory_or_a_mistake() {
        ombx_core::testkit::hostile("inventory", 3000, any);
    }

    const GOOD: &str = "mpi = \"mpich\"\n[env]\nUCX_TLS = \"tcp\"\n[[hosts]]\nname = \"n-01\"\nslots = 4\n[[hosts]]\nname = \"me@n02.x\"\n";

    #[test]
    fn an_inventory_is_read() {
        let inventory = Inventory::parse(GOOD).unwrap();
        assert_eq!(inventory.hosts.iter().map(|host| host.slots).collect::<Vec<_>>(), [4, 1]);
        assert_eq!((inventory.launch, inventory.env["UCX_TLS"].as_str()), (Launch::Local, "tcp"));
    }

    #[test]
    fn what_could_be_an_option_or_shell_is_refused() {
        for name in [
            "a; touch x",
            "-oProxyCommand=x",
            "me@-oProxyCommand",
            "a b",
            "$(x)",
            "",
            "a\nb",
            "a'b",
            "`x`",
            "a|b",
            "a\tb",
        ] {
            for key in ["name", "address"] {
                let text = format!("[[hosts]]\nname = \"n\"\n{key} = {name:?}\n")
                    .replace("name = \"n\"\nname", "name");
                assert!(Inventory::parse(&text).unwrap_err().contains("host"), "{key} {name}");
            }
        }
        for interface in ["", "-x", "eth0; x", "$(x)", "eth 0", "eth0\n", "a/../b", "sixteen-letters0"] {
            let text = format!("[[hosts]]\nname = \"n\"\ninterface = {interface:?}\n");
            assert!(Inventory::parse(&text).unwrap_err().contains("interface"), "{interface}");
        }
        for line in ["A-B = \"x\"", "\"A;x\" = \"x\"", "A = \"x\\ny\""] {
            Inventory::parse(&GOOD.replace("UCX_TLS = \"tcp\"", line)).unwrap_err();
        }
        for line in [
            "prefix = \"/a b\"",
            "prefix = \"a\"",
            "work_dir = \"/x;y\"",
            "bind = \"x\"",
            "at_once = 0",
            "nonsense = 1",
        ] {
            Inventory::parse(&format!("{line}\n{GOOD}")).unwrap_err();
        }
        for twin in ["n-01", "N-01", "me_n02.x"] {
            Inventory::parse(&format!("{GOOD}[[hosts]]\nname = \"{twin}\"\n")).unwrap_err();
        }
    }

    #[test]
    fn hosts_are_chosen_by_name() {
        let mut inventory = Inventory::parse(GOOD).unwrap();
        inventory.keep(&["n03".into()]).unwrap_err();
        inventory.keep(&["n-01".into()]).unwrap();
        assert_eq!(inventory.hosts.len(), 1);
    }
}
