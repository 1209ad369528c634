//! Counters of a host around a job: bytes of its interface and CPU load.

use std::{path::Path, time::Duration};

use crate::{
    cluster::Cluster,
    interrupt, parallel,
    plan::Job,
    remote::{Ended, ScriptFiles},
    script,
};

/// Time limit of the script.
const LIMIT: Duration = Duration::from_secs(15);

/// Counters of a host at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    pub(super) interface: Option<String>,
    pub(super) rx_bytes: Option<u64>,
    pub(super) tx_bytes: Option<u64>,
    /// CPU time in use, in percent of all CPUs, over a fifth of a second.
    pub(super) busy_percent: Option<f64>,
}

/// Reads the counters of each host of a job; an error says why a host gave none.
pub(super) fn read(
    cluster: &Cluster,
    job: &Job,
    directory: &Path,
    when: &str,
) -> Vec<Result<Counters, String>> {
    parallel::map(job.hosts.iter().copied(), |host| {
        let name = cluster.host_name(host);
        let files = ScriptFiles::named(directory, &format!("{name}.{when}"));
        let script = script::counters(&cluster.inventory.hosts[host]);
        let because = |reason: &str| Err(format!("host {name} {reason}: {}", files.error()));
        match cluster
            .place(host)
            .run(&script, &files, LIMIT, interrupt::requested)
            .map_err(|e| e.to_string())?
        {
            Ended::Code(0) => Ok(parse(&files.text())),
            Ended::Interrupted => Ok(Counters::default()),
            Ended::Endless => because("prints without end"),
            Ended::Code(255) | Ended::TimedOut => because("cannot be reached by ssh"),
            other => because(&format!("cannot read its counters ({other})")),
        }
    })
}

fn parse(text: &str) -> Counters {
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let count = |name: &str| value(name)?.parse().ok();
    let times: Vec<(u64, u64)> =
        text.lines().filter_map(|line| line.strip_prefix("cpu ")).map(cpu_times).collect();
    let busy_percent = match times.as_slice() {
        [(busy, all), (later_busy, later_all)] if later_all > all => {
            let part = later_busy.saturating_sub(*busy) as f64 / (later_all - all) as f64;
            Some((part * 1000.0).round() / 10.0)
        }
        _ => None,
    };
    let interface = value("interface ").map(str::to_owned);
    Counters { interface, rx_bytes: count("rx_bytes "), tx_bytes: count("tx_bytes "), busy_percent }
}

/// Returns busy and all clock ticks of a line of `/proc/stat`. Idle and waiting for disks (fields 4 and 5) are not busy.
fn cpu_times(line: &str) -> (u64, u64) {
    let ticks: Vec<u64> = line.split_whitespace().take(8).filter_map(|n| n.parse().ok()).collect();
    let all = ticks.iter().sum::<u64>();
    (all - ticks.iter().skip(3).take(2).sum::<u64>(), all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_parsed() {
        let text = "rx_bytes 5\ntx_bytes 7\ncpu  100 0 50 800 50 0 0 0 0 0\ncpu  110 0 50 890 50 0 0 0 0 0\n";
        let counters = parse(text);
        assert_eq!(
            (counters.rx_bytes, counters.tx_bytes, counters.busy_percent),
            (Some(5), Some(7), Some(10.0))
        );
        assert_eq!(parse("").busy_percent, None);
    }
}
