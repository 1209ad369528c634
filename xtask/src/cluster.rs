//! `cargo xtask cluster-bench`: every link of a cluster, pair by pair and all together, with a record that can be argued with.

mod collect;
mod execute;
mod inventory;
mod plan;
mod preflight;
mod program;
mod queue;
mod record;
mod remote;
mod script;
mod summary;

use std::{
    path::PathBuf,
    process::{Command, ExitCode},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use ombx_core::unit::parse_duration;
use serde_json::json;

use self::{
    inventory::{Inventory, Launch},
    plan::{Job, Pairs, Stage},
    preflight::Facts,
    record::{Ending, Record},
    remote::{INTERRUPTED, Place},
};
use crate::{
    failure::{Failure, Result},
    mpi::{Flavour, Which},
    workspace::Workspace,
};

/// Measure every link of a cluster, or of this machine
///
/// Pairs of hosts first, disjoint ones at the same time, then all together, with one rank a host and with several. Needs
/// an inventory for more than this machine: docs/CLUSTER.md. Everything is kept in runs/ID.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cargo xtask cluster-bench\n  cargo xtask cluster-bench --inventory cluster.toml --hosts n01,n02 --dry-run\n  cargo xtask cluster-bench --inventory cluster.toml --launcher slurm --resume\n  cargo xtask cluster-bench --inventory cluster.toml -- --sizes 8,64K,4M"
)]
pub(crate) struct Options {
    /// Hosts, how they are reached, and their MPI [default: this machine alone]
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,
    /// What is measured: links, or a suite of `ombx run suite:NAME`
    #[arg(long, default_value = "links", value_parser = plan::suite)]
    suite: String,
    /// What starts ranks; auto: slurm inside an allocation, else mpiexec
    #[arg(long, value_enum, default_value_t = Chosen::Auto)]
    launcher: Chosen,
    /// Some of the inventory's hosts, for example: --hosts n01,n02
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true)]
    hosts: Vec<String>,
    /// Pairs of hosts: all, ring, or a list such as n01-n02,n01-n03
    #[arg(long, default_value = "all")]
    pairs: String,
    /// Time for each job, for example: --timeout 60s [default: from its size]
    #[arg(long, value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Order of the pairs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Show what would be done, and start nothing
    #[arg(long)]
    dry_run: bool,
    /// Go on with the last run of the same plan, without what is complete
    #[arg(long)]
    resume: bool,
    /// The MPI [default: the inventory's, else the first that is installed]
    #[arg(long, value_enum)]
    mpi: Option<Which>,
    /// An ombx that is built already [default: it is built with --release]
    #[arg(long, value_name = "FILE")]
    bin: Option<PathBuf>,
    /// Template of a job script for --launcher script, with {{command}}, {{hosts}}, {{nodes}}, {{ranks_per_host}}, {{minutes}}
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    /// Directory of runs
    #[arg(long, value_name = "DIRECTORY")]
    runs: Option<PathBuf>,
    /// Install what is missing to build ombx without asking
    #[arg(long)]
    yes: bool,
    /// More options for ombx, after --
    #[arg(last = true)]
    more: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Chosen {
    Auto,
    Mpiexec,
    Slurm,
    Script,
}

/// What starts ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Launcher {
    Mpiexec,
    Slurm,
    Script,
}

/// All that is known before the first job.
struct Cluster {
    inventory: Inventory,
    /// No inventory: this machine alone.
    alone: bool,
    launcher: Launcher,
    suite: String,
    more: Vec<String>,
    timeout: Option<Duration>,
    template: Option<String>,
    /// Here, and on the hosts.
    binary: PathBuf,
    remote_binary: PathBuf,
    record: Record,
}

impl Cluster {
    fn is_local(&self) -> bool {
        self.alone
    }

    fn launches_on_hosts(&self) -> bool {
        !self.alone && self.inventory.launch == Launch::Host
    }

