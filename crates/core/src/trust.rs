//! Marks: what could have disturbed a row, and what to do about it. A row without marks had no such problem.

mod row;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ombx_host::machine::{ACTIVE, INTERRUPTS, LOCAL_CPUS, RATE, SPEED, STATE, megabits};
use ombx_record::{
    cpu_list::{cpu_list, parse_cpus},
    fact::{Fact, HostFacts},
    result::{ClockProperties, CpuQuota, Level, Mark, MarkCode, Place},
    stats::Summary,
    unit::counted,
};

use crate::benchmark::Threads;

pub use self::row::{
    RowFacts, below_one_way, clocks_apart, costly_clock, late_starts, of_row, of_samples, one_byte,
    saturated, several_levels, starts_apart, throttled, wrong_clock,
};

/// Codes of the marks that make the interval of a row unreliable.
pub const SPOILS_THE_INTERVAL: [MarkCode; 4] =
    [MarkCode::NoInterval, MarkCode::NotConverged, MarkCode::Autocorrelated, MarkCode::Bimodal];

/// Precision that stands for "as precise as possible".
const DEFAULT_PRECISION: f64 = 0.02;

/// Returns which effect on the time of a row is tolerated, as a fraction: half the interval or the requested precision, whichever is larger.
fn tolerated(summary: &Summary, precision: f64) -> f64 {
    let precision = if precision.is_finite() { precision } else { DEFAULT_PRECISION };
    summary.precision().map_or(precision, |half| half.max(precision))
}

/// Maximum resolution and maximum overhead of a clock without a mark, in nanoseconds.
const COARSE_NS: u64 = 100;

/// Returns the mark of every row that a debug build measures.
pub fn debug_build() -> Mark {
    Mark::new(MarkCode::DebugBuild, "debug build", "this is a debug build of ombx")
}

/// Returns the marks that hold for every row of a run, whatever the build.
pub fn standing(places: &[Place], clock: ClockProperties) -> Vec<Mark> {
    let shared = crowded_host(places).or_else(|| shared_cpu(places)).or_else(|| crowded_mask(places));
    let all = [coarse_clock(clock), shared, crowded_quota(places), unbound(places), governor(places)];
    all.into_iter().flatten().collect()
}

/// Returns the mark of a host that has more ranks than CPUs.
pub fn oversubscribed(host: &str, ranks: usize, cpus: u32) -> Mark {
    let cause = format!("{ranks} ranks poll on {cpus} CPUs of {host}");
    Mark::new(MarkCode::Oversubscribed, "oversubscribed", cause)
}

/// Returns the mark of a host that has more ranks than a quota of CPU time allows to be busy.
pub fn over_quota(host: &str, ranks: usize, quota: CpuQuota) -> Mark {
    let cause = format!(
        "{} on {host} would keep {} busy by polling, but the control group allows {quota}",
        counted(ranks, "rank"),
        counted(ranks, "CPU")
    );
    Mark::new(MarkCode::OverQuota, format!("quota of {quota}"), cause)
}

/// Returns the mark of a benchmark that uses only some of the ranks.
pub fn idle_ranks(used: u32, started: u32) -> Mark {
    Mark::with_advice(
        MarkCode::IdleRanks,
        format!("{} idle", started - used),
        format!(
            "{used} of {started} ranks take part, the others sleep: start {used} ranks to have none idle"
        ),
    )
}

/// Returns the mark of a single-threaded benchmark in a run that starts MPI with a higher level than was asked for.
pub fn thread_multiple() -> Mark {
    let cause = "another benchmark of these ranks needs MPI_THREAD_MULTIPLE, whose locks cost time";
    Mark::new(MarkCode::ThreadMultiple, "thread multiple", cause)
}

