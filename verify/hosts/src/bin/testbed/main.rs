//! `cargo xtask testbed`: several Linux hosts on one machine, connected by a network of known delay and rate.
#![expect(clippy::print_stdout, reason = "a program that reports to a person or to a CI log")]

mod bed;
mod files;
mod host;
mod pipe;
mod queue;
mod shape;
mod switch;

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use clap::Parser as _;
use rustix::process::{Pid, Signal, kill_process};

use self::{
    bed::{Bed, SUBNET, ip},
    shape::{Change, Shape, Uplink, Wire, host_name},
};
use ombx_toolchain::{Failure, Flavour, Places, Result, Workspace, exit_code, testbed};

/// Make several Linux hosts on this machine, connected by ssh and a network of known delay and rate
///
/// Each host has its own network, host name, processes, shared memory and boot id. Needs root. The inventory
/// target/testbed/cluster.toml is for `cargo xtask cluster-bench --inventory`.
#[derive(clap::Parser)]
#[command(
    bin_name = "cargo xtask testbed",
    after_help = "Examples:\n  cargo xtask testbed up --hosts 4\n  cargo xtask testbed up --hosts 4 \
                  --delay 2ms --rate 100Mbit --link h1-h3:rate=10Mbit\n  cargo xtask testbed exec h1 -- \
                  ping -c 3 h2\n  cargo xtask testbed down"
)]
struct Options {
    /// Directory of the test bed; beds in different directories are independent [default: target/testbed]
    #[arg(long, global = true)]
    dir: Option<PathBuf>,
    #[command(subcommand)]
    task: Task,
}

#[derive(clap::Subcommand)]
enum Task {
    /// Start hosts h1, h2, ..; with --delay, --rate, --link or --host, on an emulated network
    Up(Up),
    /// Run a command on a host and return its exit code
    Exec {
        /// Host, for example: h1
        host: String,
        /// Command and its arguments, after --
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Disconnect a host, or cut the link between two hosts of an emulated network: cut h2, cut h1-h2
    Cut {
        /// Host or link
        what: String,
    },
    /// Restore everything that was cut
    Mend,
    /// Print the hosts that run, and the delay errors of the emulated network
    Status,
    /// Stop everything, including leftovers of a crash
    Down,
    #[command(hide = true)]
    Switch,
    #[command(hide = true)]
    Pipe { address: String, port: u16 },
}

#[derive(clap::Args)]
struct Up {
    /// Number of hosts
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    hosts: u8,
    /// One-way delay of every link, for example: --delay 2ms
    #[arg(long, value_parser = shape::parse_delay)]
    delay: Option<Duration>,
    /// Rate of every link in each direction, for example: --rate 100Mbit
    #[arg(long, value_parser = shape::parse_rate)]
    rate: Option<u64>,
    /// Rate of every host's port, which all its links share, for example: --port 10Mbit
    #[arg(long, value_parser = shape::parse_rate)]
    port: Option<u64>,
    /// Hosts whose links to all others share a rate, in each direction, for example: --uplink h1,h2,h3:rate=10Mbit
    #[arg(long, value_parser = Uplink::parse)]
    uplink: Vec<Uplink>,
    /// Link that differs, for example: --link h1-h2:delay=5ms,rate=10Mbit
    #[arg(long, value_parser = Change::of_link)]
    link: Vec<Change>,
    /// Host whose links differ, for example: --host h3:delay=5ms, or --host h3:damaged=0.5% of the frames that it receives
    #[arg(long, value_parser = Change::of_host)]
    host: Vec<Change>,
}

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode> {
    if let Task::Pipe { address, port } = &options.task {
        return pipe::run(address, *port).map(|()| ExitCode::SUCCESS);
    }
    let directory = match &options.dir {
        Some(directory) => directory.clone(),
        None => Workspace::read()?.target.join("testbed"),
    };
    permitted(matches!(options.task, Task::Up(_)))?;
    let bed = Bed::at(&directory)?;
    match &options.task {
        Task::Up(options) => up(&bed, options)?,
        Task::Exec { host, command } => return exec(&bed, host, command),
        Task::Cut { what } => cut(&bed, what)?,
        Task::Mend => mend(&bed)?,
        Task::Status => status(&bed)?,
        Task::Down => {
            bed.remove()?;
            println!("The test bed is down.");
        }
        Task::Switch => switch::run(&bed)?,
        Task::Pipe { .. } => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns an error if a bed cannot be made here.
fn permitted(to_make_one: bool) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::Missing(
            "a test bed needs root for its namespaces: use sudo, or a container with --privileged".into(),
        ));
    }
    let lacking: Vec<&str> = if to_make_one { testbed::missing(&testbed::PROGRAMS) } else { Vec::new() };
    match lacking.as_slice() {
        [] => Ok(()),
        programs => Err(Failure::Missing(format!(
            "a test bed needs {}, which this machine lacks (cargo xtask setup --testbed)",
            programs.join(", ")
        ))),
    }
}