    fn place(&self, host: usize) -> Place<'_> {
        match self.alone {
            true => Place::Here,
            false => Place::Host {
                name: &self.inventory.hosts[host].name,
                ssh_config: self.inventory.ssh_config.as_deref(),
            },
        }
    }

    fn interface(&self, host: usize) -> Option<&str> {
        self.inventory.hosts[host].interface.as_deref()
    }

    /// What launchers call the hosts of a job.
    fn names(&self, job: &Job) -> Vec<&str> {
        let name = |host: &usize| self.inventory.hosts[*host].name.as_str();
        job.hosts.iter().map(name).collect()
    }

    /// The program that launchers start in place of ssh, where they run.
    fn wrapper(&self) -> PathBuf {
        match self.launches_on_hosts() && !self.inventory.shared {
            true => self.remote_binary.with_file_name("ssh"),
            false => self.record.directory.join("ssh"),
        }
    }

    /// What ombx has for a job; its own deadline.
    fn limit(&self, job: &Job) -> Duration {
        let rounds = u64::from(job.ranks()).pow(2).max(1);
        self.timeout.unwrap_or(Duration::from_secs(300 + 20 * rounds))
    }

    /// The command line of a job.
    fn words(&self, job: &Job) -> Vec<String> {
        let mut words = vec![self.remote_binary.to_string_lossy().into_owned()];
        let mut add = |more: &[&str]| words.extend(more.iter().map(|&word| word.to_owned()));
        match self.suite.as_str() {
            "links" => {
                add(&["links"]);
                let one_by_one =
                    self.at_once() == 1 && job.stage != Stage::Pairs && job.stage != Stage::Again;
                add(if one_by_one { &["--serial"] } else { &[] });
                let said = self.more.iter().any(|word| word.starts_with("--retest"));
                let alone = job.hosts.len() == 2 && job.per_host == 1;
                add(if alone && !said { &["--retest", "0"] } else { &[] });
            }
            suite => add(&["run", &format!("suite:{suite}")]),
        }
        add(&["-n", &job.ranks().to_string(), "--format", "jsonl", "--quiet"]);
        add(&["--timeout", &script::seconds(self.limit(job))]);
        if !self.alone {
            add(&["--hosts", &self.names(job).join(",")]);
            if self.launcher == Launcher::Mpiexec {
                add(&["--ssh", &self.wrapper().to_string_lossy()]);
            }
            let interface = self.interface(job.hosts[0]).filter(|_| self.launcher != Launcher::Slurm);
            interface.into_iter().for_each(|interface| add(&["--interface", interface]));
        }
        add(&["--launcher", if self.launcher == Launcher::Slurm { "srun" } else { "mpiexec" }]);
        add(&["--bind", self.inventory.bind.as_deref().unwrap_or("auto")]);
        words.extend(self.more.iter().cloned());
        words
    }

    fn at_once(&self) -> usize {
        self.inventory.at_once.unwrap_or(usize::MAX)
    }
}

pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    let mut inventory = match &options.inventory {
        Some(path) => Inventory::read(path)?,
        None if !options.hosts.is_empty() => {
            options.hosts.iter().try_for_each(|name| inventory::host_name(name)).map_err(Failure::Usage)?;
            return Err(Failure::Usage("--hosts chooses from an inventory: --inventory cluster.toml".into()));
        }
        None => Inventory::this_machine(),
    };
    inventory.keep(&options.hosts)?;
    let template =
        options.template.as_ref().map(|path| std::fs::read_to_string(path).map_err(Failure::file(path)));
    let template = template.transpose()?;
    let launcher = match options.launcher {
        Chosen::Mpiexec => Launcher::Mpiexec,
        Chosen::Slurm => Launcher::Slurm,
        Chosen::Script if template.is_none() => {
            return Err(Failure::Usage("--launcher script needs --template FILE".into()));
        }
        Chosen::Script => Launcher::Script,
        Chosen::Auto if std::env::var_os("SLURM_JOB_ID").is_some() => Launcher::Slurm,
        Chosen::Auto => Launcher::Mpiexec,
    };
    let rounds = plan::rounds(&inventory.hosts, &Pairs::parse(&options.pairs), options.seed)?;
    let workspace = Workspace::read()?;
    let runs = options.runs.clone().unwrap_or_else(|| workspace.root.join("runs"));
    let (flavour, binary) = program::binary(options, &inventory, &workspace)?;
    let sum = remote::ask(Command::new("sha256sum").arg(&binary));
    let alone = options.inventory.is_none();
    let remote_binary = match alone || inventory.shared {
        true => binary.clone(),
        false => {
            let user = format!("/tmp/ombx-{}", rustix::process::getuid().as_raw());
            let directory = inventory.work_dir.clone().unwrap_or_else(|| user.into());
            directory.join(sum.get(..16).unwrap_or("unknown")).join("ombx")
        }
    };
    let names: Vec<&str> = inventory.hosts.iter().map(|host| host.name.as_str()).collect();
    let told = json!({
        "suite": options.suite, "launcher": format!("{launcher:?}").to_lowercase(), "mpi": flavour.map(Flavour::key),
        "pairs": options.pairs, "seed": options.seed, "more": options.more, "binary": sum.split(' ').next(),
    });
    let plan = record::plan(&rounds, &names, told);
    let previous = options.resume.then(|| Record::latest(&runs, &plan)).flatten();
    let record = match previous {
        _ if options.dry_run => Record { id: "ID".into(), directory: runs.join("ID") },
        Some(record) => {
            println!("Going on with {}", record.directory.display());
            record
        }
        None => Record::create(&runs)?,
    };
    let cluster = Cluster {
        inventory,
        alone,
        launcher,
        suite: options.suite.clone(),
        more: options.more.clone(),
        timeout: options.timeout,
        template,
        binary,
        remote_binary,
        record,
    };
    if options.dry_run {
        return dry_run(&cluster, &rounds);
    }
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        // A second one ends this process at once.
        let flag = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag));
        let _ = signal_hook::flag::register(signal, flag);
    }
    listen()?;
    cluster.record.write("plan.json", &(serde_json::to_string_pretty(&plan).unwrap_or_default() + "\n"))?;
    if let Some(path) = &options.inventory {
        let text = std::fs::read_to_string(path).map_err(Failure::file(path))?;
        cluster.record.write("inventory.toml", &text)?;
    }
    measure(&cluster, rounds)
}

