//! Jobs in a network namespace of their own, in which a test may limit and count packets.

use crate::{Done, Job, kept::Kept, missing, mpi, skipped};

/// Arguments of one launch with the iterations that it is given.
pub const FIXED: &str = "--warmup 0 --no-verify --quick";

/// Runs a shell script in a network namespace, in which it may limit and count packets, as in [`in_bare_namespace`].
pub fn in_namespace(kept: &Kept, script: &str) -> Option<Done> {
    let queues = "ip link set lo up && tc qdisc add dev lo root handle 1: htb && \
                  tc class add dev lo parent 1: classid 1:1 htb rate 10gbit quantum 60000 && \
                  tc filter add dev lo parent 1: protocol ip u32 match ip dsfield 0 0xfc flowid 1:1 && \
                  tc qdisc add dev lo parent 1:1 tbf rate 8kbit burst 64kb limit 2kb";
    in_probed_namespace(kept, &["unshare", "ip", "tc", "sysctl"], queues, script)
}

/// Runs a shell script in a network namespace with links and addresses of its own. In it `$OMBX` is the program, `$OUT` the result file and
/// `$TOKEN` a file for a token.
///
/// Returns `None` where this machine has no such namespaces, and prints the reason.
pub fn in_bare_namespace(kept: &Kept, script: &str) -> Option<Done> {
    let links = "ip link set lo up && ip -6 addr show dev lo | grep -q ::1 && ip link add name near type veth peer name far";
    in_probed_namespace(kept, &["unshare", "nsenter", "ip"], links, script)
}

/// Runs a script in a network namespace if this machine has these programs and the probe succeeds there.
fn in_probed_namespace(kept: &Kept, programs: &[&str], probe: &str, script: &str) -> Option<Done> {
    if !rustix::process::geteuid().is_root() {
        skipped("a network namespace needs root");
        return None;
    }
    let absent = missing(programs);
    if !absent.is_empty() {
        skipped(&format!("not installed: {}", absent.join(", ")));
        return None;
    }
    let probe = Job::new("unshare").args(["--net", "sh", "-c", probe]).run();
    if probe.code != Some(0) {
        skipped(&format!("no such network namespaces here: {}", probe.stderr.trim()));
        return None;
    }
    let token = kept.files.path("token");
    let job = Job::new("unshare").args(["--net", "sh", "-e", "-c", script]);
    Some(job.env("OMBX", mpi::ombx()).env("OUT", kept.out()).env("TOKEN", token).run())
}

/// Returns the number after the first occurrence of a word in the output of a program.
///
/// # Panics
/// The word or the number is missing.
pub fn number_after(text: &str, word: &str) -> u64 {
    let rest = text.split_once(word).unwrap_or_else(|| panic!("{word} is not in {text}")).1.trim_start();
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().unwrap_or_else(|_| panic!("no number after {word} in {text}"))
}
