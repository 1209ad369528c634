//! A team whose ranks are threads of one process.

use std::{
    collections::{HashMap, VecDeque},
    env, fs,
    io::ErrorKind,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ombx_core::{
    benchmark::{
        Benchmark, Case, Choice, Context, ElementType, Kernel, Method, Metric, ReductionOp, Role, Work,
        payload::Fill,
    },
    clock::{Clock, Skew, VirtualTime},
    error::{Error, Result},
    measure::{
        plan::Plan,
        runner::{self, Part},
        session::Memory,
    },
    result::{Check, Place},
    team::{EnteredBarrier, Fabric, Team},
    unit::Rank,
};
use ombx_host::{environment::place_of_thread, since::Since};

/// A team in which nothing happens for this time is deadlocked.
const DEADLOCK_TIME: Duration = Duration::from_secs(120);
/// Error of a rank that waits for one that has failed.
const OTHER_FAILED: &str = "another rank failed";
/// Interval at which a waiting rank looks whether another has failed.
const LOOK: Duration = Duration::from_millis(10);

/// One rank of a team of threads.
#[derive(Clone)]
pub struct ThreadTeam {
    pub(super) rank: u32,
    shared: Arc<Shared>,
    /// Rank numbers in the outermost team.
    names: Arc<[u32]>,
    delay: Delay,
    /// Host of each rank of the outermost team; empty if they are those of the machine.
    hosts: Arc<[String]>,
    /// Clock of this rank, which [`ThreadTeam::time`] moves.
    pub clock: Clock,
    /// Virtual time of this rank.
    pub time: VirtualTime,
}

/// Returns the extra delay in nanoseconds of messages between two ranks of the outermost team; for a rank and itself, how much
/// later it leaves a barrier.
pub type Delay = fn(u32, u32) -> u64;

struct Shared {
    size: u32,
    state: Mutex<State>,
    changed: Condvar,
    /// Why no rank of the outermost team may wait any longer.
    failure: Arc<OnceLock<String>>,
}

#[derive(Default)]
struct State {
    generation: u64,
    waiting: Vec<Option<Vec<u8>>>,
    delivered: Vec<Vec<u8>>,
    child: Option<Arc<Shared>>,
    /// Sleeping barriers that each rank has entered.
    entered: Vec<u64>,
    /// Teams of two that one rank has created and the other has not joined: by first rank, second rank and creator.
    pairs: HashMap<[u32; 3], VecDeque<Arc<Shared>>>,
    messages: HashMap<(u32, u32), VecDeque<SimMessage>>,
}

/// A message in transit, in virtual time.
pub struct SimMessage {
    /// Content.
    pub bytes: Vec<u8>,
    /// Arrival in nanoseconds of virtual time.
    pub arrives_at: u64,
}

impl Shared {
    fn new(size: u32, failure: Arc<OnceLock<String>>) -> Arc<Shared> {
        let state =
            State { waiting: vec![None; size as usize], entered: vec![0; size as usize], ..State::default() };
        Arc::new(Shared { size, state: Mutex::new(state), changed: Condvar::new(), failure })
    }

    /// Returns what a part of this team shares.
    fn part(&self, size: u32) -> Arc<Shared> {
        Shared::new(size, Arc::clone(&self.failure))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Waits until a condition holds.
    fn wait_until<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        is_met: impl Fn(&State) -> bool,
    ) -> Result<MutexGuard<'a, State>> {
        let since = Since::now();
        while !is_met(&state) {
            if let Some(why) = self.failure.get() {
                return Err(Error::fabric(why.clone()));
            }
            if since.elapsed() > DEADLOCK_TIME {
                return Err(Error::fabric("deadlock: the ranks wait for each other"));
            }
            let woken = self.changed.wait_timeout(state, LOOK);
            (state, _) = woken.unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        Ok(state)
    }
}

impl ThreadTeam {
    fn exchange(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut state = self.shared.lock();
        let generation = state.generation;
        state.waiting[self.rank as usize] = Some(mine.to_vec());
        if state.waiting.iter().all(Option::is_some) {
            state.delivered = state.waiting.iter_mut().map(|w| w.take().unwrap_or_default()).collect();
            state.generation += 1;
            self.shared.changed.notify_all();
        }
        let state = self.shared.wait_until(state, |state| state.generation != generation)?;
        Ok(state.delivered.clone())
    }

    /// Enters a barrier and advances this rank's time to that of the latest rank.
    pub fn virtual_barrier(&self) -> Result<()> {
        let times = self.exchange(&self.time.now().to_le_bytes())?;
        let times = times.iter().filter_map(|time| time.as_slice().try_into().ok()).map(u64::from_le_bytes);
        let last = times.max().unwrap_or(0);
        self.time.advance(last.saturating_sub(self.time.now()));
        Ok(())
    }

    fn enter(&self) -> Entered<'_> {
        let mut state = self.shared.lock();
        state.entered[self.rank as usize] += 1;
        self.shared.changed.notify_all();
        Entered { shared: &self.shared, number: state.entered[self.rank as usize] }
    }

    /// Ends the waiting of all ranks of the outermost team.
    fn fail(&self, why: String) {
        let _ = self.shared.failure.set(why);
    }

    /// Returns the extra delay of a message to a rank, in nanoseconds.
    pub fn delay_to(&self, to: Rank) -> u64 {
        (self.delay)(self.names[self.rank as usize], self.names[to.0 as usize])
    }

    /// Sends a message without waiting.
    pub fn send_message(&self, to: Rank, message: SimMessage) {
        self.shared.lock().messages.entry((self.rank, to.0)).or_default().push_back(message);
        self.shared.changed.notify_all();
    }

    /// Receives the next message of a rank. Does not advance virtual time.
    pub fn receive_message(&self, from: Rank) -> Result<SimMessage> {
        let place = (from.0, self.rank);
        let mut state = self.shared.lock();
        loop {
            if let Some(message) = state.messages.get_mut(&place).and_then(VecDeque::pop_front) {
                return Ok(message);
            }
            let has_arrived = |state: &State| state.messages.get(&place).is_some_and(|all| !all.is_empty());
            state = self.shared.wait_until(state, has_arrived)?;
        }
    }
}