/// Returns the mark of ranks that have more threads than CPUs: of one rank, or of several on the same CPUs. The ranks of one number of
/// threads are all ranks; else they are the two of a pair.
pub fn crowded_threads(places: &[Place], threads: Threads) -> Option<Mark> {
    let threads_of: Vec<u32> = match threads {
        Threads::Each(threads) => vec![threads; places.len()],
        Threads::ByRole { senders, receivers } => vec![senders, receivers],
    };
    let mut on_host: HashMap<&str, Vec<(&Place, u32)>> = HashMap::new();
    for (place, threads) in places.iter().zip(&threads_of) {
        on_host.entry(&place.host).or_default().push((place, *threads));
    }
    places.iter().zip(&threads_of).enumerate().find_map(|(rank, (place, threads))| {
        let cpus = place.cpu_numbers();
        let neighbours = on_host.get(place.host.as_str())?;
        let shares = |other: &Place| other.cpu_numbers().iter().all(|cpu| cpus.contains(cpu));
        let several = || neighbours.iter().filter(|(other, _)| shares(other));
        let all: u32 = several().map(|(_, threads)| threads).sum();
        let whose = match (*threads as usize > cpus.len(), all as usize > cpus.len()) {
            (true, _) => format!("{threads} threads of rank {rank}"),
            (false, true) => format!("{all} threads of {} ranks", several().count()),
            (false, false) => return None,
        };
        let cause = format!("{whose} poll on CPUs {} of {}", place.cpus, place.host);
        Some(Mark::new(MarkCode::CrowdedThreads, "crowded threads", cause))
    })
}

fn coarse_clock(ClockProperties { source, resolution_ns, overhead_ns }: ClockProperties) -> Option<Mark> {
    (resolution_ns > COARSE_NS || overhead_ns > COARSE_NS).then(|| {
        let cause = format!(
            "the {source} clock has a resolution of {resolution_ns} ns and a reading costs {overhead_ns} ns"
        );
        Mark::new(MarkCode::Clock, "clock", cause)
    })
}

/// Returns the number of ranks of each host.
fn ranks_of_hosts(places: &[Place]) -> HashMap<&str, usize> {
    let mut ranks_of: HashMap<&str, usize> = HashMap::new();
    for place in places {
        *ranks_of.entry(place.host.as_str()).or_default() += 1;
    }
    ranks_of
}

/// Marks the first host that has more ranks than CPUs.
fn crowded_host(places: &[Place]) -> Option<Mark> {
    let ranks_of = ranks_of_hosts(places);
    places.iter().find_map(|place| {
        let ranks = ranks_of[place.host.as_str()];
        (ranks > place.online as usize).then(|| oversubscribed(&place.host, ranks, place.online))
    })
}

/// Marks the first host whose ranks may use fewer CPUs, all together, than they are, as in a container with few CPUs of its host.
fn crowded_mask(places: &[Place]) -> Option<Mark> {
    let mut cpus_of: HashMap<&str, BTreeSet<u32>> = HashMap::new();
    for place in places {
        cpus_of.entry(&place.host).or_default().extend(place.cpu_numbers());
    }
    let ranks_of = ranks_of_hosts(places);
    places.iter().find_map(|place| {
        let (ranks, cpus) = (ranks_of[place.host.as_str()], cpus_of[place.host.as_str()].len());
        (cpus > 0 && ranks > cpus).then(|| oversubscribed(&place.host, ranks, cpus as u32))
    })
}

/// Marks the first host whose ranks have a quota of CPU time that is below their number. Ranks of one host are taken to be in one group.
fn crowded_quota(places: &[Place]) -> Option<Mark> {
    let ranks_of = ranks_of_hosts(places);
    places.iter().find_map(|place| {
        let ranks = ranks_of[place.host.as_str()];
        let quota = place.quota.filter(|quota| quota.is_below(u32::try_from(ranks).unwrap_or(u32::MAX)))?;
        Some(over_quota(&place.host, ranks, quota))
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
    let cause = format!("ranks {first} and {second} are bound to the same CPU of {host}");
    Some(Mark::new(MarkCode::SharedCpu, "shared CPU", cause))
}

fn unbound(places: &[Place]) -> Option<Mark> {
    let (rank, place) = places
        .iter()
        .enumerate()
        .find(|(_, place)| place.online > 1 && place.cpu_numbers().len() as u32 >= place.online)?;
    let ranks = places.iter().filter(|other| other.host == place.host).count();
    // With a CPU to spare, the kernel seldom moves a rank or lets two of them share a CPU.
    let level = if ranks < place.online as usize { Level::Note } else { Level::Caution };
    let cause = format!("rank {rank} may run on every CPU of {}", place.host);
    Some(Mark::new(MarkCode::Unbound, "unbound", cause).at(level))
}

/// Network devices that a run can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usable {
    /// Interfaces, as sockets do.
    Interfaces,
    /// Interfaces and RDMA adapters.
    All,
}

impl Usable {
    /// Returns the devices that a fabric can use, by its name ([`crate::team::Fabric`]).
    pub fn by_fabric(name: &str) -> Usable {
        if name == "sockets" { Usable::Interfaces } else { Usable::All }
    }
}

/// A network device that is attached to CPUs.
#[derive(Debug, Default)]
struct Device<'f> {
    name: &'f str,
    /// Whether it has ports, which interfaces do not.
    is_adapter: bool,
    /// Speed in Mbit/s, if it is known. Of an RDMA adapter it is that of its fastest active port.
    speed: Option<u64>,
    /// CPUs of its NUMA node; empty if the node is not known.
    local: BTreeSet<u32>,
    /// CPUs that handle its interrupts; empty if they are not known.
    interrupts: BTreeSet<u32>,
}

