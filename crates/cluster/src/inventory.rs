//! Inventory of a cluster: its hosts, how to reach them, and their MPI.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use ombx_host::{
    host_name::{check_host, is_plain},
    node_set,
};
use ombx_record::{
    error::{Error, Result},
    regular_file::{read_named, shown_name},
};
use serde::Deserialize;

/// Contents of `cluster.toml`; docs/GUIDE.md describes the keys.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    /// `mpich` or `openmpi`.
    pub mpi: Option<String>,
    /// Installation of that MPI on the hosts; `PREFIX/bin/mpiexec` starts the ranks.
    pub prefix: Option<PathBuf>,
    /// Machine on which launchers run.
    #[serde(default)]
    pub launch: LaunchSite,
    /// Configuration file of ssh on this machine.
    pub ssh_config: Option<PathBuf>,
    /// Whether hosts see the files of this machine under the same paths. Nothing is copied then.
    #[serde(default)]
    pub shared: bool,
    /// Directory on the hosts for copies.
    pub work_dir: Option<PathBuf>,
    /// Maximum number of pairs that are measured at the same time.
    pub at_once: Option<usize>,
    /// `auto`, `core` or `none`, as for `ombx run --bind`.
    pub bind: Option<String>,
    /// Lines of shell that make the MPI usable, such as `module load openmpi`.
    #[serde(default)]
    pub setup: Vec<String>,
    /// Environment of ranks and launchers.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Command that submits a job script, such as `["qsub"]`.
    #[serde(default)]
    pub submit: Vec<String>,
    /// Command that cancels a job; gets the job id as its last argument.
    #[serde(default)]
    pub cancel: Vec<String>,
    /// Command that fails once the scheduler no longer knows a job id, such as `["qstat"]`.
    #[serde(default)]
    pub status: Vec<String>,
    /// Hosts in the order of the file.
    #[serde(default)]
    pub hosts: Vec<Host>,
}

/// One host.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Name for ssh and the launcher. In a file also a range, such as `n[01-16]`.
    pub name: String,
    /// Address in the measured network, if the name resolves to another one.
    pub address: Option<String>,
    /// Interface whose bytes are counted.
    pub interface: Option<String>,
    /// Number of ranks in jobs with several ranks per host.
    #[serde(default = "one")]
    pub slots: u32,
}

impl Host {
    /// Returns the hosts of a name with ranges. Ranges of the address belong to those of the name in order.
    fn expanded(&self) -> Result<Vec<Host>> {
        let names = node_set::expand(&self.name)?;
        let addresses = self.address.as_deref().map(node_set::expand).transpose()?;
        if let Some(addresses) = addresses.as_ref().filter(|addresses| addresses.len() != names.len()) {
            return Err(Error::usage(format!(
                "{} names {} hosts, but its address {}: give as many",
                self.name,
                names.len(),
                addresses.len()
            )));
        }
        let host = |(at, name): (usize, &String)| Host {
            name: name.clone(),
            address: addresses.as_ref().map(|addresses| addresses[at].clone()),
            ..self.clone()
        };
        Ok(names.iter().enumerate().map(host).collect())
    }
}

/// Machine on which launchers run.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum LaunchSite {
    /// This machine.
    #[default]
    Local,
    /// The first host of each job.
    Host,
}

fn one() -> u32 {
    1
}

impl Inventory {
    /// Reads and checks a file. Relative paths in it start at its directory.
    pub fn read(path: &Path) -> Result<Self> {
        let within = |error: Error| error.within(shown_name(path));
        let text = read_named(path).map_err(|e| within(Error::usage(e.to_string())))?;
        let mut inventory = Self::parse(&text).map_err(within)?;
        let absolute = std::path::absolute(path).map_err(|e| within(Error::usage(e.to_string())))?;
        let directory = absolute.parent().unwrap_or(Path::new("/"));
        inventory.ssh_config = inventory.ssh_config.map(|config| directory.join(config));
        Ok(inventory)
    }

    /// Parses and checks the text of an inventory.
    pub fn parse(text: &str) -> Result<Self> {
        let mut inventory: Self =
            toml::from_str(text).map_err(|e| Error::usage(e.to_string().trim().replace('\n', " ")))?;
        let hosts = inventory.hosts.iter().map(Host::expanded).collect::<Result<Vec<_>>>()?;
        inventory.hosts = hosts.concat();
        inventory.check().map_err(Error::usage)?;
        Ok(inventory)
    }

    /// Returns this machine as a cluster of one host.
    pub(crate) fn this_machine() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let slots = u32::try_from(cores).unwrap_or(2).clamp(2, 8);
        let host = Host {
            name: ombx_host::environment::hostname(),
            address: None,
            interface: Some("lo".into()),
            slots,
        };
        Self { hosts: vec![host], ..Self::default() }
    }

    /// Keeps the named hosts in the order of the inventory; an empty list keeps all, and one of `!` alone all but its hosts.
    pub(crate) fn keep(&mut self, lists: &[String]) -> Result<()> {
        if lists.is_empty() {
            return Ok(());
        }
        let mut list = lists.join(",");
        if node_set::elements(&list).all(|element| element.starts_with('!')) {
            let all: Vec<&str> = self.hosts.iter().map(|host| host.name.as_str()).collect();
            list = format!("{},{list}", all.join(","));
        }
        let names = node_set::expand(&list)?;
        for name in &names {
            check_host(name)?;
            if self.hosts.iter().all(|host| host.name != *name) {
                return Err(Error::usage(format!(
                    "--hosts names {name}, which is not in the inventory. Choose from its [[hosts]]."
                )));
            }
        }
        self.hosts.retain(|host| names.contains(&host.name));
        Ok(())
    }
}

