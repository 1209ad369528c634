//! `ombx export`: serves the last results of a directory to Prometheus, by HTTP.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs},
    path::PathBuf,
    thread,
    time::{Duration, SystemTime},
};

use clap::Args;
use ombx_core::{
    error::{Error, Result},
    system::clock::Since,
};
use ombx_results::{
    history::{Index, Store, newest},
    render::{OpenMetrics, Renderer},
};

use crate::{output::terminal::reason, result_file::KnownRuns, stderr};

/// Maximum number of files whose results are served, the newest first.
const MOST_FILES: usize = 64;
/// Longest text in bytes. The oldest files that do not fit are left out.
const LONGEST_TEXT: usize = 64 << 20;
/// Longest request in bytes. Prometheus sends some hundred.
const LONGEST_REQUEST: usize = 8 << 10;
/// Time of a client for its request. The next client waits as long.
const REQUEST: Duration = Duration::from_secs(2);
/// Time of a client for reading the answer: that of Prometheus for a target, if its configuration has no other.
const ANSWER: Duration = Duration::from_secs(10);
/// Maximum wait for a client that closes the connection, and the bytes that are read until then.
const CLOSE: Duration = Duration::from_millis(500);
const MOST_UNREAD: usize = 64 << 10;
/// Pause after a connection that the system refused.
const PAUSE: Duration = Duration::from_secs(1);
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
    /// Address or name, and port, that Prometheus reads; of a name, the first address counts; port 0: any free port. There is no password: another address than that of loopback shows
    /// names of hosts and their results to everybody who reaches it
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:9777", value_parser = parse_address)]
    listen: SocketAddr,
}

/// Parses an address, or a name that has one, and a port.
fn parse_address(text: &str) -> std::result::Result<SocketAddr, String> {
    let found = text
        .to_socket_addrs()
        .map_err(|e| format!("{}: give an address and a port, such as 127.0.0.1:9777", reason(&e)))?;
    found.into_iter().next().ok_or_else(|| "this name has no address: give 127.0.0.1:9777".to_owned())
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
        match listener.accept() {
            // A client that has gone is no reason to end.
            Ok((client, _)) => drop(answer(client, &mut results)),
            Err(e) => {
                results.complaints.say([format!("no connection: {}", reason(&e))].into());
                thread::sleep(PAUSE);
            }
        }
    }
}

/// What is wrong, which is printed once and not at each request.
#[derive(Default)]
struct Complaints(BTreeSet<String>);

impl Complaints {
    /// Prints what was not wrong the last time.
    fn say(&mut self, now: BTreeSet<String>) {
        for new in now.difference(&self.0) {
            stderr_line!("ombx: {}", stderr::printable(new));
        }
        self.0 = now;
    }
}

/// A result file and what tells that it was changed.
type Stamp = (PathBuf, u64, Option<SystemTime>);

/// The last results of a directory, as text for Prometheus.
#[derive(Default)]
struct Results {
    directory: PathBuf,
    /// Text of the index of the directory; empty before the first change. The directory is only read.
    index: Vec<u8>,
    /// Files of the text.
    files: Vec<Stamp>,
    text: String,
    /// What is wrong with the files of the text.
    of_text: BTreeSet<String>,
    complaints: Complaints,
}

impl Results {
    /// Returns the text. Files are read again after a change.
    fn text(&mut self) -> io::Result<&str> {
        let store = if self.index.is_empty() {
            Store::open(&self.directory)?
        } else {
            Store::with_index(&self.directory, Index::parse(&self.index))?
        };
        let files: Vec<Stamp> = newest(&store.results, &store.paths)
            .into_iter()
            .map(|path| stamp(self.directory.join(path)))
            .collect();
        if files != self.files || self.text.is_empty() {
            self.read(files)?;
        }
        self.index = store.index.unwrap_or_else(|| std::mem::take(&mut self.index));
        let refused = store.refused.iter().map(|(path, why)| format!("not served: {path}: {why}"));
        self.complaints.say(refused.chain(self.of_text.iter().cloned()).collect());
        Ok(&self.text)
    }

