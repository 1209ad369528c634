//! Tests of two ends that are started by hand: `ombx sockets serve`, and `ombx run --connect`.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::{SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use ombx_host::since::Since;
use ombx_record::result::Check;
use ombx_tests::{Files, Job, kept::Kept, mpi, process::Mark, results, sockets::in_the_middle};
use rustix::{
    net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with},
    process::{Pid, Signal, kill_process},
};

/// A server that has not done after this time what a test expects of it hangs.
const HANGS: Duration = Duration::from_secs(300);

/// A running server with a file for its token.
struct Server {
    child: Child,
    port: u16,
    greeting: String,
    mark: Mark,
    files: Files,
}

impl Server {
    fn start(arguments: &str) -> Server {
        let files = Files::default();
        let mark = Mark { variable: "OMBX_TEST_SERVER", value: files.root().display().to_string() };
        let mut command = Command::new(mpi::ombx());
        command.args(["sockets", "serve", "--bind", "127.0.0.1", "--port", "0"]);
        command
            .args(arguments.replace("TOKEN", &files.path("token").display().to_string()).split_whitespace());
        command
            .env(mark.variable, &mark.value)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("a server");
        let mut greeting = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        for _ in 0..2 {
            lines.read_line(&mut greeting).unwrap();
        }
        let port = greeting.split("port ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
        let port = port.unwrap_or_else(|| panic!("no port: {greeting}"));
        Server { child, port, greeting, mark, files }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Returns the options of a client.
    fn options(&self) -> String {
        format!("--connect 127.0.0.1:{} --token-file {}", self.port, self.files.path("token").display())
    }

    /// Returns the number of ranks that the server runs.
    fn ranks(&self) -> usize {
        self.mark.processes().len() - 1
    }

    fn until_no_rank_runs(&self) {
        let since = Since::now();
        while self.ranks() > 0 {
            assert!(since.elapsed() < HANGS, "a rank of the server still runs");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end of the server. Returns its exit code and what it has printed on standard error.
    fn end(mut self) -> (Option<i32>, String) {
        let since = Since::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(since.elapsed() < HANGS, "the server does not end");
            thread::sleep(Duration::from_millis(20));
        }
        let mut text = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        (self.child.wait().unwrap().code(), text)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.mark.kill();
        let _ = self.child.wait();
    }
}

/// Options of short rows.
const SHORT: &str = "sockets.latency sockets.bw --sizes 8,4K --iterations 6 --window 4 --format csv";

#[test]
fn both_ends_measure_as_one_job_does() {
    let server = Server::start("--token-file TOKEN --once");
    let token = fs::metadata(server.files.path("token")).expect("a token");
    assert_eq!(token.permissions().mode() & 0o777, 0o600, "others may read the token");
    assert!(server.greeting.contains("ombx run 'sockets.*' --connect 127.0.0.1:"), "{}", server.greeting);
    let kept = Kept::new();
    let line = format!("{SHORT} --transport tcp,udp --launches 2 {}", server.options());
    let done = kept.job(&line).run().expect(0);
    done.leaves_nothing();
    let runs = results::runs_of(&kept.out());
    assert_eq!(runs.len(), 2);
    for run in &runs {
        assert!(run.rows.len() == 8 && run.rows.iter().all(|row| row.check == Check::Passed), "{done}");
        assert_eq!(run.run.places.len(), 2);
        assert!(run.run.argv.iter().any(|word| word == "--connect"), "{:?}", run.run.argv);
    }
    // The file has what the user typed, and no secret.
    let text = fs::read_to_string(kept.out()).expect("results");
    let token = fs::read_to_string(server.files.path("token")).expect("a token");
    assert!(!text.contains(token.trim()), "the token is in the results");
    let (code, log) = server.end();
    assert!(code == Some(0) && log.contains("has left after 2 launches"), "{log}");
}

#[test]
fn a_glob_leaves_out_what_needs_ssh_and_clients_come_one_after_another() {
    let server = Server::start("--token-file TOKEN");
    let of_all = format!("run sockets.* --sizes 64 --iterations 30 --rate 4000 {}", server.options());
    let done = Job::ombx(&of_all).run().expect(0);
    done.complains(&["sockets.pipeline is left out"]);
    assert!(done.stdout.contains("sockets.request"), "{done}");
    Job::ombx(&format!("run {SHORT} {}", server.options())).run().expect(0);
    server.until_no_rank_runs();
}

#[test]
fn the_token_comes_from_a_file_a_variable_or_standard_input() {
    let server = Server::start("");
    let token = server.greeting.trim().rsplit(' ').next().expect("a word").to_owned();
    assert!(server.greeting.contains("--token-file - <<< "), "{}", server.greeting);
    let line = format!("run {SHORT} --connect 127.0.0.1:{}", server.port);
    Job::ombx(&line).env("OMBX_TOKEN", &token).run().expect(0);
    let done = Job::ombx(&line).run().expect(2);
    assert!(done.sentence().contains("needs the token"), "{done}");
    let shell = format!("echo {token} | {} {line} --quick --token-file -", mpi::ombx().display());
    Job::new("sh").args(["-c", &shell]).run().expect(0).leaves_nothing();
}

#[test]
fn what_is_refused_is_named_and_the_server_goes_on() {
    let server = Server::start("--token-file TOKEN");
    let refused = |options: &str, code: i32, parts: &[&str]| {
        let kept = Kept::new();
        let done = kept.job(&format!("{SHORT} {options}")).run().expect(code);
        let sentence = done.sentence();
        assert!(parts.iter().all(|part| sentence.contains(part)), "{parts:?}\n{done}");
        assert!(!kept.out().exists(), "a file was written\n{done}");
        done.leaves_nothing();
    };
    let here = format!("--connect 127.0.0.1:{}", server.port);
    let other = Files::default();
    let wrong = other.write("token", "00112233445566778899aabbccddeeff\n");
    fs::set_permissions(&wrong, fs::Permissions::from_mode(0o600)).expect("a file");
    refused(&format!("{here} --token-file {}", wrong.display()), 6, &["rejected the token"]);
    let open = other.write("open", "00112233445566778899aabbccddeeff\n");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).expect("a file");
    refused(&format!("{here} --token-file {}", open.display()), 2, &["others have access"]);
    // Nobody listens on the port, and nobody else gets it.
    let bound =
        socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a socket");
    bind(&bound, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let closed = SocketAddr::try_from(getsockname(&bound).expect("an address")).expect("an address").port();
    let token = format!("--token-file {}", server.files.path("token").display());
    refused(
        &format!("--connect 127.0.0.1:{closed} {token}"),
        6,
        &["Connection refused", "ombx sockets serve"],
    );
    Job::ombx(&format!("run {SHORT} {}", server.options())).run().expect(0);
    kill_process(server.pid(), Signal::KILL).expect("a server");
    let (_, log) = server.end();
    assert!(log.contains("1 connection without the token rejected"), "{log}");
}

#[test]
fn a_second_client_is_refused_while_the_first_measures() {
    let server = Server::start("--token-file TOKEN");
    let kept = Kept::new();
    let job = in_the_middle(&kept, &server.options());
    // The lock of the first job is still held.
    let mut second = Command::new(mpi::ombx());
    second.args(format!("run {SHORT} --quick {}", server.options()).split_whitespace());
    let output = second.output().expect("a program");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(6) && text.contains("serves a run of"), "{text}");
    job.signal(Signal::INT);
    job.wait().expect(130).leaves_nothing();
    server.until_no_rank_runs();
}

#[test]
fn a_server_or_its_rank_that_is_lost_ends_the_run() {
    for lost in ["server", "rank"] {
        let server = Server::start("--token-file TOKEN");
        let kept = Kept::new();
        // Otherwise the server starts another rank, which measures the rest.
        let job = in_the_middle(&kept, &format!("{} --fail-fast", server.options()));
        for process in server.mark.processes() {
            if (process.pid == server.pid()) == (lost == "server") {
                process.signal(Signal::KILL);
            }
        }
        let done = job.wait().expect(6);
        done.complains(&["rank 1 on 127.0.0.1 ", "measured row"]);
        done.leaves_nothing();
        if lost == "rank" {
            server.until_no_rank_runs();
            Job::ombx(&format!("run {SHORT} {}", server.options())).run().expect(0);
        }
    }
}

#[test]
fn a_client_that_is_killed_frees_the_server() {
    let server = Server::start("--token-file TOKEN");
    let kept = Kept::new();
    let job = in_the_middle(&kept, &server.options());
    job.signal(Signal::KILL);
    job.wait().leaves_nothing();
    server.until_no_rank_runs();
    Job::ombx(&format!("run {SHORT} {}", server.options())).run().expect(0);
}

#[test]
fn an_idle_server_ends_and_a_busy_port_is_named() {
    let server = Server::start("--token-file TOKEN --timeout 100ms");
    assert_eq!(server.end().0, Some(0));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let done = Job::ombx(&format!("sockets serve --bind 127.0.0.1 --port {port}")).run().expect(6);
    assert!(done.sentence().contains("Give another --port"), "{done}");
}

#[test]
fn options_without_an_effect_are_refused() {
    for (options, part) in [
        ("p2p.latency --connect n02", "is over MPI"),
        ("sockets.pipeline --connect n02", "leave out --connect"),
        ("suite:smoke --connect n02", "not for suites"),
        ("sockets.bw --connect n02 --hosts n01,n02", "--hosts"),
        ("sockets.bw --connect n02 -n 3", "two ranks"),
        ("sockets.bw --token-file x", "--connect"),
        ("sockets.bw --connect n02:0", "from 1 to 65535"),
        ("sockets.bw --connect me@n02", "name or address of a host"),
    ] {
        let done = Job::ombx(&format!("run {options}")).run().expect(2);
        assert!(done.stderr.contains(part), "{options}: {done}");
    }
}
