//! Lines that a job's processes send to the launching process, beside its records. They never appear in a result file.
//!
//! They are JSON, as records are: launchers pass on lines of text, and some add words of their own.

use std::{
    fs::File,
    io::{self, Write},
};

use ombx_record::{
    error::{Error, Result},
    result::{Interval, Measurement},
};
use serde::{Deserialize, Serialize};

/// Line from rank 0 or from the coordinator to the launching process.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Message {
    /// A benchmark starts, with its number in the order of the launch.
    Benchmark { number: usize, bench: String },
    /// A case starts: its row without samples.
    Starting { row: Box<Measurement> },
    /// The case that has started makes progress.
    Alive,
    /// The process of each rank, by rank.
    Ranks { ranks: Vec<RankProcess> },
    /// What a process of a benchmark says about its progress.
    Status { line: String },
    /// The figure of an interval of a row that is still measured.
    Interval(Interval),
    /// The reason why the job failed.
    Failure { why: String },
    /// Host that has started a rank, from that rank, on standard error.
    Started { host: String },
}

/// Process of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct RankProcess {
    pub pid: u64,
    pub host: String,
}

impl Message {
    pub(crate) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        let line = serde_json::to_string(self)?;
        to.write_all(format!("{line}\n").as_bytes())
    }

    /// Returns `None` for other lines.
    pub(crate) fn parse(line: &str) -> Option<Message> {
        serde_json::from_str(line).ok()
    }
}

/// Returns the error that the launching process no longer reads.
pub(crate) fn broken(why: &io::Error) -> Error {
    Error::fabric(format!("the process that started this job has ended: {why}"))
}

/// Returns the pipe to the launching process and redirects standard output to standard error. What a library prints would otherwise
/// end up inside a record.
pub(crate) fn claim_stdout() -> Result<File> {
    let claimed = rustix::io::dup(rustix::stdio::stdout()).and_then(|pipe| {
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Ok(File::from(pipe))
    });
    claimed.map_err(|e| Error::fabric(format!("standard output: {e}")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ombx_record::result::{ConnectionCounters, Metric};

    use crate::output::relay::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        for message in [
            Message::Benchmark { number: 3, bench: "a.b".into() },
            Message::Starting { row: Box::new(Measurement::new("a.b", "a.b/bytes=8", Metric::Latency, 2)) },
            Message::Alive,
            Message::Ranks { ranks: vec![RankProcess { pid: 4710, host: "n01".into() }] },
            Message::Status { line: "node 2: run 3".into() },
            Message::Interval(Interval {
                bench: "p2p.bw".into(),
                bytes: Some(8),
                time: [Duration::from_secs(1), Duration::from_millis(2500)],
                metric: Metric::Bandwidth,
                median: Some(1.5),
                connections: Some(ConnectionCounters { retransmits: 3, ..ConnectionCounters::default() }),
            }),
            Message::Failure { why: "rank 1 on n01 ended".into() },
            Message::Started { host: "n01".into() },
        ] {
            let mut line = Vec::new();
            message.write(&mut line).unwrap();
            assert_eq!(Message::parse(std::str::from_utf8(&line).unwrap()), Some(message));
        }
        assert_eq!(Message::parse("{\"kind\":\"run\"}"), None);
    }
}
