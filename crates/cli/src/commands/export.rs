//! `ombx export`: serves the last results of a directory to Prometheus, by HTTP.

use std::{
    fs,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    time::{Duration, SystemTime},
};

use clap::Args;
use ombx_core::{
    error::{Error, Result},
    system::clock::Since,
};
use ombx_results::{
    history::{Store, newest, write_index},
    render::{OpenMetrics, Renderer},
};

use crate::{output::terminal::reason, result_file::KnownRuns, stderr};

/// Maximum number of files whose results are served: those with the newest result of each benchmark on the same hosts.
const MOST_FILES: usize = 64;
/// Longest request in bytes. Prometheus sends some hundred.
const LONGEST_REQUEST: usize = 8 << 10;
/// Time of a client for its request, and for the answer. The next client waits as long.
const CLIENT: Duration = Duration::from_secs(2);
/// End of a request.
const END: &str = "\r\n\r\n";
/// Path of the figures.
const METRICS: &str = "/metrics";
/// Type of the text, which is also valid in the format that OpenMetrics replaces.
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Directory with result files (*.jsonl), which may be in directories of it
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Address and port that Prometheus reads; port 0: any free port. There is no password: another address than that of loopback shows
    /// names of hosts and their results to everybody who reaches it
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:9777")]
    listen: SocketAddr,
}

/// Serves until a signal ends it.
pub(crate) fn export(args: &ExportArgs) -> Result<u8> {
    let mut results = Results { directory: args.directory.clone(), ..Results::default() };
    results.text().map_err(|e| {
        Error::usage(format!(
            "cannot read the directory {}: {e}. Give a directory with result files",
            args.directory.display()
        ))
    })?;
    let cannot = |e: io::Error| {
        Error::usage(format!("cannot listen on {}: {}. Give another --listen", args.listen, reason(&e)))
    };
    let listener = TcpListener::bind(args.listen).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let directory = args.directory.display().to_string();
    stderr_line!("ombx: results of {} on http://{address}{METRICS}", stderr::printable(&directory));
    loop {
        // A client that has gone is no reason to end.
        if let Ok((client, _)) = listener.accept() {
            let _ = answer(client, &mut results);
        }
    }
}

/// A result file and what tells that it was changed.
type Stamp = (PathBuf, u64, Option<SystemTime>);

/// The last results of a directory, as text for Prometheus.
#[derive(Default)]
struct Results {
    directory: PathBuf,
    /// Files of the text.
    files: Vec<Stamp>,
    text: String,
}

impl Results {
    /// Returns the text. Files are read again after a change.
    fn text(&mut self) -> io::Result<&str> {
        let store = Store::open(&self.directory)?;
        if let Some(index) = &store.index {
            // A directory that cannot be written has no index.
            let _ = write_index(&self.directory, index);
        }
        let newest = newest(&store.results, &store.paths).into_iter().take(MOST_FILES);
        let files: Vec<Stamp> = newest.map(|path| stamp(self.directory.join(path))).collect();
        if files != self.files || self.text.is_empty() {
            let mut gauges = OpenMetrics::default();
            // A case that several files have gets the value of the newest one.
            for (path, ..) in files.iter().rev() {
                match KnownRuns::default().read_found(path) {
                    Ok(file) => gauges.result(&file.runs),
                    Err(e) => stderr_line!("ombx: not served: {}", stderr::printable(&e.to_string())),
                }
            }
            let mut text = Vec::new();
            gauges.finish(&mut text)?;
            (self.files, self.text) = (files, String::from_utf8_lossy(&text).into_owned());
        }
        Ok(&self.text)
    }
}

fn stamp(path: PathBuf) -> Stamp {
    let about = fs::symlink_metadata(&path).ok();
    let length = about.as_ref().map_or(0, fs::Metadata::len);
    (path, length, about.and_then(|about| about.modified().ok()))
}

/// Reads a request and answers it.
fn answer(mut client: TcpStream, results: &mut Results) -> io::Result<()> {
    client.set_write_timeout(Some(CLIENT))?;
    let request = request(&mut client)?;
    let (status, kind, body) = match target(&request) {
        Some(("GET" | "HEAD", METRICS)) => match results.text() {
            Ok(text) => ("200 OK", if wants_open_metrics(&request) { OPEN_METRICS } else { PLAIN }, text),
            Err(_) => ("500 Internal Server Error", PLAIN, "the directory cannot be read\n"),
        },
        Some(("GET" | "HEAD", _)) => ("404 Not Found", PLAIN, "the results are at /metrics\n"),
        Some(_) => ("405 Method Not Allowed", PLAIN, "only GET is answered\n"),
        None => ("400 Bad Request", PLAIN, "this is no request of HTTP\n"),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    client.write_all(head.as_bytes())?;
    if !request.starts_with("HEAD ") {
        client.write_all(body.as_bytes())?;
    }
    if !request.contains(END) {
        // Bytes that were not read would reset the connection before the client has the answer.
        client.shutdown(Shutdown::Write)?;
        client.read(&mut [0; LONGEST_REQUEST])?;
    }
    Ok(())
}

/// Reads the lines before the blank one.
fn request(client: &mut TcpStream) -> io::Result<String> {
    let (since, mut request, mut part) = (Since::now(), Vec::new(), [0; 1024]);
    while !request.windows(END.len()).any(|end| end == END.as_bytes()) && request.len() < LONGEST_REQUEST {
        let left = CLIENT.saturating_sub(since.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut part)? {
            0 => break,
            count => request.extend_from_slice(&part[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&request).into_owned())
}

/// Returns the method and the path of a request, without what follows a question mark.
fn target(request: &str) -> Option<(&str, &str)> {
    let mut words = request.lines().next()?.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let is_complete = words.next()?.starts_with("HTTP/1.") && request.contains(END);
    is_complete.then_some((method, path.split('?').next()?))
}

fn wants_open_metrics(request: &str) -> bool {
    let accept = request.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("accept").then_some(value)
    });
    accept.is_some_and(|value| value.contains("application/openmetrics-text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_requests_have_a_target() {
        assert_eq!(target("GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n"), Some(("GET", "/metrics")));
        for broken in
            ["", "GET\r\n\r\n", "GET /metrics\r\n\r\n", "GET /metrics HTTP/1.1\r\n", "\u{16}\u{3}\u{1}"]
        {
            assert_eq!(target(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn the_format_is_the_one_that_the_client_accepts() {
        let with = |header: &str| wants_open_metrics(&format!("GET / HTTP/1.1\r\n{header}\r\n\r\n"));
        assert!(with("accept: application/openmetrics-text;version=1.0.0,text/plain"));
        assert!(!with("Accept: text/plain") && !with("Host: application/openmetrics-text"));
    }
}
