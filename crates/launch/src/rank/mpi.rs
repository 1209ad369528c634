//! A rank over MPI.

use std::{fs::File, io, thread, time::Duration};

use ombx_core::{
    benchmark::{Initialization, Threading},
    team::Team,
};
use ombx_drop_in::imb::threads::THREADS;
use ombx_host::environment::hostname;
use ombx_mpi::Mpi;
use ombx_record::{
    codec,
    error::{Error, Kind, Result},
    event::{Event, RankProcess},
    file,
};
use rustix::process::{Signal, getpid, kill_process};

use crate::{
    build,
    job::{Work, accelerator},
    launch::{
        detection::{self, ChosenBy},
        preflight,
    },
    output::relay,
    rank::{RankState, failure},
    this_process,
};

/// Time in which the other ranks start MPI.
const OTHERS_START: Duration = Duration::from_secs(30);

/// Initializes MPI and measures. MPI is finalized when the returned value is dropped.
pub(super) fn measure(state: &mut RankState<'_>, work: &Work) -> Result<Mpi> {
    Mpi::abort_on_panic();
    if state.pipe.is_some() && detection::is_first_on_host() {
        // Standard error may be closed; the launching process then does without.
        let _ = file::write(&mut io::stderr(), &Event::Started { host: hostname().into() });
    }
    accelerator::enter(work);
    let started =
        preflight::check_rank().and_then(|()| Mpi::start_as(work.initialization(), work.threading()));
    let mpi = started.unwrap_or_else(|error| abort_without_mpi(&error));
    let chosen = if state.output_of.is_some() { ChosenBy::User } else { ChosenBy::Ombx };
    detection::refuse_singletons(mpi.team().size(), chosen).inspect_err(|_| {
        if let Some(sentence) = detection::further_singleton() {
            stderr_line!("ombx: {sentence}");
        }
    })?;
    let team: &dyn Team = mpi.team();
    same_build(team).unwrap_or_else(|error| failure::abort(team, &error));
    // A rank with a mistake of its own takes part in this, see `share`. MPI ends as usual, and rank 0 prints it.
    team.agree(Ok(())).or_else(|error| match error.kind() {
        // This rank alone has it: others wait for it.
        Kind::Fabric => failure::abort(team, &error),
        _ => Err(error),
    })?;
    // The launching process knows the ranks by the numbers of the launcher.
    let measured = meet(team, state.pipe.as_mut(), &accelerator::needed(work))
        .and_then(|()| ombx_mpi::grants(work.chosen_threading()))
        .and_then(|()| accelerator::open(work, team))
        .and_then(|()| match work.numbering() {
            Some(matrix) => state.measure(&*matrix.number(team)?, work),
            None => state.measure(team, work),
        });
    measured.unwrap_or_else(|error| failure::abort(team, &error));
    Ok(mpi)
}

/// Tells the other ranks of the launcher about an error that this rank has found before it started MPI: they would wait for it. Rank 0
/// prints the error of the lowest rank that has one. If the others do not start MPI within a time, this rank prints its error and ends.
pub(super) fn share(error: &Error) {
    let Some(started) = detection::launcher().filter(|started| started.ranks != Some(1)) else { return };
    let mine = Error::new(error.kind(), format!("{error} (on {})", hostname()));
    let (late, rank) = (mine.to_string(), started.rank);
    thread::spawn(move || {
        thread::sleep(OTHERS_START);
        if rank > 0 {
            stderr_line!("ombx: rank {rank}: {late}");
        }
        // Handlers of exit could run beside the start of MPI, and a launcher may ignore an exit code before it.
        let _ = kill_process(getpid(), Signal::KILL);
    });
    // MPI has started already if this error is that of another rank.
    let Ok(mpi) = Mpi::start_as(Initialization::World, Threading::Single) else { return };
    if detection::refuse_singletons(mpi.team().size(), ChosenBy::User).is_err() {
        // None of the others is reached, and a script may have started ombx in this rank alone.
        if rank > 0 {
            stderr_line!("ombx: rank {rank}: {error}");
        }
        return;
    }
    same_build(mpi.team()).unwrap_or_else(|error| failure::abort(mpi.team(), &error));
    match mine.kind() {
        // Ranks do not agree on failures of the transport.
        Kind::Fabric => abort_without_mpi(error),
        _ => drop((mpi.team() as &dyn Team).agree::<()>(Err(mine))),
    }
}

