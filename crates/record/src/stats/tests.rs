//! Properties of the estimates.

use crate::stats::*;

#[test]
fn a_percentile_needs_as_many_samples_as_its_bounds() {
    for q in [0.001, 0.05, 0.5, 0.9, 0.95, 0.99, 0.999] {
        let n = least_samples(q) as usize;
        assert!(order_bounds(n, q).is_some() && order_bounds(n - 1, q).is_none(), "{q}: {n}");
        let samples: Vec<f64> = (0..n).map(|i| ((i * 7919) % n) as f64).collect();
        let found = percentiles(&samples, &[q])[0];
        assert!(found.is_none_or(|found| found.value == (n as f64 * q).ceil() - 1.0), "{q}: {found:?}");
        assert_eq!(percentiles(&samples[..n - 1], &[q]), [None]);
    }
    assert_eq!(percentiles(&[], &[0.5]), [None]);
}
use proptest::prelude::*;

#[test]
fn bounds_of_the_median_match_tables() {
    for (n, bounds) in
        [(6, (1, 6)), (10, (2, 9)), (20, (6, 15)), (30, (10, 21)), (100, (40, 61)), (1000, (469, 532))]
    {
        assert_eq!(order_bounds(n, 0.5), Some(bounds), "n = {n}");
    }
    for n in 0..6 {
        assert_eq!(order_bounds(n, 0.5), None, "n = {n}");
    }
}

#[test]
fn percentiles_need_enough_samples() {
    for (q, least) in [(0.95, 72), (0.99, 368), (0.999, 3688)] {
        assert_eq!(order_bounds(least - 1, q), None, "{q}");
        assert!(order_bounds(least, q).is_some(), "{q}");
    }
    let samples: Vec<f64> = (0..400).map(|i| f64::from(i * 7919 % 400)).collect();
    let s = Summary::new(&samples).unwrap();
    let values = [s.p95, s.p99, s.p999].map(|p| p.map(|p| p.value));
    assert_eq!((s.tail_n, values), (400, [Some(379.0), Some(395.0), None]));
    assert_eq!(
        s.p95.unwrap().ci95,
        order_bounds(400, 0.95).map(|(l, u)| [l, u].map(|rank| (rank - 1) as f64))
    );
    let s = Summary::of_batches(&samples).unwrap();
    assert_eq!((s.tail_n, s.p95, s.p99), (0, None, None));
}

#[test]
fn dependence_widens_the_interval_of_a_percentile_or_removes_it() {
    let samples = |run: u32| -> Vec<f64> {
        // One value in ten is large, in runs of this length.
        let large = |i: u32| i / run % 10 == 3;
        (0..8000).map(|i| f64::from(i * 7919 % 8000) + if large(i) { 1e4 } else { 0.0 }).collect()
    };
    let width = |run| {
        let [low, high] = Summary::new(&samples(run)).unwrap().p95?.ci95?;
        Some(high - low)
    };
    assert!(width(40).unwrap() > 2.0 * width(1).unwrap());
    assert_eq!(width(400), None);
}

#[test]
fn the_median_deviation_equals_that_of_sorted_deviations() {
    for n in [1, 2, 3, 4, 7, 10, 101, 1000] {
        let samples: Vec<f64> = (0..n).map(|i| f64::from(i * i * 31 % 97)).collect();
        let s = Summary::new(&samples).unwrap();
        let deviations: Vec<f64> = samples.iter().map(|x| (x - s.median).abs()).collect();
        assert_eq!(Some(s.mad), super::median(&deviations), "{n}");
    }
}

#[test]
fn few_samples_have_an_interval_while_they_show_no_dependence() {
    assert_eq!(Summary::new(&[3.0, 1.0, 5.0, 2.0, 6.0, 4.0]).unwrap().ci95, Some([1.0, 6.0]));
    assert_eq!(Summary::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap().ci95, None);
}