/// Notes signals, so that what is under way can be ended and swept.
fn listen() -> Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
    ])
    .map_err(Failure::file("signals"))?;
    std::thread::spawn(move || signals.forever().for_each(|_| INTERRUPTED.store(true, Ordering::Relaxed)));
    Ok(())
}

/// Runs everything that is not complete yet, and sums up.
fn measure(cluster: &Cluster, rounds: Vec<Vec<Job>>) -> Result<ExitCode> {
    let facts = match preflight::check(cluster).and_then(|facts| preflight::wrapper(cluster).map(|()| facts))
    {
        Ok(facts) => facts,
        Err(failure) => {
            println!(
                "Nothing was measured; what was found of the hosts is in {}",
                cluster.record.directory.display()
            );
            return Err(failure);
        }
    };
    println!(
        "Measuring {} hosts, {} jobs; all goes to {}",
        facts.len(),
        rounds.iter().flatten().count(),
        cluster.record.directory.display()
    );
    let mut done: Vec<(Job, Ending)> = Vec::new();
    let (pairs, together): (Vec<_>, Vec<_>) =
        rounds.into_iter().partition(|round| round[0].stage == Stage::Pairs);
    for round in pairs {
        run_round(cluster, round, &facts, &mut done)?;
    }
    if cluster.suite == "links" && done.iter().filter(|(job, _)| job.stage == Stage::Pairs).count() > 1 {
        let measured: Vec<Job> = done.iter().map(|(job, _)| job.clone()).collect();
        let slow = collect::judge_pairs(cluster, &measured, &facts);
        // Where nothing stands out there is nothing to confirm.
        for pair in if slow.sentences.is_empty() { Vec::new() } else { slow.again } {
            let job = Job::pair(Stage::Again, &cluster.inventory.hosts, pair);
            run_round(cluster, vec![job], &facts, &mut done)?;
        }
    }
    for round in together {
        run_round(cluster, round, &facts, &mut done)?;
    }
    summary::conclude(cluster, &facts, &done)
}

/// Runs jobs that have no host in common, as many at the same time as the inventory allows.
fn run_round(
    cluster: &Cluster,
    round: Vec<Job>,
    facts: &[Facts],
    done: &mut Vec<(Job, Ending)>,
) -> Result<()> {
    for some in round.chunks(cluster.at_once().min(round.len()).max(1)) {
        let endings: Vec<Result<Ending>> = std::thread::scope(|scope| {
            let workers: Vec<_> =
                some.iter().map(|job| scope.spawn(move || once(cluster, job, facts))).collect();
            let gone = || Err(Failure::Hosts("a job stopped".into()));
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| gone())).collect()
        });
        for (job, ending) in some.iter().zip(endings) {
            done.push((job.clone(), ending?));
        }
    }
    Ok(())
}

/// Runs a job unless it is complete already, or the user has had enough.
fn once(cluster: &Cluster, job: &Job, facts: &[Facts]) -> Result<Ending> {
    if let Some(ending @ Ending::Complete(_)) = cluster.record.ending(job) {
        println!("  {:<28} complete already", job.name);
        return Ok(ending);
    }
    if INTERRUPTED.load(Ordering::Relaxed) {
        return Ok(Ending::Failed("interrupted before it began".into()));
    }
    let ending = execute::run(cluster, job, facts)?;
    match &ending {
        Ending::Complete(0) => println!("  {:<28} complete", job.name),
        Ending::Complete(code) => println!("  {:<28} complete, exit code {code}", job.name),
        Ending::Failed(why) => println!("  {:<28} FAILED: {why}", job.name),
    }
    Ok(ending)
}

/// Shows the plan, and the script of each job in the words of its launcher.
fn dry_run(cluster: &Cluster, rounds: &[Vec<Job>]) -> Result<ExitCode> {
    for (number, round) in rounds.iter().enumerate() {
        for job in round {
            let directory = cluster.record.directory.join("jobs").join(&job.name);
            let path = directory.join("run.sh");
            println!("# {} (round {})", job.name, number + 1);
            let mark = format!("{}-{}", cluster.record.id, job.name);
            println!("{}", script::job(&cluster.inventory, &mark, &cluster.words(job)));
            match cluster.launcher {
                Launcher::Slurm => println!("{}", queue::slurm_script(cluster, job, &path, &directory)),
                Launcher::Script => println!("{}", queue::rendered(cluster, job, &path, &directory)?),
                Launcher::Mpiexec => {}
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