/// A sleeping barrier that a thread has entered.
struct Entered<'t> {
    shared: &'t Shared,
    /// Number of the barrier, from 1.
    number: u64,
}

impl Entered<'_> {
    fn is_met(&self, state: &State) -> bool {
        state.entered.iter().all(|entered| *entered >= self.number)
    }
}

impl EnteredBarrier for Entered<'_> {
    fn is_complete(&mut self) -> Result<bool> {
        Ok(self.is_met(&self.shared.lock()))
    }
}

impl Team for ThreadTeam {
    fn rank(&self) -> Rank {
        Rank(self.rank)
    }

    fn size(&self) -> u32 {
        self.shared.size
    }

    fn fabric(&self) -> Fabric {
        Fabric { name: "threads", library: "ombx testkit".into() }
    }

    fn has_queues(&self) -> bool {
        true
    }

    fn place(&self) -> Place {
        let place = place_of_thread();
        let host = self.hosts.get(self.names[self.rank as usize] as usize).cloned();
        Place { host: host.unwrap_or(place.host), ..place }
    }

    /// Enters a barrier as [`ThreadTeam::virtual_barrier`]. A rank leaves it later by its delay to itself.
    fn barrier(&self) -> Result<()> {
        self.virtual_barrier()?;
        self.time.advance(self.delay_to(Rank(self.rank)));
        Ok(())
    }

    fn broadcast(&self, bytes: &mut [u8]) -> Result<()> {
        let all = self.exchange(bytes)?;
        bytes.copy_from_slice(&all[0]);
        Ok(())
    }

