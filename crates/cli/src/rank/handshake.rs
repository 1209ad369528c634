//! Handshake of MPI ranks: all must be the same build with the same command line.

use std::{
    collections::hash_map::DefaultHasher,
    fs::File,
    hash::{Hash, Hasher},
    io::Read,
};

use ombx_core::{
    codec,
    error::{Error, Result},
    system::environment::hostname,
    team::Team,
};
use rustix::process::getpid;

use crate::{
    arguments::argv,
    output::relay::{self, Message, RankProcess},
};

/// Number of bytes at the start of the executable that identify a build.
const HEAD: u64 = 4096;

/// Fails on all ranks if one differs from rank 0. Rank 0 then sends process ID and host of each rank to the launching process. All
/// ranks must call it.
pub(super) fn run(team: &dyn Team, launching_process: Option<&mut File>) -> Result<()> {
    let (build, words) = (hash_of(&build()), hash_of(&argv::typed()[1..]));
    let (threads, library) = (hash_of(&argv::threads()), hash_of(&ombx_mpi::library_version()));
    let same = [
        (build, "build of ombx"),
        (words, "command line"),
        (threads, argv::THREADS),
        (library, "version of the MPI library"),
    ]
    .map(|(mine, what)| team.broadcast_value(mine).map(|first| (first != mine).then_some(what)));
    let [build, words, threads, library] = same;
    let other = build?.or(words?).or(threads?).or(library?);
    team.agree(other.map_or(Ok(()), |what| {
        Err(Error::fabric(format!(
            "{} runs another {what} than rank 0: start the same ombx with the same arguments and variables on every rank",
            hostname()
        )))
    }))?;
    let pid = u64::from(getpid().as_raw_nonzero().get().unsigned_abs());
    let ranks = team.gather(&codec::encode(&RankProcess { pid, host: hostname() }))?;
    if let Some((pipe, ranks)) = launching_process.zip(ranks) {
        let ranks = ranks.iter().map(|rank| codec::decode(rank).unwrap_or_default()).collect();
        Message::Ranks { ranks }.write(pipe).map_err(|e| relay::broken(&e))?;
    }
    Ok(())
}

/// Returns length and head of the executable.
fn build() -> (u64, Vec<u8>) {
    let mut head = Vec::new();
    let length = File::open("/proc/self/exe").and_then(|file| {
        let length = file.metadata()?.len();
        file.take(HEAD).read_to_end(&mut head)?;
        Ok(length)
    });
    (length.unwrap_or(0), head)
}

fn hash_of(what: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
