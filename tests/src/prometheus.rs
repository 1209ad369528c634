//! A Prometheus server with the rules of `packaging/prometheus`, and a node exporter that reads the files of one directory.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use ombx_host::since::Since;
use serde_json::Value;

use crate::{Files, missing};

/// Programs of both servers, as Debian names them.
const PROGRAMS: [&str; 2] = ["prometheus", "prometheus-node-exporter"];
/// Alert rules and recording rules.
const RULES: &str = include_str!("../../packaging/prometheus/ombx.rules.yml");
/// Time limit of every state of the servers. It is a hundred times the interval of scrapes and evaluations.
const LIMIT: Duration = Duration::from_secs(50);
/// Interval of polling.
const POLL: Duration = Duration::from_millis(100);
/// Maximum number of pairs of ports that are tried.
const TRIES: u32 = 5;

/// Both servers. Dropping it ends them.
pub struct Prometheus {
    files: Files,
    port: u16,
    servers: Vec<Child>,
}

impl Prometheus {
    /// Starts both servers on free ports of this host.
    ///
    /// # Errors
    /// The reason if a program is not installed.
    pub fn start() -> Result<Self, String> {
        let absent = missing(&PROGRAMS);
        if !absent.is_empty() {
            let names = absent.join(" ");
            return Err(format!(
                "{names} not installed (Debian: apt-get install --no-install-recommends {names})"
            ));
        }
        // Another program may take a port before a server does, which then ends.
        let tried = (0..TRIES).map(|_| Self::on(free_ports())).find_map(Self::answering);
        Ok(tried.expect("servers that do not end at once"))
    }

    /// Starts Prometheus and the exporter on these ports.
    fn on([port, exporter]: [u16; 2]) -> Self {
        let mut this = Self { files: Files::default(), port, servers: Vec::new() };
        let metrics = this.files.path("metrics");
        fs::create_dir(&metrics).expect("a directory");
        this.server(
            PROGRAMS[1],
            &[
                "--collector.disable-defaults",
                "--collector.textfile",
                &format!("--collector.textfile.directory={}", metrics.display()),
                &format!("--web.listen-address=127.0.0.1:{exporter}"),
            ],
        );
        this.files.write("ombx.rules.yml", RULES);
        let configuration = format!(
            "global: {{scrape_interval: 500ms, evaluation_interval: 500ms}}\n\
             rule_files: [ombx.rules.yml]\n\
             scrape_configs:\n- {{job_name: node, static_configs: [{{targets: ['127.0.0.1:{exporter}']}}]}}\n"
        );
        let configuration = this.files.write("prometheus.yml", configuration);
        this.server(
            PROGRAMS[0],
            &[
                &format!("--config.file={}", configuration.display()),
                &format!("--storage.tsdb.path={}", this.files.path("data").display()),
                &format!("--web.listen-address=127.0.0.1:{port}"),
                "--log.level=warn",
            ],
        );
        this
    }

    /// Waits until the servers answer. Returns nothing if one of them has ended.
    fn answering(mut self) -> Option<Self> {
        let since = Since::now();
        while self.value("up{job=\"node\"}").as_deref() != Some("1") {
            if self.servers.iter_mut().any(|server| server.try_wait().is_ok_and(|ended| ended.is_some())) {
                return None;
            }
            assert!(since.elapsed() < LIMIT, "the servers do not answer\n{}", self.logs());
            thread::sleep(POLL);
        }
        Some(self)
    }

    /// Returns the path for `--openmetrics` that the node exporter reads.
    pub fn metrics(&self) -> PathBuf {
        self.files.path("metrics/ombx.prom")
    }

    /// Returns the alerts of this name that are firing, as the HTTP API describes them.
    pub fn firing(&self, name: &str) -> Vec<Value> {
        let answer = self.get("/api/v1/alerts").unwrap_or_default();
        let alerts = answer["data"]["alerts"].as_array().cloned().unwrap_or_default();
        let is_firing = |alert: &Value| alert["labels"]["alertname"] == name && alert["state"] == "firing";
        alerts.into_iter().filter(is_firing).collect()
    }

    /// Returns the value of the first series that an expression of PromQL selects.
    pub fn value(&self, expression: &str) -> Option<String> {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = self.get(&format!("/api/v1/query?query={encoded}"))?;
        Some(answer["data"]["result"][0]["value"][1].as_str()?.to_owned())
    }

    /// Waits until a condition holds. Panics after the time limit.
    #[track_caller]
    pub fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let since = Since::now();
        while !condition(self) {
            if since.elapsed() > LIMIT {
                let alerts = self.get("/api/v1/alerts");
                panic!("this did not happen: {what}\nalerts: {alerts:?}\n{}", self.logs());
            }
            thread::sleep(POLL);
        }
    }

    fn server(&mut self, program: &str, words: &[&str]) {
        let log = File::create(self.log(program)).expect("a file for messages");
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.servers.push(command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}")));
    }

    fn logs(&self) -> String {
        PROGRAMS.map(|name| fs::read_to_string(self.log(name)).unwrap_or_default()).concat()
    }

    fn log(&self, program: &str) -> PathBuf {
        self.files.path(&format!("{program}.log"))
    }

    /// Asks the HTTP API. Nothing if the server does not answer yet.
    fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok()?;
        stream.set_read_timeout(Some(LIMIT)).ok()?;
        // Version 1.0: the answer is not sent in chunks and ends with the connection.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// Changes the time of a file to `age` before now.
pub fn make_old(file: &Path, age: Duration) {
    let open = File::options().write(true).open(file).expect("a file");
    let changed = open.metadata().and_then(|data| data.modified()).expect("a time");
    open.set_modified(changed - age).expect("a time can be set");
}

/// Returns ports on which nobody listens.
fn free_ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}
