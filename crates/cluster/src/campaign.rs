//! Flow of a run: prepare, check the hosts, measure round by round, and sum up.

use std::path::PathBuf;

use ombx_host::host_name::check_host;
use ombx_record::{
    error::{Error, Result},
    regular_file::{read_named, shown_name},
};
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Launcher, LauncherChoice, Options, checksum},
    execute,
    inventory::Inventory,
    pair_sweep, parallel,
    plan::{self, Job, Pairs, Stage},
    preflight,
    record::{self, Ending, FinishedJob, RunDirectory},
    script, summary,
};

/// The ombx that measures.
#[derive(Clone, Debug)]
pub struct Binary {
    /// Path on this machine.
    pub path: PathBuf,
    /// `mpich` or `openmpi` if known; a part of the plan, which `--resume` compares.
    pub mpi: Option<String>,
}

/// A run whose options and inventory are checked. Nothing has been started or written yet.
#[derive(Debug)]
pub struct Campaign {
    options: Options,
    inventory: Inventory,
    launcher: Launcher,
    rounds: Vec<Vec<Job>>,
}

impl Campaign {
    /// Reads the inventory and the template, and makes the plan.
    ///
    /// # Errors
    /// A mistake of the user, of kind [`Usage`](ombx_record::error::Kind::Usage).
    pub fn prepare(options: Options) -> Result<Self> {
        let mut inventory = match &options.inventory {
            Some(path) => Inventory::read(path)?,
            None if !options.hosts.is_empty() => {
                options.hosts.iter().try_for_each(|name| check_host(name).map(drop))?;
                return Err(Error::usage("--hosts chooses hosts of an inventory. Add --inventory FILE."));
            }
            None => Inventory::this_machine(),
        };
        inventory.keep(&options.hosts)?;
        let launcher = launcher(&options)?;
        let rounds = plan::rounds(&inventory.hosts, &Pairs::parse(&options.pairs), options.seed)?;
        Ok(Self { options, inventory, launcher, rounds })
    }

    /// Returns the MPI that the inventory asks for: `mpich` or `openmpi`.
    pub fn mpi(&self) -> Option<&str> {
        self.inventory.mpi.as_deref()
    }

    /// Runs all jobs and returns the exit code. With `--dry-run`, prints the plan only.
    pub fn run(self, binary: Binary) -> Result<u8> {
        let checksum = checksum(&binary.path);
        let mut plan = self.plan(&binary, &checksum);
        let record = self.record(&plan)?;
        let Self { options, inventory, launcher, rounds } = self;
        let remote_binary = if options.inventory.is_none() || inventory.shared {
            binary.path.clone()
        } else {
            let user = format!("/tmp/ombx-{}", rustix::process::getuid().as_raw());
            let directory = inventory.work_dir.clone().unwrap_or_else(|| user.into());
            directory.join(checksum.get(..16).unwrap_or("unknown")).join("ombx")
        };
        let mut cluster = Cluster {
            inventory,
            options,
            launcher,
            binary: binary.path,
            remote_binary,
            record,
            facts: Vec::new(),
            left_out: Vec::new(),
        };
        if cluster.options.dry_run {
            print_plan(&cluster, &rounds)?;
            return Ok(0);
        }
        parallel::listen()?;
        cluster.record.write_json("plan.json", &plan)?;
        if let Some(path) = &cluster.options.inventory {
            let text = read_named(path).map_err(|e| Error::usage(format!("{}: {e}", path.display())))?;
            cluster.record.write("inventory.toml", &text)?;
        }
        let ended = match preflight::check(&mut cluster) {
            Ok(()) if cluster.left_out.is_empty() => measure(&cluster, rounds),
            Ok(()) => {
                // A run with all hosts does not continue this one.
                plan["left_out"] = json!(cluster.left_out);
                cluster.record.write_json("plan.json", &plan)?;
                let Options { pairs, seed, .. } = &cluster.options;
                plan::rounds(&cluster.inventory.hosts, &Pairs::parse(pairs), *seed)
                    .and_then(|rounds| measure(&cluster, rounds))
            }
            Err(error) => {
                let directory = cluster.record.directory.display();
                record::print_line(format_args!(
                    "Nothing was measured. Facts about the hosts are in {directory}"
                ));
                Err(error)
            }
        };
        if cluster.options.remove_copies {
            preflight::remove_copies(&cluster);
        }
        match parallel::exit_code() {
            // What failed is what the signal has ended.
            Some(code) if ended.is_err() => {
                record::print_line(format_args!("Interrupted"));
                Ok(code)
            }
            _ => ended,
        }
    }

    /// Returns the contents of `plan.json`.
    fn plan(&self, binary: &Binary, checksum: &str) -> Value {
        let Self { options, inventory, launcher, rounds } = self;
        let names: Vec<&str> = inventory.hosts.iter().map(|host| host.name.as_str()).collect();
        let chosen = json!({
            "suite": options.suite, "launcher": launcher.name(), "mpi": binary.mpi, "pairs": options.pairs,
            "seed": options.seed, "more": options.more, "binary": checksum,
        });
        record::plan(rounds, &names, chosen)
    }

