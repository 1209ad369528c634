//! The parts of a run that IMB's options give. Options without an equivalent are rejected with a reason.

use std::{collections::BTreeSet, iter, path::Path, time::Duration};

use ombx_core::{
    benchmark::{
        Benchmark, Choice, Chosen, Depth, ElementType, Groups, Layout, MEMORY_LIMIT, PairCount, Pairs,
        Parameter, ParameterValue, Root, Threading,
        memory::{Api, BufferMemory, CACHE_SIZE, Cache},
        payload::Datatype,
    },
    measure::{
        plan::{Effort, Plan, RowBounds},
        runner::Part,
    },
};
use ombx_record::{
    error::{Error, Result},
    regular_file::{read_named_on_ranks, shown_name},
    unit::{Bytes, parse_sizes},
};

use crate::imb::{
    ImbBenchmark, ImbClass, ImbGroups, ImbMode,
    options::{ImbOptions, OffCache},
    programs::{Entry, Program},
    types,
};

/// Default of `-n` and of `-npmin`.
pub const RANKS: u32 = 2;

/// Default exponents of message sizes: 1 byte to 4 MiB.
const EXPONENTS: (u32, u32) = (0, 22);
/// Parameter of benchmarks with files.
const DIRECTORY: &str = "directory";
/// Untimed iterations of IMB.
const WARM_UP: u64 = 2;
/// Operations in flight by default.
pub(crate) const WINDOW: u32 = 64;

/// Rejects options that ombx does not have.
///
/// # Errors
/// Usage error with the first of them.
pub fn reject(options: &ImbOptions, program: &Program) -> Result<()> {
    let other = &options.other;
    let not = |given: &Option<String>, usual: &[&str]| {
        given.as_ref().is_some_and(|given| !usual.iter().any(|usual| given.eq_ignore_ascii_case(usual)))
    };
    let why = [
        (
            options.mem_alloc_type.is_some() && !program.has_accelerators,
            "-mem_alloc_type is an option of IMB-MPI1-GPU and IMB-RMA-GPU: leave it out",
        ),
        (
            options.off_cache.is_some_and(|cache| cache != OffCache::No) && options.root_shift == Some(true),
            "-off_cache and -root_shift: roots are fixed where buffers are not in the cache; leave out one of them",
        ),
        (
            options.directory.is_some() && !program.has_files(),
            "--directory is for files, which IMB-IO has: leave it out",
        ),
        (not(&other.msg_pause, &["0", "off"]), "-msg_pause: ombx makes no pauses between messages"),
        (
            [other.msgwr, other.msgrd].into_iter().flatten().any(|is_on| is_on),
            "-msgwr and -msgrd: ombx does not access messages in the timed region; use off",
        ),
    ];
    match why.iter().find(|(given, _)| *given) {
        Some((_, why)) => Err(Error::usage(*why)),
        None => Ok(()),
    }
}

