//! Validation of an inventory. Its values become arguments of programs: those that an option or shell code could hide in are
//! refused.

use std::path::PathBuf;

use ombx_core::system::host_name::check_host;

use super::{Host, Inventory, file_name};

type Check = Result<(), String>;

impl Inventory {
    pub(super) fn check(&self) -> Check {
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

/// Returns whether a text has only ASCII letters, digits and characters of `more`, and cannot be an option.
fn is_plain(text: &str, more: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(good)
}
