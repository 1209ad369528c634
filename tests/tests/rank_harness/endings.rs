//! Tests of the end of a job after a failure: it ends soon, names the cause and leaves no process.

use ombx_core::{benchmark::payload::Slots, team::Team, two_sided::pattern::Link};
use ombx_mpi::{Channel, MpiTeam};
use ombx_record::unit::Rank;

use crate::{RankTest, channels::on_a_pair};

pub(crate) const TESTS: &[RankTest] = &[
    RankTest::new("ending::a_panic_of_the_first", &[1, 3], |team| panics(team, 0))
        .ends(Some(6), &["on purpose"]),
    RankTest::new("ending::a_panic_of_the_second", &[3], |team| panics(team, 1))
        .ends(Some(6), &["on purpose"]),
    RankTest::new("ending::an_abort", &[3], aborts).ends(Some(9), &[]),
    RankTest::new("ending::a_crash", &[2], crashes).ends(None, &[]),
    // Hydra may kill the rank by SIGKILL before it ends by itself with exit code 6.
    RankTest::new("ending::an_error_of_mpi", &[2], overflows)
        .ends(None, &["ombx: rank 1 on ", "a message too long: MPI error: ", "runcate"]),
];

/// Panics on one rank while the others wait for it in a barrier.
fn panics(team: &MpiTeam, rank: u32) {
    assert!(team.rank().0 != rank, "on purpose");
    team.barrier().unwrap();
}

fn aborts(team: &MpiTeam) {
    if team.rank() == Rank(1) {
        team.abort(9);
    }
    team.barrier().unwrap();
}

fn crashes(team: &MpiTeam) {
    if team.rank() == Rank(1) {
        std::process::abort();
    }
    team.barrier().unwrap();
}

/// Sends more bytes from rank 0 than rank 1 receives.
fn overflows(team: &MpiTeam) {
    team.name_task("a message too long");
    on_a_pair(team, |cx| {
        let bytes = if cx.rank() == Rank(0) { 100 } else { 10 };
        let mut channel = Channel::<ombx_mpi::Int>::open(cx, Slots::new(bytes, 1)).unwrap();
        let _ = if cx.rank() == Rank(0) { channel.send() } else { channel.receive() };
    });
}
