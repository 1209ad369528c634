//! Link matrix: `links.csv`, with a line for each direction of each link at each size in each job.

use ombx_core::{
    error::{Error, Result},
    result::{Measurement, Outcome, Run},
};
use ombx_results::verdict::RETEST;

use crate::{
    cluster::Cluster,
    plan::Job,
    record::{Ending, FinishedJob},
};

/// Header of the file.
const HEADER: &str = "job,stage,from_host,to_host,from,to,bytes,depth,retest,outcome,reason,check,n,median_us,min_us,mb_per_s,trust";
/// Number of columns.
const COLUMNS: usize = 17;

/// Returns the text of `links.csv`. A failed pair has a line for each direction without figures.
pub(crate) fn matrix(cluster: &Cluster, jobs: &[FinishedJob]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    write(&mut writer, cluster, jobs).map_err(|e| Error::storage(format!("links.csv: {e}")))?;
    let bytes = writer.into_inner().map_err(|e| Error::storage(format!("links.csv: {e}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn write(writer: &mut csv::Writer<Vec<u8>>, cluster: &Cluster, jobs: &[FinishedJob]) -> csv::Result<()> {
    writer.write_record(HEADER.split(','))?;
    for FinishedJob { job, ending } in jobs {
        for run in cluster.record.runs(job) {
            for row in run.rows.iter().filter(|row| row.axes.contains_key("from")) {
                writer.write_record(line(job, &run.run, row))?;
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
    let microseconds = |ns: Option<f64>| text(ns.map(|ns| ns / 1e3));
    let codes: Vec<&str> = row.trust.iter().map(|notice| notice.code.as_str()).collect();
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
        text(summary.map(|s| s.n)),
        microseconds(summary.map(|s| s.median)),
        microseconds(summary.map(|s| s.min)),
        text(row.mb_per_s().map(|rate| rate.median)),
        codes.join(";"),
    ]
}

fn text(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