    /// Reads the files of the text, the newest of which is the first. Those that cannot be read are tried again with the next request.
    fn read(&mut self, mut files: Vec<Stamp>) -> io::Result<()> {
        let all = files.len();
        let mut served = all.min(MOST_FILES);
        loop {
            let mut unread = BTreeMap::new();
            let mut gauges = OpenMetrics::default();
            // A case that several files have gets the value of the newest one.
            for (path, ..) in files[..served].iter().rev() {
                match KnownRuns::default().read_found(path) {
                    Ok(file) => gauges.result(&file.runs),
                    Err(e) => drop(unread.insert(path.clone(), format!("not served: {e}"))),
                }
            }
            let mut text = Vec::new();
            gauges.finish(&mut text)?;
            if text.len() > LONGEST_TEXT {
                served /= 2;
                continue;
            }
            self.of_text = unread.values().cloned().collect();
            if served < all {
                self.of_text.insert(format!(
                    "the oldest {} of {all} files are not served: serve directories of this one",
                    all - served
                ));
            }
            files.retain(|(path, ..)| !unread.contains_key(path));
            self.files = files;
            self.text = String::from_utf8_lossy(&text).into_owned();
            return Ok(());
        }
    }
}

fn stamp(path: PathBuf) -> Stamp {
    let about = fs::symlink_metadata(&path).ok();
    let length = about.as_ref().map_or(0, fs::Metadata::len);
    (path, length, about.and_then(|about| about.modified().ok()))
}

/// Reads a request and answers it.
fn answer(mut client: TcpStream, results: &mut Results) -> io::Result<()> {
    let request = request(&mut client)?;
    let plain = |status, text: &str| (status, PLAIN, Cow::<str>::Owned(text.to_owned()));
    let (status, kind, body) = match target(&request) {
        Some(("GET" | "HEAD", METRICS)) => match results.text() {
            Ok(text) => {
                let kind = if wants_open_metrics(&request) { OPEN_METRICS } else { PLAIN };
                ("200 OK", kind, Cow::from(text))
            }
            Err(e) => {
                let why = format!("the directory cannot be read: {}", reason(&e));
                results.complaints.say([why.clone()].into());
                plain("500 Internal Server Error", &format!("{why}\n"))
            }
        },
        Some(("GET" | "HEAD", _)) => plain("404 Not Found", "the results are at /metrics\n"),
        Some(_) => plain("405 Method Not Allowed", "only GET is answered\n"),
        None => plain("400 Bad Request", "this is no request of HTTP\n"),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let since = Since::now();
    send(&mut client, head.as_bytes(), since)?;
    if !request.starts_with("HEAD ") {
        send(&mut client, body.as_bytes(), since)?;
    }
    close(client)
}

/// Sends bytes of an answer that began at this time.
fn send(client: &mut TcpStream, mut bytes: &[u8], since: Since) -> io::Result<()> {
    while !bytes.is_empty() {
        client.set_write_timeout(Some(left(ANSWER, since)?))?;
        match client.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Closes a connection. What is unread then would make the system reset it, and the client could lose the answer.
fn close(mut client: TcpStream) -> io::Result<()> {
    client.shutdown(Shutdown::Write)?;
    let since = Since::now();
    let mut unread = 0;
    let mut part = [0; 1024];
    while unread < MOST_UNREAD {
        client.set_read_timeout(Some(left(CLOSE, since)?))?;
        match client.read(&mut part)? {
            0 => break,
            count => unread += count,
        }
    }
    Ok(())
}

/// Returns the rest of a limit; an error if nothing is left.
fn left(limit: Duration, since: Since) -> io::Result<Duration> {
    let left = limit.saturating_sub(since.elapsed());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Reads the lines before the blank one.
fn request(client: &mut TcpStream) -> io::Result<String> {
    let since = Since::now();
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < LONGEST_REQUEST {
        client.set_read_timeout(Some(left(REQUEST, since)?))?;
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
    let is_complete = words.next()?.starts_with("HTTP/1.") && request.contains("\r\n\r\n");
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