/// Waits until rank 0 has printed an error that all ranks have: Open MPI ends the other ranks as soon as one has ended.
pub(super) fn let_rank_0_print() {
    if detection::launcher().is_some_and(|started| started.rank > 0) {
        thread::sleep(failure::RANK_0_PRINTS);
    }
}

/// Ends the job: the other ranks would wait for this one, which has no MPI.
fn abort_without_mpi(error: &Error) -> ! {
    let rank = detection::launcher().map_or(0, |started| started.rank);
    failure::print(rank, error);
    Mpi::abort(error.kind().exit_code())
}

/// Number of bytes by which ranks of different builds recognise each other: the identity of a build, and its name.
const OF_BUILD: usize = 256;

/// Fails on this rank if it is another build than rank 0. All ranks must call it first, because ranks of different builds may understand
/// each other in nothing but these bytes of rank 0.
pub(super) fn same_build(team: &dyn Team) -> Result<()> {
    same(team, build::identity(), &build::name())
}

fn same(team: &dyn Team, identity: u64, name: &str) -> Result<()> {
    let mut first = [0; OF_BUILD];
    first[..8].copy_from_slice(&identity.to_le_bytes());
    for (to, from) in first[8..].iter_mut().zip(name.bytes()) {
        *to = from;
    }
    team.broadcast(&mut first)?;
    if first[..8] == identity.to_le_bytes() {
        return Ok(());
    }
    let theirs = String::from_utf8_lossy(&first[8..]);
    Err(Error::fabric(build::another(&hostname(), name, theirs.trim_end_matches('\0'), "rank 0")))
}

/// Returns the error of a rank that differs from rank 0.
fn another(what: &str) -> Error {
    Error::fabric(format!(
        "{} runs another {what} than rank 0: start the same ombx with the same arguments and variables on every rank",
        hostname()
    ))
}

/// Fails on a rank that differs from rank 0: the caller must end the job then, because the others wait. Rank 0 sends process ID and host of
/// each rank to the launching process. All ranks must call it.
fn meet(team: &dyn Team, launching_process: Option<&mut File>, devices: &[String]) -> Result<()> {
    // Each rank of the user's launcher has read words and variables itself.
    let read =
        launching_process.is_none().then(|| (this_process::as_typed().split_off(1), this_process::threads()));
    let library = ombx_mpi::library_version();
    let (words, threads) = read.unzip();
    let (first_words, first_threads, first_library, first_devices) =
        team.broadcast_message((words.clone(), threads.clone(), library.clone(), devices.to_vec()))?;
    let same = [("command line", words == first_words), (THREADS, threads == first_threads)];
    let other = same.into_iter().find(|(_, is_same)| !is_same);
    other.map_or(Ok(()), |(what, _)| Err(another(what)))?;
    // A drop-in program measures memory of the host where it finds no driver.
    if devices != first_devices {
        return Err(Error::fabric(format!(
            "{} and the host of rank 0 differ in their drivers of devices: only one of them measures memory of devices",
            hostname()
        )));
    }
    if library != first_library {
        return Err(Error::fabric(format!(
            "{} has loaded {library}, but rank 0 has loaded {first_library}: give every host the same MPI library",
            hostname()
        )));
    }
    let pid = u64::from(getpid().as_raw_nonzero().get().unsigned_abs());
    let ranks = team.gather(&codec::encode(&RankProcess { pid, host: hostname() }))?;
    if let Some((pipe, ranks)) = launching_process.zip(ranks) {
        let ranks = ranks.iter().map(|rank| codec::decode(rank).unwrap_or_default()).collect();
        file::write(pipe, &Event::Ranks { ranks }).map_err(|e| relay::broken(&e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ombx_testkit::on_ranks;

    use crate::rank::mpi::*;

    #[test]
    fn a_rank_of_another_build_names_both() {
        let ended = on_ranks(3, |team| match team.rank().0 {
            // A build whose messages nobody else understands.
            1 => team.broadcast(&mut [0; OF_BUILD]).map(|()| String::new()),
            rank => same(team, u64::from(rank), &format!("ombx {rank}"))
                .map_or_else(|error| Ok(error.to_string()), |()| Ok(String::new())),
        });
        let said: Vec<String> = ended.into_iter().map(|one| one.unwrap()).collect();
        assert!(said[0].is_empty() && said[2].contains("has ombx 2, but rank 0 has ombx 0"), "{said:?}");
    }
}
