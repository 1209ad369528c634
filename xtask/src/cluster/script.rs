//! The scripts that run on hosts. Every word that comes from the user or the inventory is quoted.

use std::{fmt::Write as _, path::Path, time::Duration};

use super::inventory::{Host, Inventory};

fn quoted(word: &str) -> String {
    shell_words::quote(word).into_owned()
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// What makes the MPI usable, and the environment of the inventory.
pub(super) fn environment(inventory: &Inventory) -> String {
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

/// Starts ombx with a mark by which all processes of the job are found.
pub(super) fn job(inventory: &Inventory, mark: &str, words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!(
        "#!/bin/sh\n{}export OMBX_JOB={}\nexec {} </dev/null\n",
        environment(inventory),
        quoted(mark),
        words.join(" ")
    )
}

/// Has a job script run by a scheduler leave its output and its exit code, the code last.
pub(super) fn submitted(script: &Path, directory: &Path) -> String {
    let file = |name: &str| quoted_path(&directory.join(name));
    format!(
        "echo >{}; sh {} >{} 2>{}; echo $? >{}; mv {} {}\n",
        file("started"),
        quoted_path(script),
        file("results.jsonl"),
        file("stderr.txt"),
        file("exit.part"),
        file("exit.part"),
        file("exit")
    )
}

/// Facts of a host, one a line: a name, a blank, a value.
pub(super) fn facts(inventory: &Inventory, binary: &Path, hosts: &[Host]) -> String {
    let names: Vec<String> = hosts.iter().map(|host| quoted(bare(&host.name))).collect();
    format!(
        "echo clock $(date +%s.%N)\necho hostname $(cat /proc/sys/kernel/hostname)\necho boot_id $(cat /proc/sys/kernel/random/boot_id)\n\
         echo kernel $(uname -srm)\necho cores $(nproc)\necho cpu $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)\n\
         for name in {names}; do getent hosts \"$name\" >/dev/null && echo resolves \"$name\" || echo unresolved \"$name\"; done\n\
         {env}binary={binary}\necho binary $(sha256sum \"$binary\" 2>/dev/null | cut -d' ' -f1)\n\
         version=$(\"$binary\" --version 2>&1) && echo ombx \"$version\" || echo broken $version\n\
         for library in $(ldd \"$binary\" 2>/dev/null | sed -n 's/^[[:space:]]*\\(libmpi[^ ]*\\|libucp[^ ]*\\|libfabric[^ ]*\\) => \\(\\/[^ ]*\\).*/\\2/p'); do\n\
         \x20 echo library \"$library\" $(sha256sum \"$library\" | cut -c1-16)\ndone\n",
        names = names.join(" "),
        env = environment(inventory),
        binary = quoted_path(binary),
    )
}

/// A name without the user in front of it and the slots behind it.
fn bare(name: &str) -> &str {
    name.rsplit('@').next().unwrap_or(name)
}

/// Bytes of an interface, and how busy the CPUs are over a fifth of a second. Without a name it is the one with the host's
/// address, or that of the default route.
pub(super) fn probe(host: &Host) -> String {
    let dev = "sed -n 's/.* dev \\([^ ]*\\).*/\\1/p' | head -n 1";
    let interface = match (&host.interface, &host.address) {
        (Some(name), _) => quoted(name),
        (None, Some(address)) => {
            format!(
                "$(ip -o addr | sed -n 's/^[0-9]*: \\([^ ]*\\) .* '{}'\\/.*/\\1/p' | head -n 1)",
                quoted(address)
            )
        }
        (None, None) => format!("$(ip route show default | {dev})"),
    };
    let of =
        |counter: &str| format!("echo {counter} $(cat \"/sys/class/net/$interface/statistics/{counter}\")\n");
    format!(
        "interface={interface}\necho interface \"$interface\"\n{}{}head -n 1 /proc/stat\nsleep 0.2\nhead -n 1 /proc/stat\n",
        of("rx_bytes"),
        of("tx_bytes")
    )
}

/// Ends every process with the mark of a job, and the helper of the launcher that started it; prints how many.
pub(super) fn sweep(mark: &str) -> String {
    format!(
        "mark={}\n\
         found=0\n\
         for try in 1 2 3 4 5; do\n\
         \x20 left=0\n\
         \x20 for file in $(grep -lzxF -e \"OMBX_JOB=$mark\" -e \"LC_OMBX_JOB=$mark\" /proc/[0-9]*/environ 2>/dev/null); do\n\
         \x20   directory=${{file%/environ}} pid=${{directory#/proc/}} pid=${{pid%/environ}}\n\
         \x20   [ \"$pid\" = $$ ] && continue\n\
         \x20   read -r parent <<E\n$(sed -n 's/^PPid:[[:space:]]*//p' \"$directory/status\" 2>/dev/null)\nE\n\
         \x20   case $(cat \"/proc/$parent/comm\" 2>/dev/null) in hydra_pmi_proxy|orted|prted) kill -9 \"$parent\" 2>/dev/null;; esac\n\
         \x20   kill -9 \"$pid\" 2>/dev/null && left=$((left+1))\n\
         \x20 done\n\
         \x20 [ $left = 0 ] && break\n\
         \x20 found=$((found+left))\n\
         \x20 sleep 0.2\n\
         done\n\
         echo swept $found\n",
        quoted(mark)
    )
}

/// Copies what comes in on standard input to a file on a host, unless it is there: one command line. Whoever owns the directory
/// above could put another in the place of the one that is made, so that it must be ours, or root's as /tmp is.
pub(super) fn stage(file: &Path, checksum: &str) -> String {
    let directory = file.parent().unwrap_or(Path::new("/"));
    let script = format!(
        "umask 077; mkdir -p {directory} && [ -O {directory} ] && [ ! -L {directory} ] && \
         case $(stat -c %u {above}) in 0|$(id -u)) ;; *) false;; esac && cat >{file}.$$ && [ \"$(sha256sum <{file}.$$ | cut -d' ' -f1)\" = {checksum} ] && chmod 700 {file}.$$ && mv {file}.$$ {file}",
        directory = quoted_path(directory),
        above = quoted_path(directory.parent().unwrap_or(Path::new("/"))),
        file = quoted_path(file),
    );
    format!("sh -c {}", quoted(&script))
}

/// What Hydra and Open MPI start in place of ssh: it marks what it starts, asks nothing, and notices a dead link.
pub(super) fn wrapper(ssh_config: Option<&Path>) -> String {
    let config = ssh_config.map_or(String::new(), |config| format!("-F {} ", quoted_path(config)));
    format!(
        "#!/bin/sh\nexec ssh {config}{} -o SetEnv=LC_OMBX_JOB=\"$OMBX_JOB\" \"$@\"\n",
        super::remote::SSH_OPTIONS.join(" ")
    )
}

/// Seconds for options and environment variables.
pub(super) fn seconds(time: Duration) -> String {
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
    fn values_are_data() {
        let directory = tempfile::tempdir().unwrap();
        let bad = format!("it's $(touch {0}/x) `touch {0}/y`; touch {0}/z", directory.path().display());
        let inventory = Inventory { env: [("BAD".to_owned(), bad.clone())].into(), ..Inventory::default() };
        let words = ["sh", "-c", "echo \"$BAD\" \"$1\" \"$OMBX_JOB\"", "sh", &bad].map(str::to_owned);
        assert_eq!(run(&job(&inventory, "m; touch x", &words)), format!("{bad} {bad} m; touch x"));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_sweep_ends_what_is_marked_and_nothing_else() {
        let start =
            |name: &str, value: &str| Command::new("sleep").arg("60").env(name, value).spawn().unwrap();
        let mark = format!("sweep-test-{}", std::process::id());
        let (mut a, mut b) = (start("OMBX_JOB", &mark), start("LC_OMBX_JOB", &mark));
        let mut other = start("OMBX_JOB", &format!("{mark}0"));
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(run(&sweep(&mark)), "swept 2");
        assert!(!a.wait().unwrap().success() && !b.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_copy_arrives_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a b/ombx");
        // echo x | sha256sum
        let good = "73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac";
        run(&format!("echo x | {}", stage(&file, &good.replace('7', "8"))));
        assert!(!file.exists());
        run(&format!("echo x | {}", stage(&file, good)));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n");
    }

    #[test]
    fn a_copy_is_not_put_where_others_could_exchange_it() {
        let directory = tempfile::tempdir().unwrap();
        let (mine, theirs) = (directory.path().join("mine"), directory.path().join("theirs"));
        std::fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::symlink(&theirs, &mine).unwrap();
        run(&format!("echo x | {}", stage(&mine.join("ombx"), "any")));
        assert_eq!(std::fs::read_dir(&theirs).unwrap().count(), 0, "it was put behind a link");
        if std::os::unix::fs::chown(&theirs, Some(12_345), None).is_err() {
            eprintln!("skipped: only root can make a directory of somebody else's");
            return;
        }
        run(&format!("echo x | {}", stage(&theirs.join("sum/ombx"), "any")));
        let left = std::fs::read_dir(theirs.join("sum")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "it was put below a directory of somebody else's");
    }

    #[test]
    fn a_probe_reads_counters() {
        let text = run(&probe(&Host {
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
