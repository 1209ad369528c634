//! Programs that a test bed and the tests between hosts call.

use std::path::PathBuf;

use crate::mpi::Places;

/// Programs that make a test bed.
pub const PROGRAMS: [&str; 8] = ["ip", "ssh", "ssh-keygen", "sshd", "unshare", "nsenter", "taskset", "mount"];
/// Programs that the tests between hosts call as well.
pub const OF_TESTS: [&str; 10] =
    ["ethtool", "ping", "pkill", "sha256sum", "slurmctld", "slurmd", "sinfo", "srun", "sbatch", "nodeset"];

/// Returns the programs that are not installed. System directories are searched although they may not be on `PATH`.
pub fn missing(programs: &[&'static str]) -> Vec<&'static str> {
    let mut places = Places::here();
    places.directories.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    programs.iter().copied().filter(|program| places.program(program).is_none()).collect()
}