    fn gather(&self, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        let all = self.exchange(mine)?;
        Ok((self.rank == 0).then_some(all))
    }

    fn subteam(&self, ranks: u32) -> Result<Option<Box<dyn Team>>> {
        self.subset(&(0..ranks).map(Rank).collect::<Vec<_>>())
    }

    fn subset(&self, ranks: &[Rank]) -> Result<Option<Box<dyn Team>>> {
        if self.rank == 0 {
            self.shared.lock().child = Some(self.shared.part(ranks.len() as u32));
        }
        self.barrier()?;
        let child = self.shared.lock().child.clone();
        self.barrier()?;
        let rank = ranks.iter().position(|rank| rank.0 == self.rank);
        let names = ranks.iter().map(|rank| self.names[rank.0 as usize]).collect();
        let team = |(shared, rank)| ThreadTeam { rank: rank as u32, shared, names, ..self.clone() };
        Ok(child.zip(rank).map(|part| Box::new(team(part)) as Box<dyn Team>))
    }

    fn enter_barrier(&self) -> Result<Box<dyn EnteredBarrier + '_>> {
        Ok(Box::new(self.enter()))
    }

    fn pair(&self, partner: Rank, first: Rank) -> Result<Box<dyn Team>> {
        let (me, other) = (self.rank, partner.0);
        let ends = if first.0 == me { [me, other] } else { [other, me] };
        let mut state = self.shared.lock();
        let joined = state.pairs.get_mut(&[ends[0], ends[1], other]).and_then(VecDeque::pop_front);
        let shared = joined.unwrap_or_else(|| {
            let made = self.shared.part(2);
            state.pairs.entry([ends[0], ends[1], me]).or_default().push_back(Arc::clone(&made));
            made
        });
        let names = ends.map(|rank| self.names[rank as usize]).into();
        Ok(Box::new(ThreadTeam { rank: u32::from(first.0 != me), shared, names, ..self.clone() }))
    }

    fn sleeping_barrier(&self) -> Result<()> {
        let entered = self.enter();
        self.shared.wait_until(self.shared.lock(), |state| entered.is_met(state)).map(drop)
    }

    fn name_task(&self, _: &str) {}

    fn abort(&self, code: u8) -> ! {
        self.fail(format!("another rank aborted the team with code {code}"));
        panic!("rank {} aborted with code {code}", self.rank)
    }
}

/// Runs `body` on every rank of a new team and returns the results in rank order.
pub fn on_ranks<R: Send>(ranks: u32, body: impl Fn(&ThreadTeam) -> R + Sync) -> Vec<R> {
    on_uneven_ranks(ranks, |_, _| 0, body)
}

/// Runs `body` like [`on_ranks`], with an extra delay per link.
pub fn on_uneven_ranks<R: Send>(ranks: u32, delay: Delay, body: impl Fn(&ThreadTeam) -> R + Sync) -> Vec<R> {
    on_skewed_ranks(ranks, delay, |_| Skew::default(), body)
}

