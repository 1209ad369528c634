//! Headless Chromium, controlled over a pipe in the DevTools protocol: loads pages, presses keys, evaluates expressions, and
//! records errors and requests.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Time limit of an answer, far more than one takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Page in a browser process, which is killed when this value is dropped.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: Value,
    next: u64,
    events: Vec<Value>,
    _profile: TempDir,
}

/// Finds the browser of this machine: `$OMBX_BROWSER`, or a Chromium on `PATH`.
pub fn find() -> Option<PathBuf> {
    let named = env::var_os("OMBX_BROWSER").map(PathBuf::from);
    let names = ["chromium", "chromium-browser", "chromium-headless-shell", "google-chrome"];
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = env::split_paths(&path).collect();
    named
        .into_iter()
        .chain(names.iter().flat_map(|n| directories.iter().map(move |d| d.join(n))))
        .find(|p| p.is_file())
}

impl Browser {
    /// Starts a browser with an empty page.
    pub fn start(program: &Path) -> Browser {
        let profile = tempfile::tempdir().expect("a temporary directory");
        // The protocol uses descriptors 3 and 4. A shell sets them, since this program would need unsafe code.
        let mut child = Command::new("sh")
            .args(["-c", r#"exec "$@" 3<&0 4>&1 >/dev/null"#, "sh"])
            .arg(program)
            .args([
                "--headless",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args(["--disable-dev-shm-usage", "--disable-background-networking", "--window-size=1200,900"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("{}: {e}", program.display()));
        let (to, from) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let (send, receive) = mpsc::channel();
        thread::spawn(move || {
            for message in BufReader::new(from).split(0).map_while(Result::ok) {
                let Ok(value) = serde_json::from_slice(&message) else { continue };
                if send.send(value).is_err() {
                    break;
                }
            }
        });
        let mut browser = Browser {
            child,
            to,
            from: receive,
            session: Value::Null,
            next: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attach = json!({"targetId": target, "flatten": true});
        browser.session = browser.call("Target.attachToTarget", attach)["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Loads a file and waits for the load event.
    pub fn load(&mut self, path: &Path) {
        self.events.clear();
        self.call("Page.navigate", json!({"url": format!("file://{}", path.display())}));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.receive();
            self.events.push(event);
        }
    }

    /// Returns the value of a JavaScript expression.
    pub fn look(&mut self, expression: &str) -> Value {
        let answer = self.call("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}));
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Presses and releases a key.
    pub fn press(&mut self, key: &str) {
        let (code, number, text) = match key {
            "Tab" => ("Tab", 9, None),
            "Enter" => ("Enter", 13, Some("\r")),
            " " => ("Space", 32, Some(" ")),
            "ArrowRight" => (key, 39, None),
            "ArrowDown" => (key, 40, None),
            "End" => (key, 35, None),
            _ => panic!("unknown key {key}"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number});
            if let (Some(text), "keyDown") = (text, kind) {
                event["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Emulates a screen of this size in CSS pixels, such as that of a phone.
    pub fn resize(&mut self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": true});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Emulates the preferred theme and the medium: `screen` or `print`.
    pub fn prefer(&mut self, theme: &str, medium: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": theme}]);
        self.call("Emulation.setEmulatedMedia", json!({"media": medium, "features": features}));
    }

    /// Returns every error and warning since the page was loaded.
    pub fn complaints(&self) -> Vec<String> {
        let bad = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => {
                ["error", "warning"].iter().any(|kind| event["params"]["type"] == *kind)
            }
            Some("Log.entryAdded") => {
                ["error", "warning"].iter().any(|level| event["params"]["entry"]["level"] == *level)
            }
            _ => false,
        };
        self.events.iter().filter(bad).map(Value::to_string).collect()
    }

    /// Returns every requested address since the page was loaded, including that of the page.
    pub fn requests(&self) -> Vec<String> {
        let asked = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        asked.filter_map(|event| event["params"]["request"]["url"].as_str().map(str::to_owned)).collect()
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        let sent = self.to.write_all(format!("{message}\0").as_bytes()).and_then(|()| self.to.flush());
        sent.unwrap_or_else(|e| panic!("the browser has ended: {e}"));
        loop {
            let mut answer = self.receive();
            if answer["id"] != self.next {
                self.events.push(answer);
                continue;
            }
            assert!(answer.get("error").is_none(), "{method}: {answer}");
            return answer["result"].take();
        }
    }

    fn receive(&self) -> Value {
        self.from.recv_timeout(LIMIT).unwrap_or_else(|e| panic!("the browser does not answer: {e}"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its child processes are in its process group.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
