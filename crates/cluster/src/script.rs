//! Shell scripts that run on hosts. Every word from the user or the inventory is quoted.

use std::{ffi::OsStr, fmt::Write as _, path::Path, time::Duration};

use ombx_host::remote_shell;

use crate::inventory::{Host, Inventory};

fn quoted(word: &str) -> String {
    shell_words::quote(word).into_owned()
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// Returns the lines that make the MPI usable and set the environment of the inventory.
fn environment(inventory: &Inventory) -> String {
    let mut text = String::new();
    for line in &inventory.setup {
        let _ = writeln!(text, "{line}");
    }
    if let Some(prefix) = &inventory.prefix {
        let _ = writeln!(text, "export OMBX_MPIEXEC={}", quoted_path(&prefix.join("bin/mpiexec")));
    }
    for (name, value) in &inventory.env {
        let _ = writeln!(text, "export {name}={}", quoted(value));
    }
    text
}

/// Returns the script that starts ombx. All processes of the job carry `mark` in the variable `OMBX_JOB`.
pub(crate) fn job(inventory: &Inventory, mark: &str, command: &[String]) -> String {
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let (environment, mark, command) = (environment(inventory), quoted(mark), words.join(" "));
    format!("#!/bin/sh\n{environment}export OMBX_JOB={mark}\nexec {command} </dev/null\n")
}

/// Returns the body of a batch script: runs `script` and leaves its output in `directory`. The exit code is written last.
pub(crate) fn batch_body(script: &Path, directory: &Path) -> String {
    let file = |name: &str| quoted_path(&directory.join(name));
    format!(
        "echo >{}; sh {} >{} 2>{}; echo $? >{part}; mv {part} {}\n",
        file("started"),
        quoted_path(script),
        file("results.jsonl"),
        file("stderr.txt"),
        file("exit"),
        part = file("exit.part"),
    )
}

/// Returns the script that prints facts about a host, one per line: name, blank, value.
pub(crate) fn facts(inventory: &Inventory, binary: &Path) -> String {
    let bare = |host: &Host| quoted(host.name.rsplit('@').next().unwrap_or(&host.name));
    let names: Vec<String> = inventory.hosts.iter().map(bare).collect();
    // The clock comes first: lines of setup may take long.
    format!(
        "echo clock $(date +%s.%N)\n{}set -- {}\nbinary={}\n{}",
        environment(inventory),
        names.join(" "),
        quoted_path(binary),
        include_str!("script/facts.sh")
    )
}

/// Returns the script that prints byte counters of the interface and, twice, the CPU times of a host. Without a name, the
/// interface is the one with the address of the host, or the one of the default route.
pub(crate) fn counters(host: &Host) -> String {
    let interface = match (&host.interface, &host.address) {
        (Some(name), _) => quoted(name),
        (None, Some(address)) => format!(
            "$(ip -o addr | sed -n 's/^[0-9]*: \\([^ ]*\\) .* '{}'\\/.*/\\1/p' | head -n 1)",
            quoted(address)
        ),
        (None, None) => "$(ip route show default | sed -n 's/.* dev \\([^ ]*\\).*/\\1/p' | head -n 1)".into(),
    };
    format!("interface={interface}\n{}", include_str!("script/counters.sh"))
}

/// Returns the script that ends every process with the mark of a job, and prints how many there were.
pub(crate) fn sweep(mark: &str) -> String {
    format!("mark={}\n{}", quoted(mark), include_str!("script/sweep.sh"))
}

/// Returns the command line that copies its standard input to a file if the checksum is right. The directory must belong to
/// this user, and the one above to this user or root: any other owner could replace the copy.
pub(crate) fn receive(file: &Path, checksum: &str) -> String {
    let directory = file.parent().unwrap_or(Path::new("/"));
    let script = format!(
        "umask 077; mkdir -p {directory} && [ -O {directory} ] && [ ! -L {directory} ] && \
         case $(stat -c %u {above}) in 0|$(id -u)) ;; *) false;; esac && cat >{file}.$$ && \
         [ \"$(sha256sum <{file}.$$ | cut -d' ' -f1)\" = {checksum} ] && chmod 700 {file}.$$ && mv {file}.$$ {file} || \
         {{ rm -f {file}.$$; false; }}",
        directory = quoted_path(directory),
        above = quoted_path(directory.parent().unwrap_or(Path::new("/"))),
        file = quoted_path(file),
    );
    format!("sh -c {}", quoted(&script))
}

/// Returns the script that removes a copied file, its directory, and the directory above if nothing else is in it.
pub(crate) fn remove(file: &Path) -> String {
    let directory = file.parent().unwrap_or(Path::new("/"));
    format!(
        "rm -f {} {}\n[ ! -e {directory} ] || rmdir {directory} || exit 1\nrmdir {} 2>/dev/null\nexit 0\n",
        quoted_path(file),
        quoted_path(&directory.join("ssh")),
        quoted_path(directory.parent().unwrap_or(Path::new("/"))),
        directory = quoted_path(directory),
    )
}

/// Returns the script that Hydra and Open MPI start instead of ssh, or of another `program` of the user's choice. It passes the mark of the
/// job on to the host.
pub(crate) fn ssh_wrapper(program: &OsStr, ssh_config: Option<&Path>) -> String {
    let program = quoted(&program.to_string_lossy());
    let options = [&remote_shell::OPTIONS[..], &remote_shell::ALIVE_OPTIONS].concat().join(" ");
    let config = ssh_config.map_or(String::new(), |config| format!("-F {} ", quoted_path(config)));
    format!("#!/bin/sh\nexec {program} {config}{options} -o SetEnv=LC_OMBX_JOB=\"$OMBX_JOB\" \"$@\"\n")
}

/// Returns a time as whole seconds, at least one, such as `60s`.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{}s", time.as_secs().max(1))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn run(script: &str) -> String {
        let output = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    #[test]
    fn values_are_quoted() {
        let directory = tempfile::tempdir().unwrap();
        let bad = format!("it's $(touch {0}/x) `touch {0}/y`; touch {0}/z", directory.path().display());
        let inventory = Inventory { env: [("BAD".to_owned(), bad.clone())].into(), ..Inventory::default() };
        let words = ["sh", "-c", "echo \"$BAD\" \"$1\" \"$OMBX_JOB\"", "sh", &bad].map(str::to_owned);
        assert_eq!(run(&job(&inventory, "m; touch x", &words)), format!("{bad} {bad} m; touch x"));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_sweep_ends_marked_processes_only() {
        let start =
            |name: &str, value: &str| Command::new("sleep").arg("1000").env(name, value).spawn().unwrap();
        let mark = format!("sweep-test-{}", std::process::id());
        let (mut a, mut b) = (start("OMBX_JOB", &mark), start("LC_OMBX_JOB", &mark));
        let mut other = start("OMBX_JOB", &format!("{mark}0"));
        // A process that dies slowly is ended twice.
        let swept = run(&sweep(&mark));
        let count = swept.strip_prefix("swept ").and_then(|count| count.parse::<u32>().ok());
        assert!(count.is_some_and(|count| count >= 2), "{swept}");
        assert!(!a.wait().unwrap().success() && !b.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_copy_is_complete_or_absent() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a b/ombx");
        // echo x | sha256sum
        let good = "73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac";
        run(&format!("echo x | {}", receive(&file, &good.replace('7', "8"))));
        assert!(!file.exists());
        run(&format!("echo x | {}", receive(&file, good)));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n");
        run(&remove(&file));
        assert!(!directory.path().join("a b").exists());
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a test says what it skips")]
    fn a_copy_is_refused_where_other_users_could_replace_it() {
        let directory = tempfile::tempdir().unwrap();
        let (own, foreign) = (directory.path().join("own"), directory.path().join("foreign"));
        std::fs::create_dir(&foreign).unwrap();
        std::os::unix::fs::symlink(&foreign, &own).unwrap();
        run(&format!("echo x | {}", receive(&own.join("ombx"), "any")));
        assert_eq!(std::fs::read_dir(&foreign).unwrap().count(), 0, "the copy followed a link");
        if std::os::unix::fs::chown(&foreign, Some(12_345), None).is_err() {
            eprintln!("skipped: only root can create a directory of another user");
            return;
        }
        run(&format!("echo x | {}", receive(&foreign.join("sum/ombx"), "any")));
        let left = std::fs::read_dir(foreign.join("sum")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "the copy is below a directory of another user");
    }

    #[test]
    fn counters_of_this_machine_are_printed() {
        let text = run(&counters(&Host {
            name: "x".into(),
            address: Some("127.0.0.1".into()),
            interface: None,
            slots: 1,
        }));
        assert!(text.contains("interface lo\n"), "{text}");
        assert!(
            text.contains("rx_bytes ") && text.lines().filter(|line| line.starts_with("cpu ")).count() == 2,
            "{text}"
        );
    }
}
