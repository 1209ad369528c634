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

/// Fails on this rank if it is another build than rank 0. All ranks must call it first, because ranks of different builds may understand
/// each other in nothing but eight bytes of rank 0.
pub(super) fn same_build(team: &dyn Team) -> Result<()> {
    same(team, hash_of(&build()))
}

fn same(team: &dyn Team, build: u64) -> Result<()> {
    let mut first = build.to_le_bytes();
    team.broadcast(&mut first)?;
    if first == build.to_le_bytes() { Ok(()) } else { Err(another("build of ombx")) }
}

/// Returns the error of a rank that differs from rank 0.
fn another(what: &str) -> Error {
    Error::fabric(format!(
        "{} runs another {what} than rank 0: start the same ombx with the same arguments and variables on every rank",
        hostname()
    ))
}

/// Fails on all ranks if one differs from rank 0. Rank 0 then sends process ID and host of each rank to the launching process. All
/// ranks must call it.
pub(super) fn run(team: &dyn Team, launching_process: Option<&mut File>) -> Result<()> {
    let (words, threads) = (hash_of(&argv::typed()[1..]), hash_of(&argv::threads()));
    let library = hash_of(&ombx_mpi::library_version());
    let same = [(words, "command line"), (threads, argv::THREADS), (library, "version of the MPI library")]
        .map(|(mine, what)| team.broadcast_value(mine).map(|first| (first != mine).then_some(what)));
    let [words, threads, library] = same;
    let other = words?.or(threads?).or(library?);
    team.agree(other.map_or(Ok(()), |what| Err(another(what))))?;
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

#[cfg(test)]
mod tests {
    use ombx_core::testkit::on_ranks;

    use super::*;

    #[test]
    fn a_rank_of_another_build_needs_eight_bytes_of_rank_0_only() {
        let ended = on_ranks(3, |team| match team.rank().0 {
            // A build whose messages nobody else understands.
            1 => team.broadcast(&mut [0; 8]).map(|()| String::new()),
            rank => {
                same(team, u64::from(rank)).map_or_else(|error| Ok(error.to_string()), |()| Ok(String::new()))
            }
        });
        let said: Vec<String> = ended.into_iter().map(|one| one.unwrap()).collect();
        assert!(said[0].is_empty() && said[2].contains("another build of ombx than rank 0"), "{said:?}");
    }
}