/// Runs `body` like [`on_ranks`], with an extra delay per link and a skew per clock.
pub fn on_skewed_ranks<R: Send>(
    ranks: u32,
    delay: Delay,
    skew: fn(u32) -> Skew,
    body: impl Fn(&ThreadTeam) -> R + Sync,
) -> Vec<R> {
    let shared = Shared::new(ranks, Arc::default());
    let names: Arc<[u32]> = (0..ranks).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks)
            .map(|rank| {
                let (shared, names) = (Arc::clone(&shared), Arc::clone(&names));
                let body = &body;
                scope.spawn(move || {
                    let (clock, time) = Clock::skewed(9, skew(rank));
                    body(&ThreadTeam { rank, shared, names, delay, hosts: Arc::default(), clock, time })
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    })
}

/// Runs one benchmark on a team of threads and returns the rows of rank 0.
pub fn measure(ranks: u32, bench: &'static Benchmark, plan: &Plan) -> Result<Memory> {
    run(ranks, &Arc::default(), bench, plan)
}

/// Runs one benchmark like [`measure`], with a host of a made-up name for each rank.
pub fn measure_on_hosts(hosts: &[&str], bench: &'static Benchmark, plan: &Plan) -> Result<Memory> {
    run(hosts.len() as u32, &hosts.iter().map(|host| (*host).to_owned()).collect(), bench, plan)
}

fn run(ranks: u32, hosts: &Arc<[String]>, bench: &'static Benchmark, plan: &Plan) -> Result<Memory> {
    let mut all = on_ranks(ranks, |team| {
        let team = ThreadTeam { hosts: Arc::clone(hosts), ..team.clone() };
        let mut sink = Memory::default();
        let part = Part { choices: vec![Choice { bench, preset: &[] }], plan: plan.clone() };
        let done = runner::run_all(&team, &[part], &team.clock, &mut sink, vec!["test".into()]);
        // The others would wait for this rank.
        done.inspect_err(|_| team.fail(OTHER_FAILED.into())).map(|_| sink)
    });
    let is_cause =
        |done: &Result<Memory>| done.as_ref().is_err_and(|why| !why.to_string().contains(OTHER_FAILED));
    let at = all.iter().position(is_cause).unwrap_or(0);
    all.swap_remove(at)
}

/// Empty directory that no other program uses. Dropping it removes it with its files.
pub struct Directory(PathBuf);

impl Directory {
    /// Creates a directory whose name contains `name`.
    ///
    /// # Panics
    /// The directory for temporary files is not writable.
    pub fn new(name: &str) -> Directory {
        // A killed process of the same number may have left a directory.
        for number in 0.. {
            let path = env::temp_dir().join(format!("ombx-{name}-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Directory(path),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => panic!("{}: {e}", path.display()),
            }
        }
        unreachable!("numbers do not end")
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file in the directory and returns its path.
    ///
    /// # Panics
    /// The file cannot be written.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Combines the elements of `term` into those of `result`, as the standard describes the operation.
///
/// # Panics
/// The operation does not accept the type, or an integer that may not wrap overflows.
pub fn combine(element: ElementType, op: ReductionOp, result: &mut [u8], term: &[u8]) {
    macro_rules! each {
        ($number:ty, $combine:expr) => {
            for (one, other) in result.as_chunks_mut().0.iter_mut().zip(term.as_chunks().0) {
                let combine: fn($number, $number) -> $number = $combine;
                *one =
                    combine(<$number>::from_le_bytes(*one), <$number>::from_le_bytes(*other)).to_le_bytes();
            }
        };
    }
    macro_rules! integers {
        ($number:ty, $sum:expr, $product:expr) => {
            match op {
                ReductionOp::Sum | ReductionOp::User => each!($number, $sum),
                ReductionOp::Prod => each!($number, $product),
                ReductionOp::Min => each!($number, |a, b| a.min(b)),
                ReductionOp::Max => each!($number, |a, b| a.max(b)),
                ReductionOp::LogicalAnd => each!($number, |a, b| (a != 0 && b != 0).into()),
                ReductionOp::LogicalOr => each!($number, |a, b| (a != 0 || b != 0).into()),
                ReductionOp::LogicalXor => each!($number, |a, b| ((a != 0) != (b != 0)).into()),
                ReductionOp::BitwiseAnd => each!($number, |a, b| a & b),
                ReductionOp::BitwiseOr => each!($number, |a, b| a | b),
                ReductionOp::BitwiseXor => each!($number, |a, b| a ^ b),
                ReductionOp::Replace => each!($number, |_, b| b),
                ReductionOp::NoOp => {}
            }
        };
    }
    macro_rules! checked {
        ($number:ty) => {
            integers!($number, |a, b| a.checked_add(b).expect("no overflow"), |a, b| a
                .checked_mul(b)
                .expect("no overflow"))
        };
    }
    macro_rules! wrapping {
        ($number:ty) => {
            integers!($number, |a, b| a.wrapping_add(b), |a, b| a.wrapping_mul(b))
        };
    }
    macro_rules! floating {
        ($number:ty) => {
            match op {
                ReductionOp::Sum | ReductionOp::User => each!($number, |a, b| a + b),
                ReductionOp::Prod => each!($number, |a, b| a * b),
                ReductionOp::Min => each!($number, |a, b| a.min(b)),
                ReductionOp::Max => each!($number, |a, b| a.max(b)),
                ReductionOp::Replace => each!($number, |_, b| b),
                ReductionOp::NoOp => {}
                _ => panic!("{op:?} of floating-point numbers"),
            }
        };
    }
    macro_rules! complex {
        ($number:ty, $width:literal) => {
            match op {
                ReductionOp::Prod => {
                    let pairs = result.chunks_exact_mut(2 * $width).zip(term.chunks_exact(2 * $width));
                    for (one, other) in pairs {
                        let of = |bytes: &[u8]| <$number>::from_le_bytes(bytes.try_into().expect("a number"));
                        let (a, b) = (of(&one[..$width]), of(&one[$width..]));
                        let (c, d) = (of(&other[..$width]), of(&other[$width..]));
                        one[..$width].copy_from_slice(&(a * c - b * d).to_le_bytes());
                        one[$width..].copy_from_slice(&(a * d + b * c).to_le_bytes());
                    }
                }
                _ => floating!($number),
            }
        };
    }
    match element {
        ElementType::Char => checked!(i8),
        ElementType::Int16 => checked!(i16),
        ElementType::Int32 => checked!(i32),
        ElementType::Int64 => checked!(i64),
        ElementType::Byte | ElementType::Uint8 | ElementType::Widest => checked!(u8),
        ElementType::Uint16 => checked!(u16),
        ElementType::Uint32 => wrapping!(u32),
        ElementType::Uint64 => wrapping!(u64),
        ElementType::Float => floating!(f32),
        ElementType::Double => floating!(f64),
        ElementType::FloatComplex => complex!(f32, 4),
        ElementType::DoubleComplex => complex!(f64, 8),
    }
}

static OPENED: AtomicU64 = AtomicU64::new(0);

/// Kernel whose iterations take `ITERATION` ns on timed ranks, with special sizes.
///
/// Size 404 is unsupported on rank 1. Size 500 fails on rank 1 in `open`. From 1000 on, the first iteration is slow.
pub struct Probe<const ITERATION: u64> {
    team: ThreadTeam,
    role: Role,
    begun: bool,
    iterations: u64,
    cold: u64,
    id: u64,
}

impl<const ITERATION: u64> Kernel for Probe<ITERATION> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method { timed: "nothing", untimed: "everything", like: "nothing" };

    fn work(_: &Case) -> Work {
        Work { bytes: 0, ops: 1, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        match (case.bytes.0, cx.rank()) {
            (404, Rank(1)) => return Err(Error::unsupported("404 is not supported")),
            (500, Rank(1)) => return Err(Error::fabric("rank 1 broke")),
            _ => {}
        }
        let cold = if case.bytes.0 >= 1000 { 1 } else { 0 };
        let id = OPENED.fetch_add(1, Ordering::SeqCst);
        Ok(Probe {
            team: cx.fabric::<ThreadTeam>()?.clone(),
            role: cx.role,
            begun: false,
            iterations: 0,
            cold,
            id,
        })
    }

    fn fill(&mut self, _: Fill) -> Result<()> {
        assert!(!self.begun, "filled between begin and end");
        self.iterations = 0;
        Ok(())
    }

    fn begin(&mut self) -> Result<()> {
        assert!(!std::mem::replace(&mut self.begun, true), "begun twice ({})", self.id);
        Ok(())
    }

    fn active(&mut self) -> Result<()> {
        assert!(self.begun && self.role == Role::Active);
        self.iterations += 1;
        self.team.time.advance(ITERATION);
        if self.cold > 0 {
            self.cold -= 1;
            self.team.time.advance(1_000_000_000);
        }
        Ok(())
    }

    fn passive(&mut self) -> Result<()> {
        assert!(self.begun && self.role == Role::Passive);
        self.iterations += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        assert!(std::mem::replace(&mut self.begun, false), "ended without a beginning");
        Ok(())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        assert!(!self.begun);
        assert_eq!(self.iterations, fill.iterations, "the engine must know how many iterations it ran");
        Ok(Check::Passed)
    }
}

/// Kernel whose iterations take 1000 (r + 1) ns on rank r.
pub struct SlowerByRank {
    team: ThreadTeam,
}

impl Kernel for SlowerByRank {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method { timed: "nothing", untimed: "everything", like: "nothing" };

    fn work(_: &Case) -> Work {
        Work { bytes: 0, ops: 1, legs: 1 }
    }

    fn open(cx: &Context<'_>, _: &Case) -> Result<Self> {
        Ok(SlowerByRank { team: cx.fabric::<ThreadTeam>()?.clone() })
    }

    fn active(&mut self) -> Result<()> {
        self.team.time.advance(1000 * (u64::from(self.team.rank) + 1));
        Ok(())
    }
}

/// Bytes with a meaning in one of our formats.
const SPECIAL_BYTES: &[u8] = b"\0\n\t\x1b \"',:;=-+.%@#*[]{}()09aeKMx\x7f\x80\xfe\xff";
/// Numbers at or beyond the limits of integer types.
const EXTREME_NUMBERS: [&str; 6] =
    ["4294967295", "4294967296", "18446744073709551615", "1e308", "-1", "99999999999999999999"];

/// Calls `reads` with each seed of a fuzz target, which are the files in `fuzz/seeds/TARGET`, and with `tries` mutated seeds.
///
/// Mutations follow from [`seed`](super::seed). Panics with the input for which `reads` panicked.
pub fn hostile(target: &str, tries: u32, reads: impl Fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let entries = fs::read_dir(&directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().filter_map(|path| fs::read(path).ok()).collect();
    assert!(!seeds.is_empty(), "{} has no seeds", directory.display());
    let mut random = Random(super::seed());
    let mutated = (0..tries).map(|_| mutated(&seeds, &mut random));
    for input in seeds.iter().cloned().chain(mutated) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| reads(&input))) {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
            panic!("{target}, input b\"{}\": {text}", input.escape_ascii());
        }
    }
}

/// Random numbers by SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % bound.max(1) as u64) as usize
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let from = self.below(length + 1);
        from..from + self.below((length - from).min(64) + 1)
    }
}

fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() + 1);
        match random.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => bytes.insert(at, SPECIAL_BYTES[random.below(SPECIAL_BYTES.len())]),
            2 => drop(bytes.splice(at..at, EXTREME_NUMBERS[random.below(EXTREME_NUMBERS.len())].bytes())),
            3 => drop(bytes.drain(random.range(bytes.len()))),
            4 => {
                let again = bytes[random.range(bytes.len())].to_vec();
                bytes.splice(at..at, again);
            }
            5 => {
                let other = &seeds[random.below(seeds.len())];
                bytes.splice(at..at, other[random.range(other.len())].iter().copied());
            }
            6 => bytes.truncate(at),
            _ => {
                let range = random.range(bytes.len());
                bytes[range].iter_mut().for_each(|byte| *byte = random.below(256) as u8);
            }
        }
    }
    bytes
}

#[cfg(test)]
mod probe_tests {
    use std::time::Duration;

    use ombx_core::{
        benchmark::{Benchmark, Layout},
        measure::plan::{Effort, Launch, LaunchSettings, Plan, RowBounds},
        result::Outcome,
        unit::parse_sizes,
    };

    use super::{super::measure, *};

    static FAST: Benchmark = Benchmark::new::<Probe<50>>("probe.fast", "50 ns").sizes("8");
    static MEDIUM: Benchmark = Benchmark::new::<Probe<200_000>>("probe.medium", "200 us").sizes("8");
    static SLOW: Benchmark = Benchmark::new::<Probe<50_000_000>>("probe.slow", "50 ms").sizes("8");
    static ALL: Benchmark =
        Benchmark::new::<Probe<3000>>("probe.all", "3 us").sizes("8").layout(Layout::Everyone { least: 1 });