#[test]
fn equal_samples_share_their_mean_rank() {
    let Ranked { sorted, ranks } = Ranked::new(&[7.0, 3.0, 7.0, 1.0]);
    assert_eq!((sorted, ranks), (vec![1.0, 3.0, 7.0, 7.0], vec![3.5, 2.0, 3.5, 1.0]));
}

#[test]
fn probabilities_of_many_samples_do_not_underflow() {
    let (l, u) = order_bounds(200_000, 0.5).unwrap();
    assert!(u - l < 1000 && l < 100_000 && u > 100_000);
}

#[test]
fn intervals_have_their_nominal_coverage() {
    // Coverage is at least 95 % by construction, and not much more.
    for n in [6, 10, 31, 100, 365] {
        let (l, u) = order_bounds(n, 0.5).unwrap();
        let pmf = Binomial::new(n, 0.5);
        let covered: f64 = pmf.p[l - pmf.from..u - pmf.from].iter().sum();
        assert!((0.95..0.99).contains(&covered), "n = {n}: {covered}");
    }
}

#[test]
fn dependence_widens_the_interval_or_removes_it() {
    let mut state = 1u64;
    let mut noise = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as f64 / (1u64 << 31) as f64 - 0.5
    };
    let mut x = 0.0;
    let walk: Vec<f64> = (0..4000)
        .map(|_| {
            x = 0.9 * x + noise();
            100.0 + x
        })
        .collect();
    let s = Summary::new(&walk).unwrap();
    assert!(s.lag1 > 0.8, "{s:?}");
    let naive = order_bounds(4000, 0.5).map(|(l, u)| sorted(&walk)[u - 1] - sorted(&walk)[l - 1]).unwrap();
    let [low, high] = s.ci95.unwrap();
    assert!(high - low > 2.0 * naive);
    let drift: Vec<f64> = (0..100).map(f64::from).collect();
    let s = Summary::new(&drift).unwrap();
    assert!(s.ci95.is_none() && !s.independent());
}

#[test]
fn bimodal_samples_are_recognised() {
    let two: Vec<f64> = (0..200).map(|i| if i % 3 == 0 { 570.0 } else { 130.0 } + f64::from(i % 7)).collect();
    assert!(Summary::new(&two).unwrap().bimodal);
    let one: Vec<f64> = (0..200).map(|i| 130.0 + f64::from(i * 37 % 200) / 10.0).collect();
    assert!(!Summary::new(&one).unwrap().bimodal);
    let outlier: Vec<f64> = (0..200).map(|i| if i == 7 { 1e6 } else { 130.0 + f64::from(i % 5) }).collect();
    assert!(!Summary::new(&outlier).unwrap().bimodal);
}

#[test]
fn one_outlier_moves_the_mean_and_not_the_median() {
    let mut samples = vec![10.0; 99];
    samples.push(1e5);
    let s = Summary::new(&samples).unwrap();
    assert_eq!((s.median, s.ci95, s.mad), (10.0, Some([10.0, 10.0]), 0.0));
    assert!(s.mean > 1000.0);
    assert_eq!(Summary::new(&[]), None);
}

