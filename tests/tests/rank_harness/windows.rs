//! `Window` and `Epoch`: each kind of window with each way to synchronise.

use ombx_core::{
    benchmark::{
        context::Context,
        payload::{Check, Fill, Slots},
        work::Role,
    },
    error::Result,
    team::Team,
};
use ombx_mpi::{Epoch, Epochs as _, Hints, LockKind, MpiTeam, Shape, Window, WindowKind};

use crate::{RankTest, channels::on_a_pair};

pub(crate) const TESTS: &[RankTest] = &[
    // Not on one rank: Open MPI 4.1 has no dynamic windows there.
    RankTest::of("window::memory_is_ours_and_zero", &[2, 3], memory_is_ours_and_zero),
    RankTest::of("window::put_in_every_epoch", &[2, 3], |team| in_every_epoch(team, Op::Put)),
    RankTest::of("window::get_in_every_epoch", &[2], |team| in_every_epoch(team, Op::Get)),
    RankTest::of("window::many_one_after_the_other", &[2], many_one_after_the_other),
];

const MAKES: [WindowKind; 4] =
    [WindowKind::Allocate, WindowKind::Create, WindowKind::Dynamic, WindowKind::Shared];

#[derive(Debug, Clone, Copy)]
enum Op {
    Put,
    Get,
}

#[derive(Debug, Clone, Copy)]
enum Epochs {
    Fence,
    Pscw,
    Lock,
    LockExclusive,
    LockAll,
    Flush,
    FlushLocal,
}

const EPOCHS: [Epochs; 7] = [
    Epochs::Fence,
    Epochs::Pscw,
    Epochs::Lock,
    Epochs::LockExclusive,
    Epochs::LockAll,
    Epochs::Flush,
    Epochs::FlushLocal,
];

fn open(cx: &Context<'_>, kind: WindowKind, slots: Slots) -> Window {
    Window::open(cx, Shape { kind, slots, locals: 1, hints: Hints::On }).unwrap()
}

fn look<R>(window: &mut Window, look: impl FnOnce(&mut [u8], &mut [u8]) -> R) -> R {
    window.memories(|locals, exposed| look(locals[0].bytes_mut(), exposed)).unwrap()
}

fn memory_is_ours_and_zero(team: &MpiTeam) {
    let cx = Context { team, role: Role::Active, peer: team.rank(), thread: 0, memory_limit: None };
    for kind in MAKES {
        // Sizes that are no multiples of anything: MPICH over UCX gave a wrong base for such.
        for (bytes, count) in [(0, 1), (1, 1), (7, 3), (100, 5), (4097, 2)] {
            let slots = Slots::new(bytes, count);
            let mut window = open(&cx, kind, slots);
            assert_eq!(window.slots(), slots);
            let total = slots.total() as usize;
            let sound = look(&mut window, |local, exposed| {
                let lengths = local.len() >= total && exposed.len() >= total;
                let zero = exposed.iter().all(|b| *b == 0);
                exposed.fill(team.rank().0 as u8 + 1);
                lengths && zero
            });
            assert!(sound, "{kind:?}, {count} x {bytes}");
            team.barrier().unwrap();
            let kept =
                look(&mut window, |_, exposed| exposed.iter().all(|b| u32::from(*b) == team.rank().0 + 1));
            assert!(kept, "{kind:?}, {count} x {bytes}: a neighbour wrote into this window");
            team.barrier().unwrap();
        }
    }
}

fn in_every_epoch(team: &MpiTeam, op: Op) {
    on_a_pair(team, |cx| {
        for kind in MAKES {
            for (bytes, count) in [(1, 3), (8, 1), (100, 5), (65536, 4)] {
                let slots = Slots::new(bytes, count);
                let mut window = open(cx, kind, slots);
                for (round, epochs) in (0..).zip(EPOCHS) {
                    let fill = Fill { round, bytes, iterations: 1 };
                    moves(cx, &mut window, epochs, op, fill);
                }
            }
        }
    });
}

/// The origin, rank 0, moves every slot inside one epoch; whoever gets the data checks all of it.
fn moves(cx: &Context<'_>, window: &mut Window, epochs: Epochs, op: Op, fill: Fill) {
    let slots = window.slots();
    look(window, |local, exposed| {
        let (from, into) = match op {
            Op::Put => (local, exposed),
            Op::Get => (exposed, local),
        };
        fill.write(cx.rank(), slots, from);
        fill.poison(cx.peer, slots, into);
    });
    cx.team.barrier().unwrap();
    match cx.role {
        Role::Active => access(window, epochs, op).unwrap(),
        Role::Passive => expose(window, epochs).unwrap(),
    }
    cx.team.barrier().unwrap();
    let found = look(window, |local, exposed| match (op, cx.role) {
        (Op::Put, Role::Passive) => fill.check(cx.peer, slots, exposed, cx.rank()),
        (Op::Get, Role::Active) => fill.check(cx.peer, slots, local, cx.rank()),
        _ => Check::Passed,
    });
    assert_eq!(found, Check::Passed, "{op:?} in {epochs:?}, {} x {} bytes", slots.count, slots.bytes);
    cx.team.barrier().unwrap();
}

fn access(window: &Window, epochs: Epochs, op: Op) -> Result<()> {
    let each = |epoch: &Epoch<'_>| {
        (0..window.slots().count).try_for_each(|slot| match op {
            Op::Put => epoch.put(slot),
            Op::Get => epoch.get(slot),
        })
    };
    match epochs {
        Epochs::Fence => window.after_fence(each).and_then(|()| window.fence_for_good()),
        Epochs::Pscw => window.start_complete(each),
        Epochs::Lock => window.lock_unlock(LockKind::Shared, each),
        Epochs::LockExclusive => window.lock_unlock(LockKind::Exclusive, each),
        Epochs::LockAll => window.lock_all_unlock_all(each),
        Epochs::Flush | Epochs::FlushLocal => {
            window.hold()?;
            match epochs {
                Epochs::Flush => window.then_flush(each)?,
                _ => window.then_flush_local(each)?,
            }
            window.release()
        }
    }
}

fn expose(window: &Window, epochs: Epochs) -> Result<()> {
    match epochs {
        Epochs::Fence => window.fence().and_then(|()| window.fence_for_good()),
        Epochs::Pscw => window.post_wait(|| Ok(())),
        _ => Ok(()),
    }
}

/// Every row of a run has a window of its own: handles and memory must come back.
fn many_one_after_the_other(team: &MpiTeam) {
    on_a_pair(team, |cx| {
        for at in 0..60 {
            let mut window = open(cx, MAKES[at % MAKES.len()], Slots::new(1 << 20, 2));
            let fill = Fill { round: at as u64, bytes: 1 << 20, iterations: 1 };
            moves(cx, &mut window, EPOCHS[at % EPOCHS.len()], Op::Put, fill);
        }
    });
}
