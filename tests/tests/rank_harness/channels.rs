//! Tests of `Channel`, the two-sided traffic of one pair.

use ombx_core::{
    benchmark::{
        CaseValues, Context, ParameterValue, Role,
        payload::{Fill, Slots},
    },
    team::Team,
    two_sided::pattern::Link,
};
use ombx_mpi::{Channel, MpiTeam, Source};
use ombx_record::{result::Check, unit::Rank};

use crate::RankTest;

pub(crate) const TESTS: &[RankTest] = &[
    RankTest::new("channel::ping_pong", &[3], ping_pong),
    RankTest::new("channel::windows_of_messages", &[3], windows_of_messages),
    RankTest::new("channel::any_source", &[3], any_source),
];

/// Returns the context of a rank of a pair.
pub(crate) fn pair(team: &dyn Team) -> Context<'_> {
    let (role, peer) = match team.rank() {
        Rank(0) => (Role::Active, Rank(1)),
        _ => (Role::Passive, Rank(0)),
    };
    Context { role, peer, ..Context::new(team) }
}

/// Calls `body` on the first two ranks.
pub(crate) fn on_a_pair(team: &MpiTeam, body: impl Fn(&Context<'_>)) {
    if let Some(two) = team.subteam(2).unwrap() {
        body(&pair(&*two));
    }
    team.sleeping_barrier().unwrap();
}

fn fill(cx: &Context<'_>, channel: &mut Channel, slots: Slots, round: u64) -> Fill {
    let fill = Fill { round, bytes: slots.bytes, iterations: 1 };
    fill.write(cx.rank(), slots, channel.outgoing());
    fill.poison(cx.peer, slots, channel.incoming());
    fill
}

/// Rank 2 sends to rank 0, whose peer is rank 1.
fn any_source(team: &MpiTeam) {
    let (role, peer) = match team.rank() {
        Rank(0) => (Role::Active, Rank(1)),
        _ => (Role::Passive, Rank(0)),
    };
    let values = &CaseValues::NONE.with(Source::PARAMETER, "any");
    let cx = Context { role, peer, values, ..Context::new(team) };
    let slots = Slots::new(1000, 1);
    let mut channel = Channel::<ombx_mpi::Int>::open(&cx, slots).unwrap();
    let fill = Fill { round: 1, bytes: 1000, iterations: 1 };
    match team.rank() {
        Rank(0) => {
            channel.receive().unwrap();
            assert_eq!(fill.check(Rank(2), slots, channel.incoming(), Rank(0)), Check::Passed);
        }
        Rank(2) => {
            fill.write(Rank(2), slots, channel.outgoing());
            channel.send().unwrap();
        }
        _ => {}
    }
    team.sleeping_barrier().unwrap();
}

fn ping_pong(team: &MpiTeam) {
    on_a_pair(team, |cx| {
        for bytes in [0, 1, 63, 4096, 1 << 20] {
            let slots = Slots::new(bytes, 1);
            let mut channel = Channel::<ombx_mpi::Int>::open(cx, slots).unwrap();
            for round in 0..3 {
                let fill = fill(cx, &mut channel, slots, round);
                match cx.role {
                    Role::Active => channel.send().and_then(|()| channel.receive()).unwrap(),
                    Role::Passive => channel.receive().and_then(|()| channel.send()).unwrap(),
                }
                let found = fill.check(cx.peer, slots, channel.incoming(), cx.rank());
                assert_eq!(found, Check::Passed, "{bytes} bytes, round {round}");
            }
        }
    });
}

fn windows_of_messages(team: &MpiTeam) {
    on_a_pair(team, |cx| {
        for (bytes, count) in [(0, 4), (1, 1), (100, 5), (65536, 64)] {
            let slots = Slots::new(bytes, count);
            let mut channel = Channel::<ombx_mpi::Int>::open(cx, slots).unwrap();
            for round in 0..3 {
                let fill = fill(cx, &mut channel, slots, round);
                match cx.role {
                    Role::Active => channel.push().and_then(|()| channel.acknowledged()).unwrap(),
                    Role::Passive => {
                        channel.pull().unwrap();
                        let found = fill.check(cx.peer, slots, channel.incoming(), cx.rank());
                        assert_eq!(found, Check::Passed, "{count} x {bytes} bytes, round {round}");
                        channel.acknowledge().unwrap();
                    }
                }
            }
        }
    });
}