proptest! {
    #![proptest_config(ombx_testkit::seeded())]
    #[test]
    fn a_summary_is_ordered_for_any_samples(samples in prop::collection::vec(0.0f64..1e12, 1..400)) {
        let s = Summary::new(&samples).unwrap();
        prop_assert!(s.min <= s.median && s.median <= s.max);
        prop_assert!(s.min <= s.mean * (1.0 + 1e-12) && s.mean <= s.max * (1.0 + 1e-12));
        if let Some([low, high]) = s.ci95 {
            prop_assert!(s.min <= low && low <= high && high <= s.max);
        }
        prop_assert!((-1.0..=1.0).contains(&s.lag1));
        for Percentile { value, ci95 } in [s.p95, s.p99, s.p999].into_iter().flatten() {
            prop_assert!(value >= s.median && value <= s.max);
            prop_assert!(ci95.is_some_and(|[low, high]| low <= value && value <= high));
        }
    }

    #[test]
    fn the_interval_contains_the_median(seed in any::<u64>(), pull in 0.0f64..0.95, skew in 1i32..9) {
        let mut state = seed;
        let mut x = 0.0;
        let samples: Vec<f64> = (0..500).map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            x = pull * x + ((state >> 33) as f64 / (1u64 << 31) as f64).powi(skew);
            1.0 + x
        }).collect();
        let s = Summary::new(&samples).unwrap();
        if let Some([low, high]) = s.ci95 {
            prop_assert!(low <= s.median && s.median <= high);
        }
    }

    #[test]
    fn scaling_samples_scales_the_summary(samples in prop::collection::vec(1.0f64..1e6, 6..80)) {
        let doubled: Vec<f64> = samples.iter().map(|x| x * 2.0).collect();
        let (a, b) = (Summary::new(&samples).unwrap(), Summary::new(&doubled).unwrap());
        prop_assert!((b.median - 2.0 * a.median).abs() < 1e-6);
        prop_assert_eq!(a.ci95.is_some(), b.ci95.is_some());
    }

    #[test]
    fn bounds_match_their_definition(n in 6usize..300) {
        let (l, u) = order_bounds(n, 0.5).unwrap();
        prop_assert_eq!(l + u, n + 1);
        let Binomial { from, p } = Binomial::new(n, 0.5);
        let below = |j: usize| p[..j - from].iter().sum::<f64>();
        prop_assert!(below(l) <= TAIL && below(l + 1) > TAIL);
    }
}

#[test]
fn the_headline_of_rounds_is_the_mean_of_their_levels() {
    let rounds: Vec<Vec<f64>> = [100.0, 140.0, 110.0, 130.0, 120.0, 100.0]
        .iter()
        .map(|level| vec![*level, level + 1.0, level + 1.0, level + 90.0])
        .collect();
    let summary = Summary::of_rounds(&rounds).unwrap();
    let mean = 700.0 / 6.0 + 1.0;
    assert!((summary.median - mean).abs() < 1e-9, "{summary:?}");
    let s = ([100.0_f64, 140.0, 110.0, 130.0, 120.0, 100.0]
        .iter()
        .map(|x| (x + 1.0 - mean).powi(2))
        .sum::<f64>()
        / 5.0)
        .sqrt();
    let [low, high] = summary.ci95.unwrap();
    let half = 2.5706 * s / 6f64.sqrt();
    assert!(
        (high - mean - half).abs() < 2e-3 * half && (mean - low - half).abs() < 2e-3 * half,
        "{summary:?}"
    );
    assert_eq!((summary.n, summary.min, summary.max), (24, 100.0, 230.0));
    assert!(summary.mad < 2.0, "levels are no scatter: {summary:?}");
    assert_eq!(Summary::of_rounds(&[]), None);
    assert_eq!(Summary::of_rounds(&rounds[..5]).unwrap().ci95, None);
}

#[test]
fn the_level_of_a_round_is_the_mean_of_its_positions_without_outliers() {
    assert_eq!(level(&[]), None);
    assert_eq!(level(&[7.0]), Some(7.0));
    // Means of pairs: 1, 2, 3.5, 3, 4.5, 6.
    assert_eq!(level(&[1.0, 3.0, 6.0]), Some(3.25));
    // Two positions, in which every second sample is.
    let two: Vec<f64> = (0..16).map(|at| 100.0 + 50.0 * f64::from(at % 2)).collect();
    assert_eq!(level(&two), Some(125.0));
    // Four of 16 samples are a quarter.
    let paused: Vec<f64> =
        (0..16).map(|at| if at % 4 == 0 { 1e9 } else { 100.0 + f64::from(at) / 1e3 }).collect();
    assert!(level(&paused).unwrap() < 101.0, "{:?}", level(&paused));
}

#[test]
fn quantiles_of_student_match_tables() {
    for (freedom, t) in [(5.0, 2.5706), (7.0, 2.3646), (10.0, 2.2281), (30.0, 2.0423), (1e9, 1.959_96)] {
        assert!((student975(freedom) / t - 1.0).abs() < 1e-3, "{freedom}: {}", student975(freedom));
    }
}