    /// Creates the directory of the run, or finds that of the run to resume.
    fn record(&self, plan: &Value) -> Result<RunDirectory> {
        let runs = self.options.runs.clone().unwrap_or_else(|| "runs".into());
        if self.options.dry_run {
            let runs = std::path::absolute(&runs).unwrap_or(runs);
            return Ok(RunDirectory { id: "ID".into(), directory: runs.join("ID") });
        }
        match self.options.resume.then(|| RunDirectory::latest(&runs, plan)).flatten() {
            Some(record) => {
                record::print_line(format_args!("Resuming {}", record.directory.display()));
                Ok(record)
            }
            None => RunDirectory::create(&runs),
        }
    }
}

fn launcher(options: &Options) -> Result<Launcher> {
    let template = options.template.as_ref().map(|path| {
        read_named(path).map_err(|e| Error::usage(format!("cannot read {}: {e}", shown_name(path))))
    });
    Ok(match (options.launcher, template.transpose()?) {
        (LauncherChoice::Mpiexec, _) => Launcher::Mpiexec,
        (LauncherChoice::Slurm, _) => Launcher::Slurm,
        (LauncherChoice::Script, Some(template)) => Launcher::Script { template },
        (LauncherChoice::Script, None) => {
            return Err(Error::usage("--launcher script needs --template FILE"));
        }
        (LauncherChoice::Auto, _) if std::env::var_os("SLURM_JOB_ID").is_some() => Launcher::Slurm,
        (LauncherChoice::Auto, _) => Launcher::Mpiexec,
    })
}

/// Runs all jobs that are not complete yet, and sums up.
fn measure(cluster: &Cluster, rounds: Vec<Vec<Job>>) -> Result<u8> {
    record::print_line(format_args!(
        "Hosts: {}. Jobs: {}. Results go to {}",
        cluster.facts.len(),
        rounds.iter().flatten().count(),
        cluster.record.directory.display()
    ));
    let mut finished: Vec<FinishedJob> = Vec::new();
    let (pairs, together): (Vec<_>, Vec<_>) =
        rounds.into_iter().partition(|round| round[0].stage == Stage::Pairs);
    for round in pairs {
        run_round(cluster, round, &mut finished)?;
    }
    if cluster.options.suite == "links" && finished.len() > 1 {
        for pair in pair_sweep::collect(cluster, &finished).again() {
            let job = Job::pair(Stage::Again, &cluster.inventory.hosts, pair);
            run_round(cluster, vec![job], &mut finished)?;
        }
    }
    for round in together {
        run_round(cluster, round, &mut finished)?;
    }
    summary::conclude(cluster, &finished)
}

/// Runs jobs that have no host in common, as many at the same time as the inventory allows.
fn run_round(cluster: &Cluster, mut round: Vec<Job>, finished: &mut Vec<FinishedJob>) -> Result<()> {
    while !round.is_empty() {
        let jobs: Vec<Job> = round.drain(..cluster.at_once().min(round.len())).collect();
        let endings = parallel::map(&jobs, |job| run_once(cluster, job));
        for (job, ending) in jobs.into_iter().zip(endings) {
            finished.push(FinishedJob { job, ending: ending? });
        }
    }
    Ok(())
}

/// Runs a job, unless it is complete already or the user interrupted the run.
fn run_once(cluster: &Cluster, job: &Job) -> Result<Ending> {
    let name = &job.name;
    if let Some(ending @ Ending::Complete { .. }) = cluster.record.ending(job) {
        record::print_line(format_args!("  {name:<28} complete already"));
        return Ok(ending);
    }
    if parallel::requested() {
        return Ok(Ending::Failed { reason: "interrupted before its start".into() });
    }
    let ending = execute::run(cluster, job)?;
    match &ending {
        Ending::Complete { exit_code: 0 } => record::print_line(format_args!("  {name:<28} complete")),
        Ending::Complete { exit_code } => {
            record::print_line(format_args!("  {name:<28} complete, exit code {exit_code}"))
        }
        Ending::Failed { reason } => record::print_line(format_args!("  {name:<28} FAILED: {reason}")),
    }
    Ok(ending)
}

/// Prints the script of each job, and its batch script if a scheduler runs it.
fn print_plan(cluster: &Cluster, rounds: &[Vec<Job>]) -> Result<()> {
    for (round, job) in
        (1..).zip(rounds).flat_map(|(number, round)| round.iter().map(move |job| (number, job)))
    {
        record::print_line(format_args!("# {} (round {round})", job.name));
        record::print_line(script::job(
            &cluster.inventory,
            &cluster.mark(job),
            &execute::command_line(cluster, job),
        ));
        if cluster.launcher != Launcher::Mpiexec {
            let script = cluster.record.job(job).join("run.sh");
            record::print_line(execute::scheduler::batch_script(cluster, job, &script)?);
        }
    }
    Ok(())
}
