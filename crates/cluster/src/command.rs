//! Command line of a job.

use crate::{
    cluster::{Cluster, Launcher},
    plan::Job,
    script::seconds,
};

/// Returns the command line that runs ombx for a job.
pub(crate) fn of(cluster: &Cluster, job: &Job) -> Vec<String> {
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
