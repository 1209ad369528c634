//! Marks of every row of a run or a benchmark: build, clock, placement of ranks, unused features.

use std::collections::HashMap;

use crate::{
    benchmark::Threads,
    fact::HostFacts,
    result::{Level, Mark},
    system::{clock::Facts, environment::parse_cpus, machine::LOCAL_CPUS},
    team::Place,
};

/// Maximum resolution and maximum overhead of a clock without a mark, in nanoseconds.
const COARSE_NS: u64 = 100;

/// Returns the marks that hold for every row of a run.
pub fn standing(places: &[Place], clock: Facts, debug_build: bool) -> Vec<Mark> {
    let shared = match crowded_host(places) {
        Some((host, ranks, cpus)) => Some(oversubscribed(host, ranks, cpus)),
        None => shared_cpu(places),
    };
    let debug_build = debug_build.then(|| {
        Mark::invalid("debug_build", "debug build", "this is a debug build of ombx: build with --release")
    });
    let all = [debug_build, coarse_clock(clock), shared, unbound(places), governor(places)];
    all.into_iter().flatten().collect()
}

/// Returns the mark of a host that has more ranks than CPUs.
pub fn oversubscribed(host: &str, ranks: usize, cpus: u32) -> Mark {
    Mark::invalid(
        "oversubscribed",
        "oversubscribed",
        format!("{ranks} ranks poll on {cpus} CPUs of {host}: use fewer ranks or more hosts"),
    )
}

/// Returns the mark of a benchmark that uses only some of the ranks.
pub fn idle_ranks(used: u32, started: u32) -> Mark {
    Mark::note(
        "idle_ranks",
        format!("{} idle", started - used),
        format!(
            "{used} of {started} ranks take part, the others sleep: start {used} ranks to have none idle"
        ),
    )
}

/// Returns the mark of a single-threaded benchmark in a run that starts MPI with a higher level than was asked for.
pub fn thread_multiple() -> Mark {
    Mark::note(
        "thread_multiple",
        "thread multiple",
        "another benchmark of these ranks needs MPI_THREAD_MULTIPLE, whose locks cost time: start with ombx, which gives that one \
         ranks of its own, or run this one alone",
    )
}

/// Returns the mark of ranks that have more threads than CPUs: of one rank, or of several on the same CPUs. The ranks of one number of
/// threads are all ranks; else they are the two of a pair.
pub fn crowded_threads(places: &[Place], threads: Threads) -> Option<Mark> {
    let threads_of: Vec<u32> = match threads {
        Threads::Each(threads) => vec![threads; places.len()],
        Threads::ByRole { senders, receivers } => vec![senders, receivers],
    };
    let ranks = || places.iter().zip(&threads_of).enumerate();
    ranks().find_map(|(rank, (place, threads))| {
        let cpus = place.cpu_numbers();
        let shares = |other: &Place| {
            other.host == place.host && other.cpu_numbers().iter().all(|cpu| cpus.contains(cpu))
        };
        let several = || ranks().filter(|(_, (other, _))| shares(other));
        let all: u32 = several().map(|(_, (_, threads))| threads).sum();
        let whose = match (*threads as usize > cpus.len(), all as usize > cpus.len()) {
            (true, _) => format!("{threads} threads of rank {rank}"),
            (false, true) => format!("{all} threads of {} ranks", several().count()),
            (false, false) => return None,
        };
        Some(Mark::invalid(
            "crowded_threads",
            "crowded threads",
            format!("{whose} poll on CPUs {} of {}: give each thread its own CPU", place.cpus, place.host),
        ))
    })
}

fn coarse_clock(Facts { source, resolution_ns, overhead_ns }: Facts) -> Option<Mark> {
    (resolution_ns > COARSE_NS || overhead_ns > COARSE_NS).then(|| {
        Mark::caution(
            "clock",
            "clock",
            format!(
                "the {source} clock has a resolution of {resolution_ns} ns and a reading costs {overhead_ns} ns: \
                 raise --batch for short times"
            ),
        )
    })
}

/// Returns the first host that has more ranks than CPUs, with both numbers.
fn crowded_host(places: &[Place]) -> Option<(&str, usize, u32)> {
    places.iter().find_map(|place| {
        let ranks = places.iter().filter(|other| other.host == place.host).count();
        (ranks > place.online as usize).then_some((place.host.as_str(), ranks, place.online))
    })
}

/// Marks two ranks of one host that are bound to the same single CPU.
fn shared_cpu(places: &[Place]) -> Option<Mark> {
    let mut seen = HashMap::new();
    let (first, second, host) = places.iter().enumerate().find_map(|(rank, place)| {
        let [cpu] = place.cpu_numbers().try_into().ok()?;
        let cpu: u32 = cpu;
        seen.insert((&place.host, cpu), rank).map(|first| (first, rank, &place.host))
    })?;
    Some(Mark::invalid(
        "shared_cpu",
        "shared CPU",
        format!(
            "ranks {first} and {second} are bound to the same CPU of {host}: bind each rank to its own CPU"
        ),
    ))
}

fn unbound(places: &[Place]) -> Option<Mark> {
    let (rank, place) = places
        .iter()
        .enumerate()
        .find(|(_, place)| place.online > 1 && place.cpu_numbers().len() as u32 >= place.online)?;
    let ranks = places.iter().filter(|other| other.host == place.host).count();
    // With a CPU to spare, the kernel seldom moves a rank or lets two of them share a CPU.
    let level = if ranks < place.online as usize { Level::Note } else { Level::Caution };
    let advice =
        format!("rank {rank} may run on every CPU of {}: bind ranks (mpiexec -bind-to core)", place.host);
    Some(Mark::of(level, "unbound", "unbound", advice))
}

