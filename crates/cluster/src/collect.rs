//! Results of the jobs: link matrix, and counters of hosts.

use std::{path::Path, time::Duration};

use ombx_record::{
    error::{Error, Result},
    link::RETEST,
    result::{Measurement, Outcome, Run},
};

use crate::{
    cluster::Cluster,
    parallel,
    plan::Job,
    record::{Ending, FinishedJob},
    remote::{ScriptEnd, ScriptFiles},
    script,
};

/// Header of `links.csv`, with a line for each direction of each link at each size in each job.
const HEADER: &str = "job,stage,from_host,to_host,from,to,bytes,depth,retest,outcome,reason,check,n,median_ns,sample_min_ns,mb_per_s,trust";
/// Number of columns.
const COLUMNS: usize = 17;

/// Returns the text of `links.csv`. A failed pair has a line for each direction without figures.
pub(crate) fn matrix(cluster: &Cluster, jobs: &[FinishedJob]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    write_matrix(&mut writer, cluster, jobs).map_err(|e| Error::storage(format!("links.csv: {e}")))?;
    let bytes = writer.into_inner().map_err(|e| Error::storage(format!("links.csv: {e}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn write_matrix(
    writer: &mut csv::Writer<Vec<u8>>,
    cluster: &Cluster,
    jobs: &[FinishedJob],
) -> csv::Result<()> {
    writer.write_record(HEADER.split(','))?;
    for FinishedJob { job, ending } in jobs {
        for run in cluster.record.runs(job) {
            for row in run.each_row().filter(|row| row.axes.contains_key("from")) {
                writer.write_record(line(job, &run.run, &row))?;
            }
        }
        if let (Ending::Failed { reason }, [a, b]) = (ending, &*job.hosts) {
            for (from, to) in [(*a, *b), (*b, *a)] {
                let mut line = [""; COLUMNS];
                (line[0], line[1]) = (&job.name, job.stage.name());
                (line[2], line[3]) = (cluster.host_name(from), cluster.host_name(to));
                (line[9], line[10]) = ("failed", reason);
                writer.write_record(line)?;
            }
        }
    }
    Ok(())
}

/// Returns the columns of a row.
fn line(job: &Job, run: &Run, row: &Measurement) -> [String; COLUMNS] {
    let axis = |name: &str| row.axes.get(name).cloned().unwrap_or_default();
    let host = |name: &str| {
        let place = axis(name).parse::<usize>().ok().and_then(|rank| run.places.get(rank));
        place.map_or(String::new(), |place| place.host.clone())
    };
    let (outcome, reason) = match &row.outcome {
        Outcome::Ok => ("ok", ""),
        Outcome::Skipped(reason) => ("skipped", reason.as_str()),
        Outcome::Failed(reason) => ("failed", reason.as_str()),
    };
    let summary = row.summary.as_ref();
    // Of a link in a round the median is known, and nothing of its samples.
    let of_samples = summary.filter(|_| !row.samples.is_empty());
    let codes: Vec<&str> = row.trust.iter().map(|notice| notice.code.name()).collect();
    [
        job.name.clone(),
        job.stage.name().into(),
        host("from"),
        host("to"),
        axis("from"),
        axis("to"),
        text(row.bytes),
        text(row.depth),
        axis(RETEST),
        outcome.into(),
        reason.into(),
        row.check.name().into(),
        text(of_samples.map(|s| s.n)),
        text(summary.map(|s| s.median)),
        text(of_samples.map(|s| s.min)),
        text(row.mb_per_s().map(|rate| rate.median)),
        codes.join(";"),
    ]
}

fn text(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Time limit of the script.
const LIMIT: Duration = Duration::from_secs(15);

/// Counters of a host at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) interface: Option<String>,
    pub(crate) rx_bytes: Option<u64>,
    pub(crate) tx_bytes: Option<u64>,
    /// CPU time in use, in percent of all CPUs, over a fifth of a second.
    pub(crate) busy_percent: Option<f64>,
}

/// Reads the counters of each host of a job; an error says why a host gave none.
pub(crate) fn read_counters(
    cluster: &Cluster,
    job: &Job,
    directory: &Path,
    when: &str,
) -> Vec<std::result::Result<Counters, String>> {
    parallel::map(job.hosts.iter().copied(), |host| {
        let name = cluster.host_name(host);
        let files = ScriptFiles::named(directory, &format!("{name}.{when}"));
        let script = script::counters(&cluster.inventory.hosts[host]);
        let because = |reason: &str| Err(format!("host {name} {reason}: {}", files.error()));
        match cluster
            .machine(host)
            .run(&script, &files, LIMIT, parallel::requested)
            .map_err(|e| e.to_string())?
        {
            ScriptEnd::Code(0) => Ok(parse(&files.text())),
            ScriptEnd::Interrupted => Ok(Counters::default()),
            ScriptEnd::Endless => because("prints without end"),
            ScriptEnd::Code(255) | ScriptEnd::TimedOut => because("cannot be reached by ssh"),
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