fn up(bed: &Bed, options: &Up) -> Result<()> {
    let hosts = usize::from(options.hosts);
    if bed.hosts() > 0 {
        return Err(Failure::Missing(format!(
            "a test bed already runs in {}. Stop it first: cargo xtask testbed down",
            bed.directory.display()
        )));
    }
    let all = Wire { delay: options.delay.unwrap_or_default(), rate: options.rate, ..Wire::default() };
    let changes = options.host.iter().chain(&options.link);
    let shape = Shape::new(hosts, all, changes).map_err(Failure::Usage)?.with_ports(options.port);
    let shape = shape.with_uplinks(&options.uplink).map_err(Failure::Usage)?;
    let emulated = options.delay.is_some()
        || options.rate.is_some()
        || options.port.is_some()
        || !options.uplink.is_empty()
        || !options.link.is_empty()
        || !options.host.is_empty();
    if emulated && !Path::new("/dev/net/tun").exists() {
        return Err(Failure::Missing(
            "an emulated network needs TAP devices, and this kernel has no /dev/net/tun (modprobe tun); a \
             plain bridge works without"
                .into(),
        ));
    }
    bed.remove()?;
    let mpi = Flavour::preferred(&Places::here()).key();
    if let Err(failure) = host::up(bed, &shape, emulated, mpi) {
        let _ = bed.remove();
        return Err(failure);
    }
    let names: Vec<String> = (0..hosts).map(host_name).collect();
    let what = if emulated { "an emulated network" } else { "a bridge" };
    println!("Up: {} on {what}.", names.join(", "));
    for line in shape.expectations() {
        println!("  {line}");
    }
    let directory = bed.directory.display();
    println!("  cargo xtask testbed exec h1 -- COMMAND");
    println!("  ssh -F {directory}/ssh_config h1 COMMAND");
    println!("  cargo xtask cluster-bench --inventory {directory}/cluster.toml");
    Ok(())
}

/// Returns a command that runs another on a host: in all its namespaces, on its core, in the same directory.
fn enter(bed: &Bed, host: &str) -> Result<Command> {
    let init = bed.init_of(host).ok_or_else(|| {
        Failure::Hosts(format!(
            "host {host:?} is not up in {} (cargo xtask testbed up)",
            bed.directory.display()
        ))
    })?;
    let mut command = Command::new("nsenter");
    command.args(["-t", &init.as_raw_nonzero().to_string(), "-m", "-u", "-i", "-n", "-p", "--"]);
    command.args(["taskset", "-c", &host::cores_of(host, bed.hosts())]);
    command.args(["sh", "-c", "cd \"$0\" 2>/dev/null; exec \"$@\""]);
    command.arg(std::env::current_dir().unwrap_or_else(|_| "/".into()));
    Ok(command)
}

