//! Files of a bed: host names, keys and configuration of ssh, and the inventory for cluster-bench.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use crate::{
    bed::{Bed, HEAD, SUBNET},
    shape::host_name,
};
use ombx_toolchain::{Failure, Result, output, this_program};

/// Writes all files except the shape of the network.
pub(crate) fn write(bed: &Bed, hosts: usize, mpi: &str) -> Result<()> {
    let names: Vec<String> = (0..hosts).map(host_name).collect();
    let addressed = || (1..).zip(&names);
    let user_key = key(bed, "id")?;
    put(bed, "authorized_keys", &user_key)?;
    let mut known = String::new();
    for (number, name) in addressed() {
        let public = key(bed, &format!("{name}_key"))?;
        known += &format!("{name},{SUBNET}.{number} {public}");
        put(bed, &format!("{name}.sshd"), &sshd(bed, name, number))?;
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/uuid").map_err(Failure::file("/proc"))?;
        put(bed, &format!("{name}.boot_id"), &boot_id)?;
    }
    put(bed, "known_hosts", &known)?;
    let lines: String = addressed()
        .map(|(number, name)| format!("{SUBNET}.{number} {name} {}\n", with_domain(number)))
        .collect();
    put(bed, "hosts", &format!("127.0.0.1 localhost\n{SUBNET}.{HEAD} head\n{lines}"))?;
    put(bed, "ssh_config.inside", &ssh(bed, &addressed().collect::<Vec<_>>(), None))?;
    let own = this_program()?;
    let through = format!(
        "ip netns exec {} {} pipe %h %p",
        bed.namespace("sw"),
        shell_words::quote(&own.to_string_lossy())
    );
    put(bed, "ssh_config", &ssh(bed, &addressed().collect::<Vec<_>>(), Some(&through)))?;
    put(bed, "cluster.toml", &inventory(&names, mpi))?;
    put(bed, "init.sh", INIT)
}

/// Returns a second name of a host, which does not resolve without its domain.
fn with_domain(number: usize) -> String {
    format!("node{number}.testbed")
}

/// Script of process 1 of a host: `sh init.sh DIRECTORY NAME`.
const INIT: &str = "\
set -e
directory=$1 name=$2
echo \"$name\" >/proc/sys/kernel/hostname
mount --make-rprivate /
mount -t tmpfs tmpfs /dev/shm
mkdir -p /run/sshd
mount -t tmpfs -o mode=755 tmpfs /run/sshd
mount --bind \"$directory/hosts\" /etc/hosts
mount --bind \"$directory/ssh_config.inside\" /etc/ssh/ssh_config
mount --bind \"$directory/$name.boot_id\" /proc/sys/kernel/random/boot_id
exec /usr/sbin/sshd -D -f \"$directory/$name.sshd\"
";

fn sshd(bed: &Bed, name: &str, number: usize) -> String {
    let directory = bed.directory.display();
    format!(
        "ListenAddress {SUBNET}.{number}\nHostKey \"{directory}/{name}_key\"\n\
         AuthorizedKeysFile \"{directory}/authorized_keys\"\nPasswordAuthentication no\n\
         KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nUsePAM no\nStrictModes no\n\
         PidFile none\nMaxStartups 200\nMaxSessions 200\nUseDNS no\nAcceptEnv LC_* OMBX_*\n\
         ClientAliveInterval 3\nClientAliveCountMax 2\n"
    )
}

fn ssh(bed: &Bed, hosts: &[(usize, &String)], through: Option<&str>) -> String {
    let directory = bed.directory.display();
    let mut text = String::new();
    for (number, name) in hosts {
        let names = format!("{name} {}", with_domain(*number));
        text += &format!("Host {names}\n  HostName {SUBNET}.{number}\n  HostKeyAlias {name}\n");
    }
    text += &format!(
        "Host *\n  User root\n  IdentityFile \"{directory}/id\"\n  IdentitiesOnly yes\n  \
         UserKnownHostsFile \"{directory}/known_hosts\"\n  GlobalKnownHostsFile /dev/null\n  \
         StrictHostKeyChecking yes\n  BatchMode yes\n  ConnectTimeout 5\n  ServerAliveInterval 2\n  \
         ServerAliveCountMax 3\n  LogLevel ERROR\n"
    );
    if let Some(through) = through {
        text += &format!("  ProxyCommand {through}\n");
    }
    text
}

fn inventory(names: &[String], mpi: &str) -> String {
    let mut text = format!(
        "# Written by `cargo xtask testbed up`. The same hosts serve both MPIs: cluster-bench --mpi chooses.\n\
         mpi = \"{mpi}\"\nlaunch = \"host\" # mpiexec runs on the first host of each job, reached by ssh\n\
         ssh_config = \"ssh_config\"\nshared = true # all hosts see the files of this machine\n\
         at_once = 1 # all hosts share this machine's cores: one pair at a time\nbind = \"none\"\n\n[env]\n\
         UCX_TLS = \"tcp,self\"\nUCX_NET_DEVICES = \"eth0\"\nOMPI_MCA_pml = \"ob1\"\nOMPI_MCA_btl = \"tcp,self\"\n\n\
         # Hosts share the cores of this machine: with more slots ranks take turns.\n"
    );
    for (number, name) in (1..).zip(names) {
        text += &format!(
            "\n[[hosts]]\nname = \"{name}\"\naddress = \"{SUBNET}.{number}\"\ninterface = \"eth0\"\nslots = 1\n"
        );
    }
    text
}

/// Makes a key pair unless it exists, and returns the public key.
fn key(bed: &Bed, name: &str) -> Result<String> {
    let (private, public) = (bed.file(name), bed.file(&format!("{name}.pub")));
    if !public.exists() {
        let _ = fs::remove_file(&private);
        output(
            Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-C", "ombx testbed", "-f"])
                .arg(&private),
        )?;
    }
    fs::read_to_string(&public).map_err(Failure::file(public))
}

fn put(bed: &Bed, name: &str, text: &str) -> Result<()> {
    let path = bed.file(name);
    fs::write(&path, text).map_err(Failure::file(&*path))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).map_err(Failure::file(path))
}
