//! Execution of one job: counters of its hosts, launch, cleanup, and `job.json`.

pub(crate) mod scheduler;

use std::{env, fs, path::Path, time::Duration};

use ombx_host::{environment::timestamp, since::Since};
use ombx_record::error::{Exit, Result};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Launcher},
    collect::Counters,
    parallel,
    plan::Job,
    record::{self, Ending},
    remote::{Machine, ScriptEnd, ScriptFiles, at},
    script::{self, seconds},
};

/// Time limit of a cleanup.
const SWEEP_LIMIT: Duration = Duration::from_secs(15);

/// Counters of a host, or why there are none.
type Read = std::result::Result<Counters, String>;

/// Contents of `job.json`.
#[derive(Serialize)]
struct JobRecord<'a> {
    name: &'a str,
    stage: &'static str,
    hosts: Vec<&'a str>,
    ranks: u32,
    started: String,
    #[serde(flatten)]
    ending: &'a Ending,
    #[serde(flatten)]
    launch: Option<Value>,
}

/// Runs a job and writes all its files.
pub(crate) fn run(cluster: &Cluster, job: &Job) -> Result<Ending> {
    let directory = cluster.record.job(job);
    fs::create_dir_all(&directory).map_err(at(&directory))?;
    scheduler::withdraw(cluster, &directory);
    if record::keep_earlier_attempt(&directory) {
        // The earlier call may have been killed before its cleanup.
        sweep(cluster, job, &directory);
    }
    let (since, started) = (Since::now(), timestamp());
    let before = crate::collect::read_counters(cluster, job, &directory, "before");
    let missing: Vec<&str> = before.iter().filter_map(|host| Some(host.as_ref().err()?.as_str())).collect();
    let (ending, launch) = if missing.is_empty() {
        let files = ScriptFiles::of_job(&directory);
        let ended = launch(cluster, job, &files)?;
        let left = sweep(cluster, job, &directory);
        let after = crate::collect::read_counters(cluster, job, &directory, "after");
        let ending = judge(cluster, job, &files, &ended, &left, &after);
        let launch = json!({
            "took_s": (since.elapsed().as_secs_f64() * 10.0).round() / 10.0,
            "mark": cluster.mark(job),
            "command": command_line(cluster, job),
            "left_behind": left.iter().flatten().sum::<u64>(),
            "network": host_records(cluster, job, &before, &after),
        });
        (ending, Some(launch))
    } else {
        (Ending::Failed { reason: missing.join("; ") }, None)
    };
    let (name, stage, hosts) = (job.name.as_str(), job.stage.name(), cluster.host_names(job));
    let record = JobRecord { name, stage, hosts, ranks: job.ranks(), started, ending: &ending, launch };
    cluster.record.write_json(&format!("jobs/{name}/job.json"), &record)?;
    Ok(ending)
}

/// Starts ombx where launchers run, or submits the job to a scheduler, and waits for its end.
fn launch(cluster: &Cluster, job: &Job, files: &ScriptFiles) -> Result<ScriptEnd> {
    let script = script::job(&cluster.inventory, &cluster.mark(job), &command_line(cluster, job));
    let machine = match cluster.launcher {
        Launcher::Slurm if env::var_os("SLURM_JOB_ID").is_none() => {
            return scheduler::run(cluster, job, &script, files);
        }
        Launcher::Script { .. } => return scheduler::run(cluster, job, &script, files),
        Launcher::Mpiexec if cluster.launches_on_hosts() => cluster.machine(job.hosts[0]),
        _ => Machine::Here,
    };
    machine.run(&script, files, cluster.launch_limit(job), parallel::requested)
}

/// Decides how a launch ended. It is complete if the result file is complete, even if hosts failed afterwards.
fn judge(
    cluster: &Cluster,
    job: &Job,
    files: &ScriptFiles,
    ended: &ScriptEnd,
    left: &[Option<u64>],
    after: &[Read],
) -> Ending {
    let how = match ended {
        ScriptEnd::Code(code) if has_rows(*code) && record::is_complete(&files.stdout) => {
            return Ending::Complete { exit_code: *code };
        }
        ScriptEnd::Code(code) => format!("ombx ended with exit code {code}"),
        ScriptEnd::Killed => "the launcher was killed".to_owned(),
        ScriptEnd::TimedOut => format!("not finished within {}", script::seconds(cluster.launch_limit(job))),
        ScriptEnd::Interrupted | ScriptEnd::Endless | ScriptEnd::NotRun(_) => ended.to_string(),
    };
    let mut reasons = vec![how, files.error()];
    reasons.extend(after.iter().filter_map(|host| host.as_ref().err().cloned()));
    for (&host, left) in job.hosts.iter().zip(left) {
        if let Some(left) = left.filter(|left| *left > 0) {
            reasons.push(format!(
                "{left} processes still ran on host {} and were ended",
                cluster.host_name(host)
            ));
        }
    }
    reasons.retain(|reason| !reason.is_empty());
    Ending::Failed { reason: reasons.join("; ") }
}

