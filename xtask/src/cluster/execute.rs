//! One job from its launch to the sweep after it: three deadlines, counters of every host before and after, nothing left behind.

use std::{fs, path::Path, time::Duration};

use ombx_core::system::clock::Since;
use serde_json::{Value, json};

use super::{
    Cluster, Launcher,
    plan::Job,
    preflight::{Facts, one},
    queue,
    record::{self, Ending},
    remote::{Ended, Files, Place},
    script,
};
use crate::failure::{Failure, Result};

/// Beyond the time that ombx has, for its own way to the end.
pub(super) const BEYOND: Duration = Duration::from_secs(15);
/// For a script that looks at a host.
const LOOK: Duration = Duration::from_secs(15);

/// What one look at a host showed.
#[derive(Clone, Debug, Default)]
struct Look {
    interface: Option<String>,
    rx: Option<u64>,
    tx: Option<u64>,
    busy_percent: Option<f64>,
}

/// Runs a job and writes everything about it into its directory.
pub(super) fn run(cluster: &Cluster, job: &Job, facts: &[Facts]) -> Result<Ending> {
    let directory = cluster.record.job(job)?;
    let mark = format!("{}-{}", cluster.record.id, job.name);
    queue::withdraw(cluster, &directory);
    if cluster.record.put_aside(&directory) {
        // Whoever ran it may have been killed before the sweep: it may run still.
        sweep(cluster, job, &directory, &mark);
    }
    let since = Since::now();
    let started = ombx_core::system::environment::timestamp();
    let before = looks(cluster, job, &directory, "before");
    let absent = |looks: &[std::result::Result<Look, String>]| -> Vec<String> {
        let of = job.hosts.iter().zip(looks).filter_map(|(host, look)| Some((*host, look.as_ref().err()?)));
        of.map(|(host, why)| format!("host {} {why}", cluster.inventory.hosts[host].name)).collect()
    };
    let gone = absent(&before);
    if !gone.is_empty() {
        let ending = Ending::Failed(gone.join("; "));
        write(&directory, cluster, job, &ending, json!({"started": started}))?;
        return Ok(ending);
    }
    let files = Files {
        script: directory.join("run.sh"),
        stdout: directory.join("results.jsonl"),
        stderr: directory.join("stderr.txt"),
    };
    let text = script::job(&cluster.inventory, &mark, &cluster.words(job));
    let ended = launch(cluster, job, &text, &files)?;
    let swept = sweep(cluster, job, &directory, &mark);
    let after = looks(cluster, job, &directory, "after");

    let mut gone = absent(&after);
    gone.extend(swept.iter().filter_map(|(host, left)| {
        let left = (*left).filter(|left| *left > 0)?;
        Some(format!(
            "{left} processes were still running on host {} and were ended",
            cluster.inventory.hosts[*host].name
        ))
    }));
    let ending = match (ended, record::is_complete(&files.stdout)) {
        (Ok(Ended::Code(code @ (0 | 4 | 5))), true) => Ending::Complete(code),
        (ended, _) => {
            let how = match ended {
                Ok(Ended::Code(code)) => format!("it ended with exit code {code}"),
                Ok(Ended::Killed) => "its launcher was killed".to_owned(),
                Ok(Ended::Deadline) => {
                    format!("it did not end within {}", script::seconds(cluster.limit(job) + BEYOND))
                }
                Ok(Ended::Interrupted) => "interrupted".to_owned(),
                Err(why) => why,
            };
            let words = Some(files.last_words()).filter(|words| !words.is_empty());
            Ending::Failed(
                [Some(how), words].into_iter().flatten().chain(gone.clone()).collect::<Vec<_>>().join("; "),
            )
        }
    };
    let hosts: Vec<Value> = job
        .hosts
        .iter()
        .zip(before.iter().zip(&after))
        .map(|(host, (before, after))| of_host(cluster, *host, (before, after), facts))
        .collect();
    let more = json!({
        "started": started,
        "took_s": (since.elapsed().as_secs_f64() * 10.0).round() / 10.0,
        "mark": mark,
        "command": cluster.words(job),
        "left_behind": swept.iter().filter_map(|(_, left)| *left).sum::<u64>(),
        "network": hosts,
    });
    write(&directory, cluster, job, &ending, more)?;
    Ok(ending)
}

/// Starts it where launchers run, or hands it to a scheduler.
fn launch(
    cluster: &Cluster,
    job: &Job,
    text: &str,
    files: &Files,
) -> Result<std::result::Result<Ended, String>> {
    let limit = cluster.limit(job) + BEYOND;
    match cluster.launcher {
        Launcher::Slurm if std::env::var_os("SLURM_JOB_ID").is_none() => {
            queue::slurm(cluster, job, text, files, limit)
        }
        Launcher::Script => queue::script(cluster, job, text, files, limit),
        Launcher::Mpiexec if cluster.launches_on_hosts() => {
            cluster.place(job.hosts[0]).run(text, files, limit).map(Ok)
        }
        _ => Place::Here.run(text, files, limit).map(Ok),
    }
}

