//! Tests of `Window` and `Epoch`: each kind of window with each synchronisation.

use ombx_core::{
    benchmark::{
        Context, Role,
        payload::{Fill, Slots},
    },
    team::Team,
};
use ombx_mpi::{Epoch, Epochs as _, Hints, LockKind, MpiTeam, Window, WindowKind, WindowOptions};
use ombx_record::{error::Result, result::Check};

use crate::{RankTest, channels::on_a_pair};

pub(crate) const TESTS: &[RankTest] = &[
    // Open MPI 4.1 has no dynamic windows on one rank.
    RankTest::new("window::memory_is_zero_and_private", &[3], memory_is_zero_and_private),
    RankTest::new("window::put_with_every_synchronization", &[3], |team| {
        with_every_synchronization(team, Operation::Put)
    }),
    RankTest::new("window::get_with_every_synchronization", &[2], |team| {
        with_every_synchronization(team, Operation::Get)
    }),
    RankTest::new("window::many_in_turn", &[2], many_in_turn),
];

const KINDS: [WindowKind; 5] =
    [WindowKind::Allocate, WindowKind::Create, WindowKind::AllocMem, WindowKind::Dynamic, WindowKind::Shared];

#[derive(Debug, Clone, Copy)]
enum Operation {
    Put,
    Get,
}

#[derive(Debug, Clone, Copy)]
enum Synchronization {
    Fence,
    Pscw,
    Lock,
    LockExclusive,
    LockAll,
    Flush,
    FlushLocal,
}

const SYNCHRONIZATIONS: [Synchronization; 7] = [
    Synchronization::Fence,
    Synchronization::Pscw,
    Synchronization::Lock,
    Synchronization::LockExclusive,
    Synchronization::LockAll,
    Synchronization::Flush,
    Synchronization::FlushLocal,
];

fn open(cx: &Context<'_>, kind: WindowKind, slots: Slots) -> Window {
    Window::open(cx, WindowOptions::for_puts_and_gets(kind, slots, Hints::On)).unwrap()
}

fn with_memory<R>(window: &mut Window, access: impl FnOnce(&mut [u8], &mut [u8]) -> R) -> R {
    window.with_memory(|locals, exposed| access(locals[0].bytes_mut(), exposed)).unwrap()
}

fn memory_is_zero_and_private(team: &MpiTeam) {
    let cx = Context::new(team);
    for kind in KINDS {
        // Most sizes are odd: MPICH over UCX reported a wrong base for some sizes.
        for (bytes, count) in [(0, 1), (1, 1), (7, 3), (100, 5), (4097, 2)] {
            let slots = Slots::new(bytes, count);
            let mut window = open(&cx, kind, slots);
            assert_eq!(window.slots(), slots);
            let total = slots.total() as usize;
            let sound = with_memory(&mut window, |local, exposed| {
                let lengths = local.len() >= total && exposed.len() >= total;
                let zero = exposed.iter().all(|b| *b == 0);
                exposed.fill(team.rank().0 as u8 + 1);
                lengths && zero
            });
            assert!(sound, "{kind:?}, {count} x {bytes}");
            team.barrier().unwrap();
            let kept = with_memory(&mut window, |_, exposed| {
                exposed.iter().all(|b| u32::from(*b) == team.rank().0 + 1)
            });
            assert!(kept, "{kind:?}, {count} x {bytes}: a neighbour wrote into this window");
            team.barrier().unwrap();
        }
    }
}

fn with_every_synchronization(team: &MpiTeam, operation: Operation) {
    on_a_pair(team, |cx| {
        for kind in KINDS {
            for (bytes, count) in [(1, 3), (8, 1), (100, 5), (65536, 4)] {
                let slots = Slots::new(bytes, count);
                let mut window = open(cx, kind, slots);
                for (round, synchronization) in (0..).zip(SYNCHRONIZATIONS) {
                    let fill = Fill { round, bytes, iterations: 1 };
                    move_slots(cx, &mut window, synchronization, operation, fill);
                }
            }
        }
    });
}

/// Moves every slot from or to the origin, rank 0, in one epoch. The rank that gets the data checks it.
fn move_slots(
    cx: &Context<'_>,
    window: &mut Window,
    synchronization: Synchronization,
    operation: Operation,
    fill: Fill,
) {
    let slots = window.slots();
    with_memory(window, |local, exposed| {
        let (from, into) = match operation {
            Operation::Put => (local, exposed),
            Operation::Get => (exposed, local),
        };
        fill.write(cx.rank(), slots, from);
        fill.poison(cx.peer, slots, into);
    });
    cx.team.barrier().unwrap();
    match cx.role {
        Role::Active => access(window, synchronization, operation).unwrap(),
        Role::Passive => expose(window, synchronization).unwrap(),
    }
    cx.team.barrier().unwrap();
    let found = with_memory(window, |local, exposed| match (operation, cx.role) {
        (Operation::Put, Role::Passive) => fill.check(cx.peer, slots, exposed, cx.rank()),
        (Operation::Get, Role::Active) => fill.check(cx.peer, slots, local, cx.rank()),
        _ => Check::Passed,
    });
    assert_eq!(
        found,
        Check::Passed,
        "{operation:?} in {synchronization:?}, {} x {} bytes",
        slots.count,
        slots.bytes
    );
    cx.team.barrier().unwrap();
}

fn access(window: &Window, synchronization: Synchronization, operation: Operation) -> Result<()> {
    let each = |epoch: &Epoch<'_>| {
        (0..window.slots().count).try_for_each(|slot| match operation {
            Operation::Put => epoch.put(slot),
            Operation::Get => epoch.get(slot),
        })
    };
    match synchronization {
        Synchronization::Fence => window.after_fence(each).and_then(|()| window.last_fence()),
        Synchronization::Pscw => window.start_complete(each),
        Synchronization::Lock => window.lock_unlock(LockKind::Shared, each),
        Synchronization::LockExclusive => window.lock_unlock(LockKind::Exclusive, each),
        Synchronization::LockAll => window.lock_all_unlock_all(each),
        Synchronization::Flush | Synchronization::FlushLocal => {
            window.hold()?;
            match synchronization {
                Synchronization::Flush => window.then_flush(each)?,
                _ => window.then_flush_local(each)?,
            }
            window.release()
        }
    }
}

fn expose(window: &Window, synchronization: Synchronization) -> Result<()> {
    match synchronization {
        Synchronization::Fence => window.fence().and_then(|()| window.last_fence()),
        Synchronization::Pscw => window.post_wait(|| Ok(())),
        _ => Ok(()),
    }
}

/// Opens many windows in turn, as a run does for its rows. Handles and memory must be freed.
fn many_in_turn(team: &MpiTeam) {
    on_a_pair(team, |cx| {
        for at in 0..60 {
            let mut window = open(cx, KINDS[at % KINDS.len()], Slots::new(1 << 20, 2));
            let fill = Fill { round: at as u64, bytes: 1 << 20, iterations: 1 };
            move_slots(cx, &mut window, SYNCHRONIZATIONS[at % SYNCHRONIZATIONS.len()], Operation::Put, fill);
        }
    });
}