/// Returns whether ombx has measured all rows, of which some may be wrong, if it ended so.
fn has_rows(code: i32) -> bool {
    matches!(Exit::from_code(code), Some(Exit::Success | Exit::Incomplete | Exit::WrongData))
}

/// Returns the part of `job.json` about the hosts.
fn host_records(cluster: &Cluster, job: &Job, before: &[Read], after: &[Read]) -> Vec<Value> {
    let hosts = job.hosts.iter().zip(before.iter().zip(after));
    hosts.map(|(&host, (before, after))| host_record(cluster, host, before, after)).collect()
}

/// Returns the part of `job.json` about one host.
fn host_record(cluster: &Cluster, host: usize, before: &Read, after: &Read) -> Value {
    let difference = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
    let before = before.as_ref().cloned().unwrap_or_default();
    let after = after.as_ref().cloned().unwrap_or_default();
    json!({
        "host": cluster.host_name(host),
        "hostname": cluster.fact(host, "hostname"),
        "kernel": cluster.fact(host, "kernel"),
        "ombx": cluster.fact(host, "ombx"),
        "library": cluster.fact(host, "library"),
        "interface": before.interface,
        "foreign_cpu_percent": before.busy_percent,
        "rx_bytes": difference(before.rx_bytes, after.rx_bytes),
        "tx_bytes": difference(before.tx_bytes, after.tx_bytes),
    })
}

/// Ends the processes that a job left on its hosts. Returns how many there were on each; none for a host that cannot be reached.
fn sweep(cluster: &Cluster, job: &Job, directory: &Path) -> Vec<Option<u64>> {
    let script = script::sweep(&cluster.mark(job));
    let files = |name: &str| ScriptFiles::named(directory, &format!("{name}.sweep"));
    if !cluster.is_local() && !cluster.launches_on_hosts() {
        sweep_machine(Machine::Here, &script, &files("launcher"));
    }
    parallel::map(job.hosts.iter().copied(), |host| {
        sweep_machine(cluster.machine(host), &script, &files(cluster.host_name(host)))
    })
}

/// Ends the processes on one machine and returns how many there were.
fn sweep_machine(machine: Machine<'_>, script: &str, files: &ScriptFiles) -> Option<u64> {
    let ended = machine.run(script, files, SWEEP_LIMIT, parallel::ignored);
    let count = files.text().lines().find_map(|line| line.strip_prefix("swept ")?.parse().ok());
    count.filter(|_| matches!(ended, Ok(ScriptEnd::Code(0))))
}

/// Returns the command line that runs ombx for a job.
pub(crate) fn command_line(cluster: &Cluster, job: &Job) -> Vec<String> {
    let mut words = vec![cluster.remote_binary.to_string_lossy().into_owned()];
    let mut add = |more: &[&str]| words.extend(more.iter().map(|&word| word.to_owned()));
    match cluster.options.suite.as_str() {
        "links" => {
            add(&["links"]);
            if cluster.at_once() == 1 && !job.is_pair() {
                add(&["--serial"]);
            }
            let has = |option: &str| cluster.options.more.iter().any(|word| word.starts_with(option));
            if !has("--fail-on") {
                // The verdict on all jobs decides.
                add(&["--fail-on", "nothing"]);
            }
            if job.ranks() == 2 && job.hosts.len() == 2 && !has("--retest") {
                // The only link of a job has no other link to be compared with.
                add(&["--retest", "0"]);
            }
        }
        suite => add(&["run", &format!("suite:{suite}")]),
    }
    add(&["-n", &job.ranks().to_string(), "--format", "jsonl", "--quiet"]);
    add(&["--timeout", &seconds(cluster.limit(job))]);
    let is_slurm = cluster.launcher == Launcher::Slurm;
    if !cluster.is_local() {
        add(&["--hosts", &cluster.host_names(job).join(",")]);
        if cluster.launcher == Launcher::Mpiexec {
            add(&["--ssh", &cluster.ssh_wrapper().to_string_lossy()]);
        }
        let interface = cluster.inventory.hosts[job.hosts[0]].interface.as_deref();
        interface.filter(|_| !is_slurm).into_iter().for_each(|interface| add(&["--interface", interface]));
    }
    add(&["--launcher", if is_slurm { "srun" } else { "mpiexec" }]);
    add(&["--bind", cluster.inventory.bind.as_deref().unwrap_or("auto")]);
    words.extend(cluster.options.more.iter().cloned());
    words
}