/// Returns the name of a host as a part of file names.
pub(crate) fn file_name(host: &str) -> String {
    host.chars().map(|c| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '_' }).collect()
}

type Check = std::result::Result<(), String>;

impl Inventory {
    fn check(&self) -> Check {
        if self.hosts.is_empty() {
            return Err("the inventory has no hosts. Add a [[hosts]] table with a name.".into());
        }
        self.hosts.iter().try_for_each(check_one)?;
        for host in &self.hosts {
            let same = |other: &&Host| file_name(&other.name).eq_ignore_ascii_case(&file_name(&host.name));
            if self.hosts.iter().filter(same).count() > 1 {
                return Err(format!("host {} is listed twice. Remove one of them.", host.name));
            }
        }
        self.check_environment()?;
        one_of("bind", self.bind.as_deref(), &["auto", "core", "none"])?;
        one_of("mpi", self.mpi.as_deref(), &["mpich", "openmpi"])?;
        for path in [&self.prefix, &self.work_dir].into_iter().flatten() {
            let text = path.to_string_lossy();
            if !path.is_absolute() || !is_plain(&text, "-._/+@=,") {
                return Err(format!("{text:?} must be an absolute path of letters, digits and -._/+@=,"));
            }
        }
        let has_control = |path: &&PathBuf| path.to_string_lossy().contains(|c: char| c.is_control());
        if let Some(path) = self.ssh_config.as_ref().filter(has_control) {
            return Err(format!("ssh_config {path:?} must not contain control characters"));
        }
        match self.at_once {
            Some(0) => Err("at_once is 0. It must be at least 1.".into()),
            _ => Ok(()),
        }
    }

    fn check_environment(&self) -> Check {
        for (name, value) in &self.env {
            let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            if !starts || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(format!("{name:?} is not the name of an environment variable"));
            }
            if value.contains(['\0', '\n']) {
                return Err(format!("the value of environment variable {name} must be one line of text"));
            }
        }
        Ok(())
    }
}

fn check_one(host: &Host) -> Check {
    for name in [Some(&host.name), host.address.as_ref()].into_iter().flatten() {
        check_host(name).map_err(|e| e.to_string())?;
    }
    if let Some(name) = host.interface.as_deref().filter(|name| !is_plain(name, "-._:") || name.len() > 15) {
        return Err(format!("{name:?} is not the name of a network interface"));
    }
    match host.slots {
        1..=4096 => Ok(()),
        slots => Err(format!("host {} has {slots} slots. They must be from 1 to 4096.", host.name)),
    }
}

fn one_of(key: &str, value: Option<&str>, known: &[&str]) -> Check {
    match value {
        Some(value) if !known.contains(&value) => {
            Err(format!("{key} is {value:?}. Use one of {}.", known.join(", ")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "mpi = \"mpich\"\n[env]\nUCX_TLS = \"tcp\"\n[[hosts]]\nname = \"n-01\"\nslots = 4\n\
                        [[hosts]]\nname = \"me@n02.x\"\n";

    #[test]
    fn hosts_and_environment_are_parsed() {
        let inventory = Inventory::parse(GOOD).unwrap();
        assert_eq!(inventory.hosts.iter().map(|host| host.slots).collect::<Vec<_>>(), [4, 1]);
        assert_eq!((inventory.launch, inventory.env["UCX_TLS"].as_str()), (LaunchSite::Local, "tcp"));
    }

    #[test]
    fn values_that_could_be_options_or_shell_code_are_refused() {
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
                assert!(Inventory::parse(&text).unwrap_err().to_string().contains("host"), "{key} {name}");
            }
        }
        for interface in ["", "-x", "eth0; x", "$(x)", "eth 0", "eth0\n", "a/../b", "sixteen-letters0"] {
            let text = format!("[[hosts]]\nname = \"n\"\ninterface = {interface:?}\n");
            assert!(Inventory::parse(&text).unwrap_err().to_string().contains("interface"), "{interface}");
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
        let text = "[[hosts]]\nname = \"n[08-10]\"\naddress = \"10.0.0.[8-10]\"\nslots = 4\n";
        let mut inventory = Inventory::parse(text).unwrap();
        inventory.keep(&["n[09-10]".into()]).unwrap();
        let hosts: Vec<_> =
            inventory.hosts.iter().map(|host| (host.name.as_str(), host.address.as_deref())).collect();
        assert_eq!(hosts, [("n09", Some("10.0.0.9")), ("n10", Some("10.0.0.10"))]);
        inventory.keep(&["n[08-09]".into()]).unwrap_err();
        inventory.keep(&["!n10".into()]).unwrap();
        assert_eq!(inventory.hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>(), ["n09"]);
        assert!(Inventory::parse(&text.replace("8-10]\"\nslots", "8-9]\"\nslots")).is_err());
    }
}