    #[test]
    fn a_batch_makes_the_cost_of_the_clock_negligible() {
        let row = measure(2, &FAST, &Plan::default()).unwrap().rows.remove(0);
        assert_eq!(row.samples[0].batch, 18, "9 ns per stamp are 1 % of 18 x 50 ns");
        let summary = row.summary.unwrap();
        assert_eq!((summary.median, summary.ci95), (50.0, Some([50.0 - 1.0 / 18.0, 50.0 + 1.0 / 18.0])));
        assert_eq!((summary.tail_n, row.tail[0].batch, row.tail[0].elapsed_ns.len()), (5000, 1, 5000));
        assert!(summary.n >= 30 && row.trust.iter().all(|n| n.code.name() != "not_converged"));
    }

    #[test]
    fn fixed_counts_are_exact() {
        let plan = Plan { effort: Effort::Fixed { iterations: 1000, warmup: 7 }, ..Plan::default() };
        let row = measure(2, &FAST, &plan).unwrap().rows.remove(0);
        assert_eq!(row.samples[0].elapsed_ns.len() as u64 * row.samples[0].batch, 1000);
        let row = measure(2, &FAST, &Plan { batch: Some(1), ..plan }).unwrap().rows.remove(0);
        assert_eq!((row.samples[0].batch, row.samples[0].elapsed_ns.len()), (1, 1000));
    }

