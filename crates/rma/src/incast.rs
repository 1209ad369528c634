//! `rma.put_incast`: many origins put windows of messages into the memory of one target.

use ombx_core::{
    benchmark::{
        Benchmark, Case, Context, FanDirection, Kernel, Layout, Method, Metric, ParameterValue, Role, Work,
        derived,
        memory::BufferMemory,
        payload::{Fill, Slots},
        reduction::MESSAGE_TYPE,
    },
    error::{Error, Result},
    result::Check,
    unit::Rank,
};
use ombx_mpi::{Epochs, Hints, Window, WindowKind, WindowOptions};

/// Puts of this rank to its target, or of its origins to this rank.
struct Incast {
    window: Window,
    rank: Rank,
    role: Role,
    /// Messages of one origin.
    slots: Slots,
    /// Origins whose messages are in the buffer, in order: those of the target, or this rank alone.
    origins: Vec<Rank>,
    /// Position of the first origin among those of the target.
    position: usize,
}

impl Incast {
    /// Calls `each` with each origin and the part of the buffer that holds its messages: of the local buffer on an origin, of the
    /// window on the target.
    fn with_parts(&mut self, mut each: impl FnMut(Rank, &mut [u8])) -> Result<()> {
        let (size, role, position, origins) =
            (self.slots.total() as usize, self.role, self.position, &self.origins);
        self.window.with_memory(|locals, window| {
            let buffer = match role {
                Role::Active => locals[0].bytes_mut(),
                Role::Passive => window,
            };
            let parts = buffer.chunks_exact_mut(size).skip(position);
            origins.iter().zip(parts).for_each(|(origin, part)| each(*origin, part));
        })
    }
}

/// Returns the origins of each target, in rank order. Collective.
fn origins_of(cx: &Context<'_>) -> Result<Vec<Vec<Rank>>> {
    let team = cx.team;
    // A target is its own.
    let target = if cx.role == Role::Active { cx.peer } else { cx.rank() };
    let targets: Vec<Rank> = team.gather_messages(&target)?.unwrap_or_default();
    let targets = team.broadcast_message(targets)?;
    let mut origins = vec![Vec::new(); team.size() as usize];
    for (rank, target) in (0..).map(Rank).zip(targets) {
        if target != rank {
            origins[target.0 as usize].push(rank);
        }
    }
    Ok(origins)
}

impl Kernel for Incast {
    const METRIC: Metric = Metric::Bandwidth;
    const METHOD: Method = Method {
        timed: "on each origin, a window of puts into its own part of the target's memory, and a flush of \
                them; from the first start to the last end. The target waits in a barrier",
        untimed: "creating the window, the lock, filling and checking memory, a barrier before each sample",
        like: "the put incast of GPCNeT",
    };

    fn work(case: &Case) -> Work {
        let messages = u64::from(case.depth()) * u64::from(case.pairs);
        Work { bytes: case.bytes.0 * messages, ops: messages, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        let all = origins_of(cx)?;
        let most = all.iter().map(Vec::len).max().unwrap_or(0) as u32;
        let count = case.depth().checked_mul(most).ok_or_else(|| {
            Error::unsupported(format!(
                "{most} windows of {} messages are too many; use --window",
                case.depth()
            ))
        });
        let slots = derived::typed(Slots::new(case.bytes.0, cx.agree(count)?), case)?;
        let options = WindowOptions::for_puts_and_gets(WindowKind::usual(cx), slots, Hints::On);
        let (rank, role) = (cx.rank(), cx.role);
        let target = if role == Role::Active { cx.peer } else { rank };
        let origins = &all[target.0 as usize];
        let position = origins.iter().position(|origin| *origin == rank).unwrap_or(0);
        Ok(Incast {
            window: Window::open(cx, options)?,
            rank,
            role,
            slots: Slots { count: case.depth(), ..slots },
            origins: if role == Role::Active { vec![rank] } else { origins.clone() },
            position,
        })
    }

    fn fill(&mut self, fill: Fill) -> Result<()> {
        let (slots, role) = (self.slots, self.role);
        self.with_parts(|origin, part| match role {
            Role::Active => fill.write(origin, slots, part),
            Role::Passive => fill.poison(origin, slots, part),
        })
    }

    fn begin(&mut self) -> Result<()> {
        if self.role == Role::Active { self.window.hold() } else { Ok(()) }
    }

    #[inline(always)]
    fn active(&mut self) -> Result<()> {
        let first = self.position as u32 * self.slots.count;
        self.window.then_flush(|epoch| {
            for slot in first..first + self.slots.count {
                epoch.put(slot)?;
            }
            Ok(())
        })
    }

    fn end(&mut self) -> Result<()> {
        self.window.release()
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        let (slots, role, rank) = (self.slots, self.role, self.rank);
        let mut found = Check::Passed;
        if role == Role::Passive {
            self.with_parts(|origin, part| {
                let check = fill.check(origin, slots, part, rank);
                found = std::mem::replace(&mut found, Check::Passed).and(check);
            })?;
        }
        Ok(found)
    }
}

ombx_core::inventory::submit!(
    Benchmark::new::<Incast>(
        "rma.put_incast",
        "windows of puts from all other nodes into the memory of the first"
    )
    .iterates(
        &["MPI_Put", "MPI_Win_flush"],
        "P W S / t; t from the first origin's start to the last origin's end"
    )
    .streaming()
    .layout(Layout::Fan(FanDirection::In))
    .made_of(derived::block_bytes, derived::check)
    .with(&[MESSAGE_TYPE, BufferMemory::PARAMETER])
);
