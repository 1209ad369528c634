//! Lines that a job's processes send to the launching process, beside its records. They never appear in a result file.

use std::{
    fs::File,
    io::{self, Write},
    time::Duration,
};

use ombx_core::{
    benchmark::{ConnectionCounters, Metric},
    error::{Error, Result},
    measure::intervals::Interval,
};
use serde_json::{Value, json};

/// Line from rank 0 or from the coordinator to the launching process.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    /// A case starts.
    Progress { bench: String, bytes: u64 },
    /// Process ID and host of each rank.
    Ranks(Vec<(u64, String)>),
    /// What a process of a benchmark says about its progress.
    Status(String),
    /// The figure of an interval of a row that is still measured.
    Interval(Interval),
    /// The reason why the job failed.
    Failure(String),
    /// Host that has started a rank, from that rank, on standard error.
    Started(String),
}

impl Message {
    pub(crate) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        let line = match self {
            Message::Progress { bench, bytes } => json!({"kind": "progress", "bench": bench, "bytes": bytes}),
            Message::Ranks(ranks) => json!({"kind": "ranks", "ranks": ranks}),
            Message::Status(line) => json!({"kind": "status", "line": line}),
            Message::Interval(Interval { bench, bytes, time, metric, median, connections }) => json!({
                "kind": "interval", "bench": bench, "bytes": bytes, "us": time.map(|time| time.as_micros() as u64),
                "is_rate": *metric == Metric::Bandwidth, "median": median,
                "retransmits": connections.map(|counted| counted.retransmits),
                "cwnd_bytes": connections.map(|counted| counted.cwnd_bytes),
            }),
            Message::Failure(why) => json!({"kind": "failure", "why": why}),
            Message::Started(host) => json!({"kind": "started", "host": host}),
        };
        to.write_all(format!("{line}\n").as_bytes())
    }

    /// Returns `None` for other lines.
    pub(crate) fn parse(line: &str) -> Option<Message> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        match value["kind"].as_str()? {
            "progress" => Some(Message::Progress { bench: text("bench")?, bytes: value["bytes"].as_u64()? }),
            "ranks" => serde_json::from_value(value["ranks"].clone()).ok().map(Message::Ranks),
            "status" => text("line").map(Message::Status),
            "interval" => {
                let us = |at: usize| value["us"][at].as_u64().map(Duration::from_micros);
                let connections = value["retransmits"].as_u64().zip(value["cwnd_bytes"].as_u64());
                Some(Message::Interval(Interval {
                    bench: text("bench")?,
                    bytes: value["bytes"].as_u64(),
                    time: [us(0)?, us(1)?],
                    metric: if value["is_rate"].as_bool()? { Metric::Bandwidth } else { Metric::Latency },
                    median: value["median"].as_f64(),
                    connections: connections
                        .map(|(retransmits, cwnd_bytes)| ConnectionCounters { retransmits, cwnd_bytes }),
                }))
            }
            "failure" => text("why").map(Message::Failure),
            "started" => text("host").map(Message::Started),
            _ => None,
        }
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
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        for message in [
            Message::Progress { bench: "p2p.latency".into(), bytes: 8 },
            Message::Ranks(vec![(4710, "n01".into())]),
            Message::Status("node 2: run 3".into()),
            Message::Interval(Interval {
                bench: "p2p.bw".into(),
                bytes: Some(8),
                time: [Duration::from_secs(1), Duration::from_millis(2500)],
                metric: Metric::Bandwidth,
                median: Some(1.5),
                connections: Some(ConnectionCounters { retransmits: 3, cwnd_bytes: 65483 }),
            }),
            Message::Failure("rank 1 on n01 ended".into()),
            Message::Started("n01".into()),
        ] {
            let mut line = Vec::new();
            message.write(&mut line).unwrap();
            assert_eq!(Message::parse(std::str::from_utf8(&line).unwrap()), Some(message));
        }
        assert_eq!(Message::parse("{\"kind\":\"run\"}"), None);
    }
}