fn exec(bed: &Bed, host: &str, words: &[String]) -> Result<ExitCode> {
    shape::host_number(host).map_err(Failure::Usage)?;
    let source = enter(bed, host)?.args(words).exec();
    Err(Failure::Run { program: "nsenter".into(), source })
}

/// Returns the process of the emulated network.
fn switch_of(bed: &Bed) -> Option<Pid> {
    let pid = fs::read_to_string(bed.file("switch.pid")).ok()?.parse().ok()?;
    let ours = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let is_switch =
        ours.split(|b| *b == 0).any(|word| word == b"switch") && bed.file("switch.ready").exists();
    is_switch.then(|| Pid::from_raw(pid)).flatten()
}

/// Returns an error if the process of the emulated network was killed.
fn still_emulated(bed: &Bed) -> Result<()> {
    if bed.file("switch.pid").exists() && switch_of(bed).is_none() {
        Err(Failure::Hosts(
            "the process of the emulated network was killed, and its links are lost. Stop the bed: cargo \
             xtask testbed down"
                .into(),
        ))
    } else {
        Ok(())
    }
}

fn cut(bed: &Bed, what: &str) -> Result<()> {
    let link = shape::parse_link(what).ok();
    let hosts = match (link, shape::host_number(what)) {
        (Some(link), _) => link.to_vec(),
        (None, Ok(host)) => vec![host],
        (None, Err(why)) => return Err(Failure::Usage(why)),
    };
    if let Some(host) = hosts.iter().find(|host| **host >= bed.hosts()) {
        return Err(Failure::Usage(format!("{} is not up", host_name(*host))));
    }
    still_emulated(bed)?;
    match (switch_of(bed), link) {
        (Some(switch), _) => {
            let path = bed.file("cuts");
            let before = fs::read_to_string(&path).unwrap_or_default();
            fs::write(&path, format!("{before}{what}\n")).map_err(Failure::file(path))?;
            let _ = kill_process(switch, Signal::USR1);
        }
        (None, None) => drop(ip(&format!("-n {} link set port{} down", bed.namespace("sw"), hosts[0]))?),
        (None, Some(_)) => {
            return Err(Failure::Usage(
                "a bridge can disconnect only whole hosts. Start the bed with --delay 0 to cut links".into(),
            ));
        }
    }
    println!("{what} is cut.");
    Ok(())
}

fn mend(bed: &Bed) -> Result<()> {
    still_emulated(bed)?;
    let _ = fs::remove_file(bed.file("cuts"));
    match switch_of(bed) {
        Some(switch) => drop(kill_process(switch, Signal::USR1)),
        None => {
            for host in 0..bed.hosts() {
                ip(&format!("-n {} link set port{host} up", bed.namespace("sw")))?;
            }
        }
    }
    println!("All links are restored.");
    Ok(())
}

fn status(bed: &Bed) -> Result<()> {
    let namespaces = bed.namespaces()?;
    if namespaces.is_empty() {
        println!("No test bed is up in {}.", bed.directory.display());
        return Ok(());
    }
    for name in namespaces.iter().filter(|name| *name != "sw") {
        let number = shape::host_number(name).map_or(0, |host| host + 1);
        match bed.init_of(name) {
            Some(init) => println!("{name}  {SUBNET}.{number}  process {}", init.as_raw_nonzero()),
            None => println!("{name}  down"),
        }
    }
    still_emulated(bed)?;
    let Some(switch) = switch_of(bed) else {
        println!("network  a bridge");
        return Ok(());
    };
    let path = bed.file("switch.stats");
    let _ = fs::remove_file(&path);
    let _ = kill_process(switch, Signal::USR1);
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(20));
        if let Ok(line) = fs::read_to_string(&path) {
            println!("network  emulated: {line}");
            break;
        }
    }
    let cuts = fs::read_to_string(bed.file("cuts")).unwrap_or_default();
    if !cuts.is_empty() {
        println!("cut  {}", cuts.lines().collect::<Vec<_>>().join(", "));
    }
    Ok(())
}
