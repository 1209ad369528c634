//! Tests of `MpiTeam`, the untimed communication between ranks.

use std::{path::PathBuf, thread, time::Duration};

use ombx_core::{
    benchmark::{ParameterValue, RankMatrix},
    team::Team,
};
use ombx_host::since::Since;
use ombx_mpi::MpiTeam;
use ombx_record::{
    error::{Error, Kind},
    unit::Rank,
};

use crate::{RankTest, cpu_time};

pub(crate) const TESTS: &[RankTest] = &[
    RankTest::new("team::ranks_are_numbered", &[1, 3], ranks_are_numbered),
    RankTest::new("team::gather_of_unequal_lengths", &[1, 3], gather_of_unequal_lengths),
    RankTest::new("team::broadcast", &[1, 3], broadcast),
    RankTest::new("team::agree", &[1, 3], agree),
    RankTest::new("team::parts", &[1, 3], parts),
    RankTest::new("team::matrix", &[3, 4], matrix),
    RankTest::new("team::pairs", &[3], pairs),
    RankTest::new("team::sleeping_barrier", &[3], sleeping_barrier),
];

fn ranks_are_numbered(team: &MpiTeam) {
    assert!(team.rank().0 < team.size());
    assert_eq!((team.comm().rank(), team.comm().size()), (team.rank(), team.size()));
    assert_eq!(team.fabric().name, "mpi");
    assert!(!team.fabric().library.is_empty());
    let all = team.gather(&team.rank().0.to_le_bytes()).unwrap();
    let expected: Vec<Vec<u8>> = (0..team.size()).map(|rank| rank.to_le_bytes().to_vec()).collect();
    assert_eq!(all, (team.rank() == Rank(0)).then_some(expected));
}

/// Gathers `each * r` bytes of rank `r`, so that rank 0 sends none.
fn gather_of_unequal_lengths(team: &MpiTeam) {
    for each in [0, 1, 1000, 1 << 20] {
        let of = |rank: u32| vec![rank as u8 + 1; rank as usize * each];
        let all = team.gather(&of(team.rank().0)).unwrap();
        if team.rank() == Rank(0) {
            assert!(all == Some((0..team.size()).map(of).collect()), "{each} bytes by rank");
        } else {
            assert_eq!(all, None);
        }
    }
    // Now only rank 0 has data.
    let mine: &[u8] = if team.rank() == Rank(0) { b"x" } else { b"" };
    let all = team.gather(mine).unwrap();
    assert!(all.is_none_or(|all| all[0] == b"x" && all[1..].iter().all(Vec::is_empty)));
}

fn broadcast(team: &MpiTeam) {
    for length in [0, 1, 7, 1 << 20] {
        let mut bytes = vec![team.rank().0 as u8 + 7; length];
        team.broadcast(&mut bytes).unwrap();
        assert!(bytes.iter().all(|b| *b == 7), "{length}");
    }
    let team: &dyn Team = team;
    assert_eq!(team.broadcast_value(u64::from(team.rank().0) + u64::MAX / 2).unwrap(), u64::MAX / 2);
}

fn agree(team: &MpiTeam) {
    let (me, last) = (team.rank().0, team.size() - 1);
    let team: &dyn Team = team;
    assert_eq!(team.agree(Ok(me)).unwrap(), me, "each keeps its own value");

    let mine = if me == last { Err(Error::storage("disk full")) } else { Ok(me) };
    let error = team.agree(mine).unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (Kind::Storage, format!("rank {last}: disk full")));

    let mine: Result<(), Error> = Err(Error::unsupported(format!("reason of rank {me}")));
    let error = team.agree(mine).unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (Kind::Unsupported, "reason of rank 0".to_owned()));

    // An error leaves nothing behind in the communicator.
    team.agree(Ok(())).unwrap();
}

/// New numbers go along the rows of the matrix, whose columns the old numbers fill.
fn matrix(team: &MpiTeam) {
    let (mine, size) = (team.rank().0, team.size());
    let rows = if size.is_multiple_of(2) { 2 } else { 1 };
    let matrix = RankMatrix::parse(&format!("{rows}x{}", size / rows)).unwrap();
    let numbered = matrix.number(team).unwrap();
    assert_eq!(numbered.size(), size);
    assert_eq!(numbered.rank().0, mine % rows * (size / rows) + mine / rows);
    let old = numbered.gather(&[mine as u8]).unwrap();
    let expected: Vec<Vec<u8>> = matrix.order().iter().map(|rank| vec![rank.0 as u8]).collect();
    assert_eq!(old, (mine == 0).then_some(expected));
    let other = RankMatrix::parse("1x9").unwrap();
    assert!(other.number(team).is_err_and(|error| error.kind() == Kind::Usage));
}

fn parts(team: &MpiTeam) {
    for ranks in 1..=team.size() {
        let part = team.subteam(ranks).unwrap();
        assert_eq!(part.is_some(), team.rank().0 < ranks);
        let Some(part) = part else { continue };
        assert_eq!((part.rank(), part.size()), (team.rank(), ranks));
        part.barrier().unwrap();
        let all = part.gather(&[part.rank().0 as u8]).unwrap();
        assert!(all.is_none_or(|all| all.concat() == (0..ranks as u8).collect::<Vec<u8>>()));
        let first = part.subteam(1).unwrap();
        assert_eq!(first.is_some(), part.rank() == Rank(0));
    }
    team.barrier().unwrap();
}

/// Creates teams of the first two ranks, in both orders.
fn pairs(team: &MpiTeam) {
    let me = team.rank().0;
    for first in [0, 1, 0] {
        if me > 1 {
            continue;
        }
        let pair = team.pair(Rank(1 - me), Rank(first)).unwrap();
        assert_eq!((pair.rank().0, pair.size()), (u32::from(me != first), 2));
        let all = pair.gather(&[me as u8]).unwrap();
        assert!(all.is_none_or(|all| all.concat() == [first as u8, 1 - first as u8]));
    }
    team.barrier().unwrap();
}

/// Checks that all ranks wait for a late one without using the CPU.
fn sleeping_barrier(team: &MpiTeam) {
    const LATE: Duration = Duration::from_millis(500);
    let directory = (team.rank() == Rank(0)).then(|| tempfile::tempdir().expect("a directory"));
    let path =
        directory.as_ref().map_or(String::new(), |own| own.path().join("marker").display().to_string());
    let length = (team as &dyn Team).broadcast_value(path.len() as u64).unwrap();
    let mut path = path.into_bytes();
    path.resize(length as usize, 0);
    team.broadcast(&mut path).unwrap();
    let marker = PathBuf::from(String::from_utf8(path).unwrap());
    let (before, since) = (cpu_time(), Since::now());
    if team.rank().0 == team.size() - 1 {
        thread::sleep(LATE);
        std::fs::write(&marker, "here").unwrap();
    }
    team.sleeping_barrier().unwrap();
    let waited = since.elapsed();
    assert!(marker.exists(), "rank {} did not wait", team.rank());
    if let (Some(before), Some(after)) = (before, cpu_time()) {
        let spent = Duration::from_nanos(after - before);
        // A rank that spins on an idle machine spends all of it. No other program adds to the CPU time of this one.
        assert!(
            spent < LATE / 4 + waited / 2,
            "rank {} was on a CPU for {spent:?} of {waited:?}",
            team.rank()
        );
    }
    team.barrier().unwrap();
}