/// Returns the interfaces and RDMA adapters of a host with the highest speed; without a known speed all of them. Devices that are attached
/// to no CPUs do not count: bonds, VLANs, and adapters in software such as Soft RoCE.
fn fast_devices(host: &HostFacts, usable: Usable) -> Vec<Device<'_>> {
    let mut by_name: BTreeMap<&str, Device<'_>> = BTreeMap::new();
    for (fact, value) in host.facts.iter().filter_map(|(fact, value)| Some((fact, value.known()?))) {
        let Some((name, property)) = fact.split_once(' ') else { continue };
        let device = by_name.entry(name).or_insert_with(|| Device { name, ..Device::default() });
        device.is_adapter |= property.starts_with("port ");
        match property {
            LOCAL_CPUS => device.local = parse_cpus(value).into_iter().collect(),
            // `0-2 instead of 4-7`
            INTERRUPTS => {
                let handling = value.split(' ').next().unwrap_or_default();
                device.interrupts = parse_cpus(handling).into_iter().collect();
            }
            SPEED => device.speed = megabits(value),
            _ if property.ends_with(RATE) && is_active(host, fact) => {
                device.speed = device.speed.max(megabits(value));
            }
            _ => {}
        }
    }
    let is_attached = |device: &Device<'_>| !device.local.is_empty() || !device.interrupts.is_empty();
    let is_usable = |device: &Device<'_>| usable == Usable::All || !device.is_adapter;
    let mut devices: Vec<Device<'_>> = by_name.into_values().filter(is_attached).filter(is_usable).collect();
    let highest = devices.iter().filter_map(|device| device.speed).max();
    devices.retain(|device| device.speed == highest);
    devices
}

/// Returns whether the port with this rate, such as `mlx5_0 port 1 rate`, carries messages.
fn is_active(host: &HostFacts, rate: &str) -> bool {
    let state = rate.strip_suffix(RATE).and_then(|port| host.facts.get(&format!("{port}{STATE}")));
    state.and_then(Fact::known) == Some(ACTIVE)
}