    #[test]
    fn fixed_counts_end_at_a_time_limit() {
        let effort = Effort::Fixed { iterations: 1000, warmup: 0 };
        let counted = |bench, ms| {
            let bounds = RowBounds { most_time: Some(Duration::from_millis(ms)), ..RowBounds::default() };
            let plan = Plan { effort, bounds, ..Plan::default() };
            let samples = measure(2, bench, &plan).unwrap().rows.remove(0).samples.remove(0);
            samples.elapsed_ns.len() as u64 * samples.batch
        };
        assert_eq!(
            [(&SLOW, 210), (&SLOW, 1), (&FAST, 210)].map(|(bench, ms)| counted(bench, ms)),
            [4, 1, 1000]
        );
    }

    #[test]
    fn a_slow_row_ends_at_its_time_limit_with_an_interval() {
        let hasty = Effort::Precision { precision: 1e-9, max_time: Duration::from_millis(100) };
        let row = measure(2, &SLOW, &Plan { effort: hasty, ..Plan::default() }).unwrap().rows.remove(0);
        assert_eq!(row.summary.unwrap().n, 6);
    }

    #[test]
    fn long_iterations_have_fewer_samples_in_one_of_several_launches() {
        let launch = Launch { number: 1, of: 9, order: 1 };
        let samples = [None, Some(launch)].map(|launch| {
            let settings = LaunchSettings { launch, ..LaunchSettings::default() };
            let plan = Plan { effort: Effort::Time(Duration::from_millis(20)), settings, ..Plan::default() };
            measure(2, &SLOW, &plan).unwrap().rows.remove(0).summary.unwrap().n
        });
        assert_eq!(samples, [6, 1]);
    }