fn of_host(
    cluster: &Cluster,
    host: usize,
    (before, after): (&std::result::Result<Look, String>, &std::result::Result<Look, String>),
    facts: &[Facts],
) -> Value {
    let fact = |name: &str| facts.get(host).and_then(|facts| one(facts, name));
    let mut value = json!({
        "host": cluster.inventory.hosts[host].name,
        "hostname": fact("hostname"),
        "kernel": fact("kernel"),
        "ombx": fact("ombx"),
        "library": fact("library"),
    });
    if let Ok(before) = before {
        value["interface"] = json!(before.interface);
        value["foreign_cpu_percent"] = json!(before.busy_percent);
    }
    if let (Ok(before), Ok(after)) = (before, after) {
        let delta = |a: Option<u64>, b: Option<u64>| Some(b?.saturating_sub(a?));
        value["rx_bytes"] = json!(delta(before.rx, after.rx));
        value["tx_bytes"] = json!(delta(before.tx, after.tx));
    }
    value
}

fn write(directory: &Path, cluster: &Cluster, job: &Job, ending: &Ending, mut more: Value) -> Result<()> {
    let names: Vec<&str> =
        job.hosts.iter().map(|host| cluster.inventory.hosts[*host].name.as_str()).collect();
    more["name"] = json!(job.name);
    more["stage"] = json!(job.stage.name());
    more["hosts"] = json!(names);
    more["ranks"] = json!(job.ranks());
    match ending {
        Ending::Complete(code) => {
            more["outcome"] = json!("complete");
            more["exit_code"] = json!(code);
        }
        Ending::Failed(reason) => {
            more["outcome"] = json!("failed");
            more["reason"] = json!(reason);
        }
    }
    let path = directory.join("job.json");
    let text = serde_json::to_string_pretty(&more).unwrap_or_default();
    fs::write(&path, text + "\n").map_err(Failure::file(path))
}

/// Does the same on every host of a job at the same time.
fn on_all<T: Send>(job: &Job, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = job.hosts.iter().map(|host| scope.spawn(move || work(*host))).collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
    })
}

fn looks(
    cluster: &Cluster,
    job: &Job,
    directory: &Path,
    when: &str,
) -> Vec<std::result::Result<Look, String>> {
    on_all(job, |host| {
        let name = &cluster.inventory.hosts[host].name;
        let files = Files::named(directory, &format!("{name}.{when}"));
        let ended = cluster.place(host).run(&script::probe(&cluster.inventory.hosts[host]), &files, LOOK);
        match ended.map_err(|e| e.to_string())? {
            Ended::Code(0) => Ok(read(&files.text())),
            Ended::Interrupted => Ok(Look::default()),
            Ended::Code(255) | Ended::Deadline => {
                Err(format!("cannot be reached by ssh: {}", files.last_words()))
            }
            other => Err(format!("does not answer as it should ({other:?}): {}", files.last_words())),
        }
    })
}

fn read(text: &str) -> Look {
    let counter = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    let stats: Vec<(u64, u64)> =
        text.lines().filter_map(|line| line.strip_prefix("cpu ")).map(times).collect();
    let busy_percent = match stats.as_slice() {
        [(busy, all), (later_busy, later_all)] if later_all > all => {
            let part = later_busy.saturating_sub(*busy) as f64 / (later_all - all) as f64;
            Some((part * 1000.0).round() / 10.0)
        }
        _ => None,
    };
    let interface = text.lines().find_map(|line| line.strip_prefix("interface ")).map(str::to_owned);
    Look { interface, rx: counter("rx_bytes "), tx: counter("tx_bytes "), busy_percent }
}

/// Busy and all clock ticks of a line of /proc/stat: idle and waiting for disks are not busy.
fn times(line: &str) -> (u64, u64) {
    let ticks: Vec<u64> = line.split_whitespace().take(8).filter_map(|n| n.parse().ok()).collect();
    let all = ticks.iter().sum::<u64>();
    (all - ticks.iter().skip(3).take(2).sum::<u64>(), all)
}

/// Ends what a job left on its hosts, and says how much that was; nothing of a host that cannot be reached.
pub(super) fn sweep(cluster: &Cluster, job: &Job, directory: &Path, mark: &str) -> Vec<(usize, Option<u64>)> {
    let sweep = |place: Place<'_>, name: &str| {
        let files = Files::named(directory, &format!("{name}.sweep"));
        // Also after an interruption, when nothing else is waited for any more.
        let ended = place.run_to_the_end(&script::sweep(mark), &files, LOOK);
        let swept = files.text().lines().find_map(|line| line.strip_prefix("swept ")?.parse().ok());
        swept.filter(|_| matches!(ended, Ok(Ended::Code(0))))
    };
    if !cluster.is_local() && !cluster.launches_on_hosts() {
        // Its launcher was here.
        sweep(Place::Here, "launcher");
    }
    on_all(job, |host| (host, sweep(cluster.place(host), &cluster.inventory.hosts[host].name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_read() {
        let text = "rx_bytes 5\ntx_bytes 7\ncpu  100 0 50 800 50 0 0 0 0 0\ncpu  110 0 50 890 50 0 0 0 0 0\n";
        let look = read(text);
        assert_eq!((look.rx, look.tx, look.busy_percent), (Some(5), Some(7), Some(10.0)));
        assert_eq!(read("").busy_percent, None);
    }
}
