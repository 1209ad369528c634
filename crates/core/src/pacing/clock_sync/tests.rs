//! Clocks of known offset and drift, in virtual time.

use super::*;
use crate::{
    clock::Skew,
    testkit::{SimMesh, ThreadTeam, on_ranks, on_skewed_ranks},
};

fn synchronised<M: Mesh>(team: &ThreadTeam) -> ClockSync<'_, M> {
    ClockSync::new(&Context::new(team), &team.clock, SyncHosts::On, learning_time(None)).unwrap()
}

/// Returns seconds of offset, and the drift of ordinary quartz.
fn quartz(rank: u32) -> Skew {
    let drifts = [0, 12_000, -35_000, 50_000, -7_000];
    Skew {
        offset_ns: u64::from(rank) * 3_700_000_123,
        drift_ppb: drifts[rank as usize % drifts.len()],
        ..Skew::default()
    }
}

/// Returns rank 0's time by this rank's model at two moments that are the same on all ranks: after the fit, and after a refresh.
fn readings<M: Mesh>(team: &ThreadTeam, later_ns: u64) -> [f64; 2] {
    let mut sync = synchronised::<M>(team);
    team.virtual_barrier().unwrap();
    let first = sync.now_ns();
    team.time.advance(later_ns);
    sync.refresh().unwrap();
    team.virtual_barrier().unwrap();
    [first, sync.now_ns()]
}

fn spread(readings: &[[f64; 2]], at: usize) -> f64 {
    let all = readings.iter().map(|r| r[at]);
    all.clone().fold(f64::MIN, f64::max) - all.fold(f64::MAX, f64::min)
}

#[test]
fn skewed_clocks_agree_after_synchronisation() {
    for ranks in [1, 2, 3, 5, 8] {
        let all =
            on_skewed_ranks(ranks, |_, _| 0, quartz, |team| readings::<SimMesh<20_000>>(team, 1_000_000_000));
        let apart = [spread(&all, 0), spread(&all, 1)];
        assert!(apart.iter().all(|ns| *ns < 1000.0), "{ranks} ranks are {apart:?} ns apart");
    }
}

#[test]
fn an_asymmetric_link_causes_an_error_of_half_its_asymmetry() {
    let delay = |from, _| if from == 0 { 4000 } else { 0 };
    let all = on_skewed_ranks(2, delay, quartz, |team| readings::<SimMesh<20_000>>(team, 1_000_000));
    let apart = spread(&all, 0);
    assert!((1000.0..3000.0).contains(&apart), "{apart}");
}

#[test]
fn the_residual_is_small_after_seconds() {
    let residual = |ranks| {
        let mut all = on_skewed_ranks(
            ranks,
            |_, _| 0,
            quartz,
            |team| {
                let mut sync = synchronised::<SimMesh<5000>>(team);
                // The fitted drift still holds seconds later.
                team.time.advance(2_000_000_000);
                team.virtual_barrier().unwrap();
                sync.residual().unwrap()
            },
        );
        all.swap_remove(0).unwrap()
    };
    for ranks in [2, 4, 7] {
        let residual = residual(ranks);
        assert!(residual.max_ns() < 1000.0, "{ranks} ranks: {residual:?}");
        assert_eq!(residual.true_error_ns, None, "no two ranks read the same clock");
    }
}

#[test]
fn the_residual_shows_the_errors_of_the_models() {
    const ERRORS_NS: [f64; 4] = [0.0, 300.0, -200.0, 50.0];
    let mut all = on_ranks(4, |team| {
        let mut sync = synchronised::<SimMesh<5000>>(team);
        sync.model.ns += ERRORS_NS[team.rank().0 as usize];
        sync.residual().unwrap()
    });
    let residual = all.swap_remove(0).unwrap();
    let about =
        |found: f64, known: f64| assert!((found - known).abs() < 10.0, "{found}, not {known}: {residual:?}");
    ERRORS_NS.iter().zip(&residual.of_clocks_ns).for_each(|(known, found)| about(*found, *known));
    about(residual.median_ns(), 200.0);
    about(residual.max_ns(), 300.0);
    about(residual.range_ns(), 500.0);
    assert!(all.iter().all(Option::is_none), "only rank 0 knows");
}

#[test]
fn drift_is_learned_over_half_a_row() {
    let ms = Duration::from_millis;
    let learning = [Some(ms(1000)), Some(ms(5000)), Some(ms(100)), Some(ms(1)), None].map(learning_time);
    assert_eq!(learning, [500, 500, 50, 10, 80].map(ms));
    let took = |learning: Duration| {
        let sync = |team: &ThreadTeam| {
            let cx = Context::new(team);
            ClockSync::<SimMesh<700>>::new(&cx, &team.clock, SyncHosts::On, learning).map(|_| team.time.now())
        };
        on_ranks(2, sync).swap_remove(1).unwrap() as f64 / learning.as_nanos() as f64
    };
    for learning in learning {
        assert!((1.0..1.1).contains(&took(learning)), "{learning:?}: {} times as long", took(learning));
    }
}

#[test]
fn a_slow_ping_pong_does_not_change_the_fit() {
    let on_line = |ticks: u64| Point { ticks, ns: 100.0 + ticks as f64 * 0.5, round_trip: 10 };
    let mut points: Vec<Point> = (0..20).map(|i| on_line(1_000_000 + i * 1000)).collect();
    points[7] = Point { ns: 9e9, round_trip: 11, ..points[7] };
    let model = fit(&points, 8, 1.0);
    assert!((model.ns(2_000_000) - 1_000_100.0).abs() < 1e-3, "{model:?}");
    assert_eq!(model.ticks(model.ns(123_456)), 123_456);
    assert_eq!(ClockModel::from_bytes(model.to_bytes()), model);
}
