//! Start of the hosts and of the network between them.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::{
    bed::{Bed, HEAD, SUBNET, ip},
    files,
    shape::{Shape, host_name},
};
use ombx_toolchain::{Failure, Result, this_program};

/// Number of polls for a start, and their interval.
const TRIES: u32 = 250;
const POLL: Duration = Duration::from_millis(20);

/// Starts a bed in which nothing runs, on the emulated switch or on a bridge of the kernel, which delays nothing.
pub(crate) fn up(bed: &Bed, shape: &Shape, emulated: bool, mpi: &str) -> Result<()> {
    let hosts = shape.hosts;
    files::write(bed, hosts, mpi)?;
    let path = bed.file("shape");
    fs::write(&path, shape.to_text()).map_err(Failure::file(path))?;
    let switch = bed.namespace("sw");
    ip(&format!("netns add {switch}"))?;
    for host in 0..hosts {
        let namespace = bed.namespace(&host_name(host));
        ip(&format!("netns add {namespace}"))?;
        let _ = ip(&format!("netns exec {namespace} sysctl -qw net.ipv6.conf.all.disable_ipv6=1"));
    }
    if emulated {
        start_switch(bed)?;
    } else {
        bridge(bed, hosts)?;
    }
    address(&switch, "head", usize::from(HEAD), hosts + 1)?;
    for host in 0..hosts {
        let namespace = bed.namespace(&host_name(host));
        address(&namespace, "eth0", host + 1, host + 1)?;
        // Without ethtool the device reports another speed than it has.
        if let Some(speed) = shape.speed(host).filter(|_| emulated) {
            let words = format!("ethtool -s eth0 speed {speed} duplex full autoneg off");
            let _ = ip(&format!("netns exec {namespace} {words}"));
        }
    }
    let started: Vec<(String, Child)> = (0..hosts)
        .map(host_name)
        .map(|name| start(bed, &name, hosts).map(|child| (name, child)))
        .collect::<Result<_>>()?;
    for (name, child) in started {
        wait_for(bed, &name, child)?;
    }
    Ok(())
}

/// Makes a bridge in the namespace of the switch and a pair of devices to each host. The bridge is the head.
fn bridge(bed: &Bed, hosts: usize) -> Result<()> {
    let switch = bed.namespace("sw");
    ip(&format!("-n {switch} link add head type bridge"))?;
    for host in 0..hosts {
        let namespace = bed.namespace(&host_name(host));
        ip(&format!("link add eth0 netns {namespace} type veth peer name port{host} netns {switch}"))?;
        ip(&format!("-n {switch} link set port{host} master head up"))?;
    }
    Ok(())
}

/// Starts the emulated switch as a process, with real-time priority if permitted.
fn start_switch(bed: &Bed) -> Result<()> {
    let own = this_program()?;
    let first = Command::new("chrt").args(["-f", "50", "true"]).output().is_ok_and(|o| o.status.success());
    if !first {
        println!("note: SCHED_FIFO is not permitted: the emulated switch will deliver more frames late");
    }
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &bed.namespace("sw")]);
    command.args(if first { &["chrt", "-f", "50"][..] } else { &[] });
    command.arg(own).args(["--dir"]).arg(&bed.directory).arg("switch");
    let mut child = detached(command, &bed.file("switch.log"))?;
    for _ in 0..TRIES {
        if bed.file("switch.ready").exists() {
            let path = bed.file("switch.pid");
            return fs::write(&path, child.id().to_string()).map_err(Failure::file(path));
        }
        if let Ok(Some(_)) = child.try_wait() {
            break;
        }
        std::thread::sleep(POLL);
    }
    let log = fs::read_to_string(bed.file("switch.log")).unwrap_or_default();
    Err(Failure::Missing(format!("the emulated switch did not start: {}", log.trim())))
}

/// Sets the addresses of a device in a namespace and starts it.
fn address(namespace: &str, device: &str, number: usize, port: usize) -> Result<()> {
    ip(&format!("-n {namespace} link set {device} address 02:6f:6d:62:78:{port:02x}"))?;
    ip(&format!("-n {namespace} addr add {SUBNET}.{number}/24 dev {device}"))?;
    ip(&format!("-n {namespace} link set lo up"))?;
    ip(&format!("-n {namespace} link set {device} up"))?;
    Ok(())
}

/// Starts process 1 of a host in its namespaces.
fn start(bed: &Bed, name: &str, hosts: usize) -> Result<Child> {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &bed.namespace(name), "taskset", "-c", &cores_of(name, hosts)]);
    command.args("unshare --mount --uts --ipc --pid --fork --kill-child --mount-proc".split(' '));
    command.arg("sh").arg(bed.file("init.sh")).arg(&bed.directory).arg(name);
    detached(command, &bed.file(&format!("{name}.log")))
}

/// Returns the core of a host if there is one for each, otherwise all cores: hosts that share one core would starve each other
/// even if other cores are idle.
pub(crate) fn cores_of(name: &str, hosts: usize) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    match super::shape::host_number(name) {
        Ok(host) if hosts <= cores => host.to_string(),
        _ => format!("0-{}", cores - 1),
    }
}

fn wait_for(bed: &Bed, name: &str, mut child: Child) -> Result<()> {
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    for _ in 0..TRIES {
        let init = fs::read_to_string(&children).unwrap_or_default();
        if let Some(init) = init.split_whitespace().next() {
            let path = bed.file(&format!("{name}.pid"));
            fs::write(&path, init).map_err(Failure::file(path))?;
            let mut ssh = Command::new("timeout");
            ssh.args(["5", "ssh", "-o", "ConnectTimeout=2", "-F"]).arg(bed.file("ssh_config"));
            ssh.args([name, "true"]);
            if ssh.stdin(Stdio::null()).output().is_ok_and(|output| output.status.success()) {
                return Ok(());
            }
        }
        if let Ok(Some(_)) = child.try_wait() {
            break;
        }
        std::thread::sleep(POLL);
    }
    let log = fs::read_to_string(bed.file(&format!("{name}.log"))).unwrap_or_default();
    Err(Failure::Missing(format!("host {name} did not start: {}", log.trim())))
}

/// Starts a process that outlives this one and gets no signals of its terminal.
fn detached(mut command: Command, log: &Path) -> Result<Child> {
    let out = File::create(log).map_err(Failure::file(log))?;
    let err = out.try_clone().map_err(Failure::file(log))?;
    command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0).current_dir("/");
    command.spawn().map_err(|source| Failure::Run { program: "ip".into(), source })
}