/// Rejects two names of the same measurement, whose rows would have the same key.
///
/// Benchmarks without a fixed number of processes run with at least `least` of them.
///
/// # Errors
/// Usage error that names both.
pub fn reject_repetition(entries: &[&'static Entry], least: u32) -> Result<()> {
    let mut known: Vec<ImbBenchmark> = Vec::new();
    for table in entries.iter().flat_map(|entry| entry.tables()) {
        // The same benchmark runs with one process, and then with several.
        let same_ranks = |other: &ImbBenchmark| other.ranks == table.ranks || least == 1;
        let is_same = |other: &&ImbBenchmark| {
            other.bench == table.bench && other.axes == table.axes && same_ranks(other)
        };
        if let Some(ImbBenchmark { name, .. }) = known.iter().find(is_same) {
            return Err(Error::usage(format!(
                "{} measures the same as {name} in ombx: name one of them, or add -exclude {name}",
                table.name
            )));
        }
        known.push(table);
    }
    Ok(())
}

/// Returns differences from IMB that the user should know.
pub fn notes(options: &ImbOptions, entries: &[&Entry]) -> Vec<String> {
    let other = &options.other;
    let mut notes = Vec::new();
    if other.pause.is_some() {
        notes.push("-pause has no effect: ombx makes no pauses between benchmarks".to_owned());
    }
    if other.sync.is_some() || other.imb_barrier.is_some() {
        notes.push(
            "-sync and -imb_barrier have no effect: each sample of a collective starts after a barrier"
                .to_owned(),
        );
    }
    if entries.iter().any(|entry| entry.name == "Biband") {
        notes.push("Biband runs with 2 processes".to_owned());
    }
    notes
}

/// Returns the message sizes.
///
/// # Errors
/// Usage error for a file that cannot be read or that has other lines.
pub fn sizes(options: &ImbOptions, program: &Program) -> Result<Vec<Bytes>> {
    if let Some(path) = &options.msglen {
        let wrong = |why: String| Error::usage(format!("-msglen {}: {why}", path.display()));
        let sizes = lines(path)?.iter().map(|line| line.parse()).collect::<Result<Vec<Bytes>>>();
        return match sizes.map_err(|e| wrong(e.to_string()))? {
            sizes if sizes.is_empty() => Err(wrong("the file has no message size".to_owned())),
            sizes => Ok(sizes),
        };
    }
    if !options.msgsize.is_empty() {
        return Ok(options.msgsize.clone());
    }
    let (least, most) = options.msglog.map_or(EXPONENTS, |range| (range.least.unwrap_or(0), range.most));
    // In IMB-P2P a smallest exponent leaves out size 0.
    let starts_above = program.is_peer_to_peer() && options.msglog.is_some_and(|range| range.least.is_some());
    let has_zero = options.zero_size.unwrap_or(!starts_above);
    Ok(has_zero.then_some(Bytes(0)).into_iter().chain((least..=most).map(|n| Bytes(1 << n))).collect())
}

/// Returns the lines of a file that are neither empty nor comments.
///
/// # Errors
/// Usage error for a file that cannot be read.
pub fn lines(path: &Path) -> Result<Vec<String>> {
    let text = read_named_on_ranks(path)
        .map_err(|e| Error::usage(format!("cannot read {}: {e}", shown_name(path))))?;
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

/// Rejects groups of processes with benchmarks that have none, all of which the reason names.
///
/// # Errors
/// Usage error that names them.
pub fn reject_ungrouped(options: &ImbOptions, tables: &[(Choice, ImbBenchmark)]) -> Result<()> {
    let ungrouped =
        tables.iter().filter(|(choice, _)| !choice.bench.has(Groups::PARAMETER)).map(|(_, table)| table.name);
    let names: BTreeSet<&str> = ungrouped.collect();
    if options.multi.is_none() || names.is_empty() {
        return Ok(());
    }
    let has_others = tables.iter().any(|(choice, _)| choice.bench.has(Groups::PARAMETER));
    let names = Vec::from_iter(names).join(",");
    let or_exclude = if has_others { format!(", or add -exclude {names}") } else { String::new() };
    Err(Error::usage(format!(
        "-multi: ombx has groups of processes for collectives only, and not for {names}: leave out -multi{or_exclude}"
    )))
}

/// Rejects groups of processes that cannot be measured.
fn check_groups(shown: ImbGroups, table: &ImbBenchmark, ranks: Option<u32>) -> Result<()> {
    let (name, has_overlap) =
        (table.name, matches!(table.class, ImbClass::Overlap | ImbClass::OverlapBarrier));
    let why = match ranks {
        _ if shown == ImbGroups::Separate && has_overlap => {
            format!("-multi 1: ombx has the overlap of all groups only: use -multi 0, or {name}_pure")
        }
        None => "-multi needs the number of processes, which the launcher does not publish".to_owned(),
        Some(_) => return Ok(()),
    };
    Err(Error::usage(why))
}

/// Returns how many groups of `size` processes there are, and how many processes they have together.
fn groups_of(size: u32, ranks: u32) -> (Groups, u32) {
    let groups = Groups::new(ranks / size).filter(|groups| groups.divide(groups.count() * size).is_ok());
    let groups = groups.unwrap_or(Groups::ONE);
    (groups, groups.count() * size)
}

/// Returns the parts of a table: for each number of processes, one for all sizes with the same number of iterations.
///
/// # Errors
/// Usage error for groups of processes that cannot be measured, and for sizes below one element.
pub fn parts(
    options: &ImbOptions,
    choice: Choice,
    table: &ImbBenchmark,
    sizes: &[Bytes],
    ranks: Option<u32>,
) -> Result<Vec<Part>> {
    let bench = choice.bench;
    let shown = options.multi;
    if let Some(shown) = shown {
        check_groups(shown, table, ranks)?;
    }
    let with_all = table.class == ImbClass::Messages;
    let is_single = table.mode == Some(ImbMode::Single);
    let aggregate = bench.own.streams.exists() && table.class != ImbClass::Rate && !is_single;
    let iter = options.iter.unwrap_or_default();
    let has_sync = is_single && table.bench.starts_with("io.") || table.bench == "io.iwrite";
    let iter = if has_sync { iter.of_single() } else { iter };
    let element = types::element(&options.types, bench);
    let own = if bench.messages.one_element {
        vec![Bytes(element.width())]
    } else {
        parse_sizes(bench.messages.sizes)?
    };
    // A benchmark with a single size, such as an atomic operation, has no others.
    let sizes = if own.len() > 1 { sizes } else { &own[..] };
    let has_elements = bench.has(ElementType::PARAMETER);
    // As in IMB, powers of two begin with one element. Listed sizes that are no multiple of it have a row with the reason.
    let least = if has_elements && !has_list(options) { element.width() } else { 0 };
    let sizes: Vec<Bytes> = sizes.iter().copied().filter(|size| size.0 == 0 || size.0 >= least).collect();
    if sizes.is_empty() {
        return Err(Error::usage(format!(
            "-msglog: {} has elements of {least} bytes: choose larger messages",
            table.name
        )));
    }
    let shifts = bench.has(Root::PARAMETER) && options.root_shift == Some(true);
    let mut chosen = chosen(options, bench, table, element);
    chosen.choose(shifts.then_some(Root::Rotating));
    let plan = Plan { chosen, ..Plan::default() };
    // IMB-P2P has no limit of time.
    let usual =
        if with_all && options.time.is_none() { IterationPolicy::Off } else { IterationPolicy::default() };
    let is_rooted = bench.has(Root::PARAMETER);
    let auto = if is_rooted { IterationPolicy::Multiple } else { IterationPolicy::Dynamic };
    let policy = options.iter_policy.unwrap_or(usual).or_if_auto(auto);
    let bounds = RowBounds { most_time: policy.most_time(options.time), ..RowBounds::default() };
    let plan = Plan { bounds, ..plan };
    let warmup = if options.warm_up.unwrap_or(true) { WARM_UP } else { 0 };
    let mut parts = Vec::new();
    let counts = match table.ranks {
        Some(ranks) => vec![Some(ranks)],
        None if with_all => vec![ranks.map(|ranks| usable(bench.ranks.layout, ranks))],
        None => counts(bench.ranks.layout, ranks, options.npmin.unwrap_or(RANKS)),
    };
    for count in counts {
        let (groups, count) = match (shown, count, ranks) {
            (Some(_), Some(size), Some(ranks)) => {
                let (groups, count) = groups_of(size, ranks);
                (groups, Some(count))
            }
            _ => (Groups::ONE, count),
        };
        let pairs = count.filter(|_| with_all && bench.ranks.layout.has_pairs()).map(|count| count / 2);
        let repetitions = |bytes: &Bytes| policy.iterations(iter.for_size(bytes.0), count);
        let (sizes, portions) = (whole(&sizes, table, count), u64::from(portions(table, count)));
        for sizes in sizes.chunk_by(|a, b| repetitions(a) == repetitions(b)) {
            let repetitions = repetitions(&sizes[0]);
            let depth = if aggregate { aggregated(repetitions) } else { plan.depths()[0] };
            let iterations = if aggregate { repetitions.div_ceil(depth.into()) } else { repetitions };
            let effort = Effort::Fixed { iterations, warmup };
            let sizes = Some(sizes.iter().map(|size| Bytes(size.0 / portions)).collect());
            let mut chosen = plan.chosen.clone().with(Depth(depth));
            chosen.choose(Some(groups).filter(|groups| !groups.is_one()));
            chosen.choose(pairs.map(PairCount));
            let plan = Plan { sizes, chosen, ranks: count, effort, ..plan.clone() };
            parts.push(Part { choices: vec![choice], plan });
        }
    }
    Ok(parts)
}

fn portions(table: &ImbBenchmark, processes: Option<u32>) -> u32 {
    table.class.portions(processes.unwrap_or(1))
}

/// Returns the sizes that processes can share equally.
fn whole(sizes: &[Bytes], table: &ImbBenchmark, processes: Option<u32>) -> Vec<Bytes> {
    let portions = u64::from(portions(table, processes));
    sizes.iter().copied().filter(|size| size.0.is_multiple_of(portions)).collect()
}

/// Returns how many of these repetitions share a flush: the largest divisor above half a window, or else a whole window.
fn aggregated(repetitions: u64) -> u32 {
    let most = repetitions.clamp(1, WINDOW.into());
    let divides = |depth: &u64| repetitions.is_multiple_of(*depth);
    (most / 2 + 1..=most).rev().find(divides).unwrap_or(most) as u32
}

/// Returns whether the sizes are listed one by one.
fn has_list(options: &ImbOptions) -> bool {
    options.msglen.is_some() || !options.msgsize.is_empty()
}

/// Returns IMB's choices for a benchmark: one-sided operations are completed by a flush, and reductions have one type.
fn chosen(options: &ImbOptions, bench: &Benchmark, table: &ImbBenchmark, element: ElementType) -> Chosen {
    let mut chosen = Chosen::default().with(Depth(options.window_size.unwrap_or(WINDOW)));
    let is_free = |parameter: &Parameter| {
        bench.has(parameter) && table.axes.iter().all(|(name, _)| *name != parameter.name)
    };
    if let Some(sync) =
        bench.parameter("sync").filter(|sync| sync.names().contains(&"flush") && is_free(sync))
    {
        chosen.set(sync.name, ["flush"]);
    }
    if is_free(ElementType::PARAMETER) {
        chosen.choose([element]);
    }
    if is_free(Cache::PARAMETER) && options.off_cache.is_some_and(|cache| cache != OffCache::No) {
        chosen.choose([Cache::Cold]);
    }
    let memory = options.mem_alloc_type.filter(|_| is_free(BufferMemory::PARAMETER));
    let memory = memory.map(|place| BufferMemory::both(place(api())));
    if let Some(memory) = memory.filter(|memory| !memory.is_host()) {
        chosen.choose([memory]);
        // MPI allocates no window on a device. IMB creates its windows in the same way.
        if let Some(win) = bench.parameter("win") {
            chosen.set(win.name, ["create"]);
        }
    }
    if is_free(Datatype::PARAMETER) {
        types::choose_blocks(&options.types, bench, &mut chosen);
    }
    chosen.choose([options.thread_level.unwrap_or(Threading::Single)]);
    chosen.choose(options.map);
    chosen.set(MEMORY_LIMIT.name, options.mem.map(|bytes| bytes.to_string()));
    let cache = options.off_cache.and_then(OffCache::bytes).filter(|_| bench.has(&CACHE_SIZE));
    chosen.set(CACHE_SIZE.name, cache.map(|bytes| bytes.to_string()));
    if bench.parameter(DIRECTORY).is_some() {
        let directory = options.directory.as_deref().unwrap_or(Path::new("."));
        chosen.set(DIRECTORY, [directory.display().to_string()]);
    }
    chosen
}

/// Returns the driver of the accelerators, as IMB chooses it: that of CUDA, unless only that of ROCm is there.
fn api() -> Api {
    #[cfg(feature = "mpi")]
    if ombx_accelerator::count(Api::Cuda).is_err() && ombx_accelerator::count(Api::Rocm).is_ok() {
        return Api::Rocm;
    }
    Api::Cuda
}

/// Returns how many of these ranks a layout uses: an odd last rank of pairs is idle.
pub(crate) fn usable(layout: Layout, ranks: u32) -> u32 {
    if layout.has_pairs() { ranks / 2 * 2 } else { ranks }
}

/// Returns the numbers of processes: `least`, twice as many, and so on, and all. `None` stands for as many as the benchmark takes.
fn counts(layout: Layout, ranks: Option<u32>, least: u32) -> Vec<Option<u32>> {
    let (all, needed) = match (layout, ranks) {
        (Layout::Everyone { least }, Some(ranks)) => (ranks, least),
        (Layout::Pairs(Pairs::Most), Some(ranks)) => (usable(layout, ranks), 2),
        _ => return vec![None],
    };
    let doubled = iter::successors(Some(least.max(needed)), |count| count.checked_mul(2));
    doubled.take_while(|count| *count < all).chain([all]).map(Some).collect()
}

/// IMB's `-iter`: iterations, and the volume that limits them for large messages.
#[derive(Debug, Clone, Copy)]
pub struct Iterations {
    most: u64,
    /// Bytes.
    volume: u64,
    /// Iterations of writes that are each completed by a synchronisation of the file.
    single: u64,
}

impl Default for Iterations {
    fn default() -> Iterations {
        Iterations { most: 1000, volume: 40 << 20, single: Iterations::SINGLE }
    }
}

impl Iterations {
    /// Default of IMB-P2P.
    pub(crate) const PEER_TO_PEER: Iterations =
        Iterations { most: 100_000, volume: 800 << 20, single: Iterations::SINGLE };
    /// Default of writes that are each completed by a synchronisation of the file.
    const SINGLE: u64 = 100;

    /// Reads `N`, `N,MIB` or `N,MIB,SINGLE`.
    ///
    /// # Errors
    /// Usage error for another text.
    pub fn parse(text: &str) -> Result<Iterations> {
        let (most, volume) = text.split_once(',').unwrap_or((text, "40"));
        let (volume, single) = volume.split_once(',').unwrap_or((volume, "100"));
        let number = |text: &str, most: u64| text.parse::<u64>().ok().filter(|n| (1..=most).contains(n));
        match (number(most, 1 << 32), number(volume, 1 << 30), number(single, 1 << 32)) {
            (Some(most), Some(volume), Some(single)) => Ok(Iterations { most, volume: volume << 20, single }),
            _ => Err(Error::usage(
                "not a number of iterations: give 100, 1000,40 with a limit in MiB, or 1000,40,100 with \
                 the iterations of writes that are synchronised one by one",
            )),
        }
    }

    /// Returns the numbers for writes that are each completed by a synchronisation of the file.
    fn of_single(self) -> Iterations {
        Iterations { most: self.most.min(self.single), ..self }
    }

    /// Returns the iterations for messages of this size.
    fn for_size(self, bytes: u64) -> u64 {
        self.volume.checked_div(bytes).map_or(self.most, |fit| self.most.min(fit).max(1))
    }
}

/// IMB's `-iter_policy`: what changes the number of iterations beside the volume of large messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IterationPolicy {
    /// Fewer iterations if they would take longer than -time
    #[default]
    Dynamic,
    /// A multiple of the number of processes
    Multiple,
    /// As multiple_np if the collective has a root, otherwise as dynamic
    Auto,
    /// Nothing
    Off,
}

impl IterationPolicy {
    /// Default of `-time`.
    const TIME: Duration = Duration::from_secs(10);

    /// Returns the policy, and this one in place of [`IterationPolicy::Auto`].
    const fn or_if_auto(self, chosen: IterationPolicy) -> IterationPolicy {
        match self {
            IterationPolicy::Auto => chosen,
            policy => policy,
        }
    }

    /// Returns the iterations of a row that would have `iterations`.
    fn iterations(self, iterations: u64, processes: Option<u32>) -> u64 {
        match (self, processes) {
            (IterationPolicy::Multiple, Some(processes)) => {
                iterations.next_multiple_of(u64::from(processes.max(1)))
            }
            _ => iterations,
        }
    }

    /// Returns the maximum time of a row, if it has one. `given` is that of the user.
    fn most_time(self, given: Option<Duration>) -> Option<Duration> {
        (self == IterationPolicy::Dynamic).then(|| given.unwrap_or(IterationPolicy::TIME))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_that_share_a_flush_divide_them() {
        let found = [1, 10, 64, 100, 640, 997, 1000].map(aggregated);
        assert_eq!(found, [1, 10, 64, 50, 64, 64, 50]);
    }

    #[test]
    fn processes_share_the_bytes_of_a_file() {
        let of = |class, processes: u32| {
            let table =
                ImbBenchmark { name: "", bench: "io.write", class, mode: None, axes: &[], ranks: None };
            let shared = whole(&[0, 1, 2, 4, 12].map(Bytes), &table, Some(processes));
            (portions(&table, Some(processes)), shared.iter().map(|size| size.0).collect::<Vec<u64>>())
        };
        assert_eq!(of(ImbClass::Divided, 1), (1, vec![0, 1, 2, 4, 12]));
        assert_eq!(of(ImbClass::Divided, 2), (2, vec![0, 2, 4, 12]));
        assert_eq!(of(ImbClass::Divided, 3), (3, vec![0, 12]));
        // One process has a file of its own.
        assert_eq!(of(ImbClass::Single, 3), (1, vec![0, 1, 2, 4, 12]));
    }

    #[test]
    fn as_many_groups_run_as_there_can_be() {
        let of = |size, ranks| {
            let (groups, together) = groups_of(size, ranks);
            (groups.count(), together)
        };
        assert_eq!([2, 4, 5].map(|size| of(size, 5)), [(2, 4), (1, 4), (1, 5)]);
        assert_eq!(of(2, 8), (4, 8));
        // A group has two processes at least.
        assert_eq!(of(1, 4), (1, 1));
    }

    #[test]
    fn the_number_of_processes_doubles() {
        let of = |ranks, least| -> Vec<u32> {
            counts(Layout::Everyone { least: 1 }, Some(ranks), least).into_iter().flatten().collect()
        };
        assert_eq!(of(2, 2), [2]);
        assert_eq!(of(6, 2), [2, 4, 6]);
        assert_eq!(of(8, 8), [8]);
        assert_eq!(of(8, 100), [8]);
        assert_eq!(of(4, 1), [1, 2, 4]);
        assert_eq!(counts(Layout::Pair, Some(8), 2), [None]);
        assert_eq!(counts(Layout::Pairs(Pairs::Most), Some(5), 2), [Some(2), Some(4)]);
        assert_eq!(counts(Layout::Pairs(Pairs::One), Some(4), 2), [None]);
        assert_eq!(counts(Layout::Everyone { least: 2 }, Some(3), 1), [Some(2), Some(3)]);
    }

    #[test]
    fn large_messages_have_fewer_iterations() {
        let usual = Iterations::parse("1000").unwrap();
        let found =
            [0, 1, 32 << 10, 64 << 10, 128 << 10, 4 << 20, 1 << 30].map(|bytes| usual.for_size(bytes));
        assert_eq!(found, [1000, 1000, 1000, 640, 320, 10, 1]);
        assert_eq!(Iterations::parse("10,1,5").unwrap().for_size(1 << 20), 1);
        let of_single = |text: &str| Iterations::parse(text).unwrap().of_single().for_size(8);
        assert_eq!(["1000", "1000,40,5", "7"].map(of_single), [100, 5, 7]);
        for text in ["", "0", "-1", "10,x", "10,0", "10,1,x"] {
            assert!(Iterations::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_policy_changes_the_number_of_iterations() {
        use IterationPolicy::{Auto, Dynamic, Multiple, Off};
        let of = |policy: IterationPolicy, auto| {
            let policy = policy.or_if_auto(auto);
            (policy.iterations(1000, Some(3)), policy.most_time(None).map(|time| time.as_secs()))
        };
        assert_eq!(of(Dynamic, Multiple), (1000, Some(10)));
        assert_eq!([of(Multiple, Dynamic), of(Auto, Multiple)], [(1002, None); 2]);
        assert_eq!(of(Auto, Dynamic), (1000, Some(10)));
        assert_eq!(of(Off, Multiple), (1000, None));
        let given = Some(Duration::from_millis(1500));
        assert_eq!((Dynamic.most_time(given), Off.most_time(given)), (given, None));
        assert_eq!(Multiple.iterations(1000, None), 1000);
    }
}