/// Returns the mark of the first rank that has one, given the fast network devices of its host. Ranks of one host use no network device.
fn first_mark(
    places: &[Place],
    hosts: &[HostFacts],
    usable: Usable,
    mark: impl Fn(u32, &Place, &[Device<'_>]) -> Option<Mark>,
) -> Option<Mark> {
    if places.windows(2).all(|pair| pair[0].host == pair[1].host) {
        return None;
    }
    let devices: Vec<Vec<Device<'_>>> = hosts.iter().map(|group| fast_devices(group, usable)).collect();
    let mut of_host: HashMap<&str, &[Device<'_>]> = HashMap::new();
    for (group, devices) in hosts.iter().zip(&devices) {
        of_host.extend(group.hosts.iter().map(|host| (host.as_str(), devices.as_slice())));
    }
    (0..).zip(places).find_map(|(rank, place)| mark(rank, place, of_host.get(place.host.as_str()).copied()?))
}

/// Returns the mark of a rank whose CPUs are all far from the fast network devices of its host: in other NUMA nodes.
pub fn far_device(places: &[Place], hosts: &[HostFacts], usable: Usable) -> Option<Mark> {
    first_mark(places, hosts, usable, far_rank)
}

/// Returns the mark of a rank whose CPUs are all far from these devices.
fn far_rank(rank: u32, place: &Place, devices: &[Device<'_>]) -> Option<Mark> {
    let own = place.cpu_numbers();
    let is_near = |device: &Device<'_>| own.iter().any(|cpu| device.local.contains(cpu));
    let first = devices.iter().find(|device| !device.local.is_empty())?;
    if devices.iter().any(is_near) {
        return None;
    }
    let (device, cpus) = (first.name, cpu_list(&first.local));
    Some(Mark::with_advice(
        MarkCode::FarDevice,
        format!("far from {device}"),
        format!(
            "rank {rank} runs on CPUs {} of {}, and {device} is attached to CPUs {cpus}: bind ranks to \
             these, unless the run uses a slower device",
            place.cpus, place.host
        ),
    ))
}

/// Returns the mark of a rank all of whose CPUs also handle the interrupts of a fast network device, while other CPUs of its NUMA node
/// handle none. If all of them do, a rank near the device cannot avoid the interrupts.
pub fn interrupted(places: &[Place], hosts: &[HostFacts], usable: Usable) -> Option<Mark> {
    first_mark(places, hosts, usable, interrupted_rank)
}

/// Returns the mark of a rank all of whose CPUs also handle the interrupts of one of these devices, while others could.
fn interrupted_rank(rank: u32, place: &Place, devices: &[Device<'_>]) -> Option<Mark> {
    let own = place.cpu_numbers();
    let (device, others) = devices.iter().find_map(|Device { name, local, interrupts, .. }| {
        if interrupts.is_empty() || !own.iter().all(|cpu| interrupts.contains(cpu)) {
            return None;
        }
        if local.is_empty() {
            return (interrupts.len() < place.online as usize).then(|| (name, "others".to_owned()));
        }
        let free: BTreeSet<u32> = local.difference(interrupts).copied().collect();
        (!free.is_empty()).then(|| (name, format!("CPUs {}", cpu_list(&free))))
    })?;
    Some(Mark::with_advice(
        MarkCode::Interrupts,
        format!("interrupts of {device}"),
        format!(
            "rank {rank} runs on CPUs {} of {}, which also handle the interrupts of {device}: bind it to {others}",
            place.cpus, place.host
        ),
    ))
}

fn governor(places: &[Place]) -> Option<Mark> {
    let (host, governor) = places.iter().find_map(|place| {
        let governor = place.governor.as_deref().filter(|governor| *governor != "performance")?;
        Some((&place.host, governor))
    })?;
    let cause = format!("CPUs of {host} change frequency");
    Some(Mark::new(MarkCode::Governor, format!("governor {governor}"), cause))
}

#[cfg(test)]
mod standing_tests {
    use super::*;
    use crate::benchmark::ParameterValue;

    const GOOD: ClockProperties = ClockProperties { source: "tsc", resolution_ns: 1, overhead_ns: 9 };

    fn place(host: &str, cpus: &str) -> Place {
        Place { host: host.into(), cpus: cpus.into(), online: 2, governor: None, quota: None }
    }

    #[test]
    fn bound_ranks_get_no_mark() {
        assert!(standing(&[place("a", "0"), place("a", "1")], GOOD).is_empty());
        assert!(standing(&[place("a", "0"), place("b", "0")], GOOD).is_empty());
    }

    #[test]
    fn each_risk_gets_its_mark() {
        let cases: [(&[Place], ClockProperties, &str); 5] = [
            (&[place("a", "0")], ClockProperties { overhead_ns: 500, ..GOOD }, "caution clock"),
            (&[place("a", "0"), place("a", "1"), place("a", "0")], GOOD, "invalid oversubscribed"),
            (&[place("a", "1"), place("a", "1")], GOOD, "invalid shared_cpu"),
            (&[place("a", "0-1"), place("b", "0")], GOOD, "note unbound"),
            (&[Place { governor: Some("powersave".into()), ..place("a", "0") }], GOOD, "note governor"),
        ];
        for (places, clock, expected) in cases {
            let marks = standing(places, clock);
            let found = marks.iter().map(|mark| format!("{} {}", mark.level.name(), mark.code));
            assert_eq!(found.collect::<Vec<_>>(), [expected]);
        }
    }

    #[test]
    fn ranks_need_as_many_cpus_as_their_mask_and_their_quota_allow() {
        let found = |places: &[Place]| {
            let marks = standing(places, GOOD).into_iter().map(|mark| (mark.code, mark.advice));
            marks.collect::<Vec<_>>()
        };
        let on = |cpus: &str, quota: Option<u64>| Place {
            online: 64,
            quota: quota.and_then(|us| CpuQuota::new(us, 100_000)),
            ..place("a", cpus)
        };
        let [(code, advice)] =
            found(&[on("3-4", None), on("3-4", None), on("3-4", None)]).try_into().unwrap();
        assert_eq!(code, MarkCode::Oversubscribed);
        assert!(advice.starts_with("3 ranks poll on 2 CPUs of a"), "{advice}");
        assert_eq!(found(&[on("3-4", None), on("3-4", None)]), []);
        let half = Some(150_000);
        let [(code, advice)] = found(&[on("3", half), on("4", half)]).try_into().unwrap();
        assert_eq!(code, MarkCode::OverQuota);
        assert!(
            advice.starts_with(
                "2 ranks on a would keep 2 CPUs busy by polling, but the control group allows 1.5 CPUs: raise"
            ),
            "{advice}"
        );
        assert_eq!(found(&[on("3", Some(200_000)), on("4", Some(200_000))]), []);
        assert_eq!(found(&[on("3", half), Place { host: "b".into(), ..on("4", half) }]), []);
    }

    #[test]
    fn unbound_ranks_matter_where_no_cpu_is_left_free() {
        let level = |places: &[Place]| standing(places, GOOD)[0].level;
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
        assert_eq!(far_device(&[place("a", "1"), place("b", "2-3")], &hosts, Usable::All), None);
        assert_eq!(far_device(&[place("b", "0"), place("b", "1")], &hosts, Usable::All), None);
        let mark = far_device(&[place("a", "1"), place("b", "0-1")], &hosts, Usable::All).unwrap();
        assert_eq!((mark.level, mark.short.as_str()), (Level::Note, "far from mlx5_0"));
        assert!(mark.advice.starts_with("rank 1 runs on CPUs 0-1 of b, and mlx5_0 is attached to CPUs 2-3"));
    }

    #[test]
    fn a_device_that_carries_no_messages_is_not_near_or_interrupting() {
        let marked_with = |usable: Usable, facts: &[(&str, &str)]| {
            let local =
                [("eth0 local CPUs", "0-1"), ("eth1 local CPUs", "2-3"), ("mlx5_0 local CPUs", "4-5")];
            let interrupts = [("eth0 interrupt CPUs", "0")];
            let all = local.iter().chain(&interrupts).chain(facts);
            let facts = all.map(|(name, value)| ((*name).to_owned(), Fact::Known((*value).to_owned())));
            let hosts = [HostFacts { hosts: vec!["a".into(), "b".into()], facts: facts.collect() }];
            let places = [place("a", "0"), place("b", "0")];
            let marks = [far_device(&places, &hosts, usable), interrupted(&places, &hosts, usable)];
            marks.map(|mark| mark.map(|mark| mark.short))
        };
        let marked = |facts: &[(&str, &str)]| marked_with(Usable::All, facts);
        let slow = Some("interrupts of eth0".to_owned());
        let far = |device: &str| Some(format!("far from {device}"));
        assert_eq!(marked(&[]), [None, slow.clone()]);
        assert_eq!(marked(&[("eth0 speed", "1 Gbit/s"), ("eth1 speed", "1 Gbit/s")]), [None, slow]);
        assert_eq!(
            marked(&[("eth0 speed", "1 Gbit/s of 10 Gbit/s"), ("eth1 speed", "25 Gbit/s")]),
            [far("eth1"), None]
        );
        assert_eq!(marked(&[("mlx5_0 port 1 state", "DOWN"), ("eth1 speed", "25 Gbit/s")])[0], far("eth1"));
        assert_eq!(marked(&[("bond0 speed", "50 Gbit/s"), ("eth1 speed", "25 Gbit/s")])[0], far("eth1"));
        // The rate of an adapter and the speed of an interface are compared.
        let adapter = [("mlx5_0 port 1 rate", "100 Gb/sec (4X EDR)"), ("mlx5_0 port 1 state", "ACTIVE")];
        let beside = |speed: &'static str| marked(&[&adapter[..], &[("eth0 speed", speed)]].concat());
        assert_eq!(beside("1 Gbit/s"), [far("mlx5_0"), None]);
        let of_sockets = [&adapter[..], &[("eth0 speed", "1 Gbit/s")]].concat();
        let found = marked_with(Usable::by_fabric("sockets"), &of_sockets);
        assert_eq!(found, [None, Some("interrupts of eth0".to_owned())]);
        let slow_eth0 = Some("interrupts of eth0".to_owned());
        assert_eq!(beside("200 Gbit/s"), [None, slow_eth0.clone()]);
        // A card has an interface and an adapter with the same speed.
        assert_eq!(beside("100 Gbit/s"), [None, slow_eth0]);
    }

    #[test]
    fn a_slow_adapter_or_one_without_hardware_hides_no_interface() {
        let far = |facts: &[(&str, &str)]| {
            let fact = |(name, value): &(&str, &str)| ((*name).to_owned(), Fact::Known((*value).to_owned()));
            let facts = facts.iter().map(fact);
            let hosts = [HostFacts { hosts: vec!["a".into(), "b".into()], facts: facts.collect() }];
            far_device(&[place("a", "0"), place("b", "0")], &hosts, Usable::All).map(|mark| mark.short)
        };
        let interface = [("eth1 speed", "100 Gbit/s"), ("eth1 local CPUs", "2-3")];
        let onboard = [
            ("irdma0 local CPUs", "0-1"),
            ("irdma0 port 1 rate", "2.5 Gb/sec (1X SDR)"),
            ("irdma0 port 1 state", "ACTIVE"),
        ];
        let in_software = [("rxe0 port 1 rate", "400 Gb/sec (4X NDR)"), ("rxe0 port 1 state", "ACTIVE")];
        let far_from_eth1 = Some("far from eth1".to_owned());
        assert_eq!(far(&[&interface[..], &onboard[..]].concat()), far_from_eth1);
        assert_eq!(far(&[&interface[..], &in_software[..]].concat()), far_from_eth1);
        // The fastest active port counts.
        let port = |number: u32, rate: &str, state: &str| {
            let name = |property: &str| format!("mlx5_0 port {number} {property}");
            [(name("rate"), rate.to_owned()), (name("state"), state.to_owned())]
        };
        let two_ports =
            [port(1, "200 Gb/sec (4X HDR)", "DOWN"), port(2, "50 Gb/sec (2X EDR)", "ACTIVE")].concat();
        let mut adapter: Vec<(&str, &str)> =
            two_ports.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        adapter.push(("mlx5_0 local CPUs", "4-5"));
        assert_eq!(far(&[&interface[..], &adapter[..]].concat()), far_from_eth1);
        assert_eq!(far(&adapter), Some("far from mlx5_0".to_owned()));
    }

    #[test]
    fn a_rank_on_the_cpus_of_interrupts_is_named_if_there_are_others() {
        let fact = |cpus: &str| ("eth0 interrupt CPUs".to_owned(), Fact::Known(cpus.into()));
        let hosts =
            |cpus: &str| vec![HostFacts { hosts: vec!["a".into(), "b".into()], facts: [fact(cpus)].into() }];
        let both = [place("a", "1"), place("b", "0")];
        assert_eq!(interrupted(&both, &hosts("2-3"), Usable::All), None);
        let alone = interrupted(&both[..1], &hosts("1"), Usable::All);
        assert_eq!(alone, None, "ranks of one host need no network");
        let all = format!("0-{}", both[0].online - 1);
        assert_eq!(interrupted(&both, &hosts(&all), Usable::All), None);
        let mark = interrupted(&both, &hosts("0 instead of 2-3"), Usable::All).unwrap();
        assert_eq!((mark.level, mark.short.as_str()), (Level::Note, "interrupts of eth0"));
        assert!(mark.advice.starts_with("rank 1 runs on CPUs 0 of b, "), "{}", mark.advice);
        // Only CPUs near the device count: those far from it would get another mark.
        let near = |cpus: &str| {
            let mut hosts = hosts("0-1");
            hosts[0].facts.insert("eth0 local CPUs".into(), Fact::Known(cpus.into()));
            let places = both.clone().map(|place| Place { online: 8, ..place });
            interrupted(&places, &hosts, Usable::All).map(|mark| mark.advice)
        };
        assert_eq!(near("0-1"), None);
        assert!(near("0-4").unwrap().ends_with("bind it to CPUs 2-4"));
    }

    #[test]
    fn threads_need_a_cpu_each() {
        let threads = |text: &str| Threads::parse(text).unwrap();
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