    #[test]
    fn launches_share_the_checks_of_a_row() {
        let launch = Launch { number: 2, of: 9, order: 1 };
        let checked = [None, Some(launch)].map(|launch| {
            let settings = LaunchSettings { launch, ..LaunchSettings::default() };
            let plan = Plan { effort: Effort::Time(Duration::from_millis(30)), settings, ..Plan::default() };
            measure(2, &MEDIUM, &plan).unwrap().rows.remove(0).checked
        });
        // 64 take less than half of the time.
        assert_eq!(checked, [64, 8]);
    }

    #[test]
    fn percentiles_get_their_single_iterations_within_the_time_of_the_row() {
        // In batches, one by one, and too long for the time.
        let single = [&FAST, &ALL, &SLOW].map(|bench| {
            let bounds = RowBounds { least_tail: 6000, ..RowBounds::default() };
            let plan = Plan { bounds, ..Plan::default() };
            measure(2, bench, &plan).unwrap().rows.remove(0).summary.unwrap().tail_n
        });
        assert!(single[0] >= 6000 && single[1] >= 6000 && single[2] < 30, "{single:?}");
    }

    #[test]
    fn cold_iterations_are_not_measured() {
        let plan = Plan { sizes: Some(parse_sizes("1000").unwrap()), ..Plan::default() };
        let row = measure(2, &FAST, &plan).unwrap().rows.remove(0);
        assert_eq!(row.summary.unwrap().max, 50.0);
    }

    #[test]
    fn a_row_has_the_time_of_each_phase() {
        let plan = Plan { sizes: Some(parse_sizes("1000").unwrap()), ..Plan::default() };
        let row = measure(2, &FAST, &plan).unwrap().rows.remove(0);
        let phases = row.phases.unwrap();
        // Only iterations take time: the slow first one in the warm-up, those of samples, of which one in each round does not count, and those
        // that are verified.
        let sampled: u64 = [&row.samples[0], &row.tail[0]].iter().flat_map(|s| &s.elapsed_ns).sum();
        assert!((sampled..sampled + sampled / 8).contains(&phases.sample_ns), "{phases:?} with {sampled} ns");
        assert_eq!((phases.verify_ns, row.checked), (50 * 64, 64));
        assert!(phases.warm_up_ns >= 1_000_000_000, "{phases:?}");
        assert_eq!(phases.total_ns(), phases.warm_up_ns + phases.sample_ns + phases.verify_ns);
    }

    #[test]
    fn a_case_that_one_rank_cannot_run_is_skipped_on_all() {
        let plan = Plan { sizes: Some(parse_sizes("8,404,16").unwrap()), ..Plan::default() };
        let memory = measure(2, &FAST, &plan).unwrap();
        let outcomes: Vec<_> = memory.rows.iter().map(|r| &r.outcome).collect();
        let skipped = Outcome::Skipped("404 is not supported".into());
        assert_eq!(outcomes, [&Outcome::Ok, &skipped, &Outcome::Ok]);
        assert_eq!(memory.tally.unwrap().exit_code(false), 4);
    }

    #[test]
    fn an_error_in_open_ends_all_ranks_and_names_the_case() {
        let plan = Plan { sizes: Some(parse_sizes("500").unwrap()), ..Plan::default() };
        let error = measure(2, &FAST, &plan).unwrap_err();
        assert_eq!(error.to_string(), "probe.fast/bytes=500: rank 1 broke");
    }

    #[test]
    fn too_few_ranks_are_a_skipped_row() {
        let memory = measure(1, &FAST, &Plan::default()).unwrap();
        let Outcome::Skipped(why) = &memory.rows[0].outcome else { panic!("{:?}", memory.rows) };
        assert!(why.contains("needs 2 ranks, has 1"), "{why}");
    }

    #[test]
    fn every_rank_of_a_collective_keeps_its_samples() {
        for ranks in [1, 2, 3, 5] {
            let row = measure(ranks, &ALL, &Plan::default()).unwrap().rows.remove(0);
            assert_eq!((row.ranks, row.samples.len()), (ranks, ranks as usize));
            assert_eq!(row.summary.unwrap().median, 3000.0);
        }
    }
}