/// Returns the mark of a rank whose CPUs are all far from the network devices of its host: in other NUMA nodes. Ranks of one host use no
/// network device.
pub fn far_device(places: &[Place], hosts: &[HostFacts]) -> Option<Mark> {
    let has_several_hosts = places.windows(2).any(|pair| pair[0].host != pair[1].host);
    let is_far = |(rank, place): (usize, &Place)| {
        let facts = &hosts.iter().find(|group| group.hosts.contains(&place.host))?.facts;
        let near = facts
            .iter()
            .filter_map(|(name, fact)| Some((name.strip_suffix(LOCAL_CPUS)?.trim(), fact.known()?)));
        let near: Vec<(&str, &str)> = near.collect();
        let own = place.cpu_numbers();
        let is_near = |(_, cpus): &(&str, &str)| parse_cpus(cpus).iter().any(|cpu| own.contains(cpu));
        let (device, cpus) = near.first().filter(|_| !near.iter().any(is_near))?;
        Some(Mark::note(
            "far_device",
            format!("far from {device}"),
            format!(
                "rank {rank} runs on CPUs {} of {}, and {device} is attached to CPUs {cpus}: bind ranks to these",
                place.cpus, place.host
            ),
        ))
    };
    places.iter().enumerate().filter(|_| has_several_hosts).find_map(is_far)
}

fn governor(places: &[Place]) -> Option<Mark> {
    let (host, governor) = places.iter().find_map(|place| {
        let governor = place.governor.as_deref().filter(|governor| *governor != "performance")?;
        Some((&place.host, governor))
    })?;
    Some(Mark::note(
        "governor",
        format!("governor {governor}"),
        format!("CPUs of {host} change frequency: set the governor to performance"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;

    const GOOD: Facts = Facts { source: "tsc", resolution_ns: 1, overhead_ns: 9 };

    fn place(host: &str, cpus: &str) -> Place {
        Place { host: host.into(), cpus: cpus.into(), online: 2, governor: None }
    }

    #[test]
    fn bound_ranks_get_no_mark() {
        assert!(standing(&[place("a", "0"), place("a", "1")], GOOD, false).is_empty());
        assert!(standing(&[place("a", "0"), place("b", "0")], GOOD, false).is_empty());
    }

    #[test]
    fn each_risk_gets_its_mark() {
        let cases: [(&[Place], Facts, bool, &str); 6] = [
            (&[place("a", "0")], GOOD, true, "invalid debug_build"),
            (&[place("a", "0")], Facts { overhead_ns: 500, ..GOOD }, false, "caution clock"),
            (&[place("a", "0"), place("a", "1"), place("a", "0")], GOOD, false, "invalid oversubscribed"),
            (&[place("a", "1"), place("a", "1")], GOOD, false, "invalid shared_cpu"),
            (&[place("a", "0-1"), place("b", "0")], GOOD, false, "note unbound"),
            (
                &[Place { governor: Some("powersave".into()), ..place("a", "0") }],
                GOOD,
                false,
                "note governor",
            ),
        ];
        for (places, clock, debug, expected) in cases {
            let marks = standing(places, clock, debug);
            let found = marks.iter().map(|mark| format!("{} {}", mark.level.name(), mark.code));
            assert_eq!(found.collect::<Vec<_>>(), [expected]);
        }
    }

    #[test]
    fn unbound_ranks_matter_where_no_cpu_is_left_free() {
        let level = |places: &[Place]| standing(places, GOOD, false)[0].level;
        assert_eq!(level(&[place("a", "0-1"), place("b", "0-1")]), Level::Note);
        assert_eq!(level(&[place("a", "0-1"), place("a", "0-1")]), Level::Caution);
    }

    #[test]
    fn a_rank_far_from_its_network_device_is_named() {
        let fact = |cpus: &str| ("mlx5_0 local CPUs".to_owned(), Fact::Known(cpus.into()));
        let hosts = [
            HostFacts { hosts: vec!["a".into()], facts: [fact("0-1")].into() },
            HostFacts { hosts: vec!["b".into()], facts: [fact("2-3")].into() },
        ];
        assert_eq!(far_device(&[place("a", "1"), place("b", "2-3")], &hosts), None);
        assert_eq!(far_device(&[place("b", "0"), place("b", "1")], &hosts), None);
        let mark = far_device(&[place("a", "1"), place("b", "0-1")], &hosts).unwrap();
        assert_eq!((mark.level, mark.short.as_str()), (Level::Note, "far from mlx5_0"));
        assert!(mark.advice.starts_with("rank 1 runs on CPUs 0-1 of b, and mlx5_0 is attached to CPUs 2-3"));
    }

    #[test]
    fn threads_need_a_cpu_each() {
        let threads = |text: &str| text.parse::<Threads>().unwrap();
        let places = [place("a", "0"), place("a", "1-3")];
        assert_eq!(crowded_threads(&places, threads("1:3")), None);
        let advice = |text: &str| crowded_threads(&places, threads(text)).unwrap().advice;
        assert!(advice("2:3").starts_with("2 threads of rank 0 poll on CPUs 0"));
        assert!(advice("1:4").starts_with("4 threads of rank 1 poll on CPUs 1-3"));
        let two = |threads, first, second| {
            let mark = crowded_threads(&[place("a", first), place(second, "0-3")], Threads::Each(threads));
            mark.map(|mark| mark.advice)
        };
        assert_eq!(two(2, "0-3", "a"), None);
        assert!(two(3, "0-3", "a").unwrap().starts_with("6 threads of 2 ranks poll on CPUs 0-3"));
        assert_eq!(two(3, "0-3", "b"), None);
        assert!(two(5, "0-7", "b").unwrap().starts_with("5 threads of rank 1 poll on CPUs 0-3"));
    }
}
