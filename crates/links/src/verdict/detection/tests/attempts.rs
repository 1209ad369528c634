//! Numbers of attempts at measuring links again.

use ombx_record::{
    result::{Measurement, Metric},
    stats::Summary,
};

use crate::verdict::{MOST_ROWS, Retest, TimesBySize, detection::tests::*};

fn hosts(count: u32) -> Hosts {
    let names: Vec<String> = (0..count).map(|host| format!("n{host}")).collect();
    Hosts::new(names.iter().map(String::as_str))
}

/// With three attempts two of these sweeps name an ordinary link. `cargo xtask coverage verdicts` counts many more.
#[test]
fn bursts_that_meet_a_link_again_and_again_accuse_none() {
    for seed in 0..60 {
        let (times, hosts) = with_bursts(hosts(32), seed, [0.02, 0.1], false, |_, _| 1.0);
        let found = find_slow(&times, &hosts);
        assert!(found.is_empty(), "seed {seed}: {found:?}");
    }
}

#[test]
fn bursts_ask_for_more_attempts_and_slow_hosts_do_not() {
    let attempts = |hosts: Hosts, bursts: f64, slow: fn(u32, u32) -> f64| {
        let (mut times, hosts) = with_bursts(hosts, 1, [0.02, bursts], false, slow);
        (times[0].alone, times[0].reference) = (Vec::new(), Vec::new());
        let links = retest_candidates(&times, &hosts, 4);
        let all: BTreeSet<usize> = links.iter().map(|link| link.attempts).collect();
        all.into_iter().collect::<Vec<usize>>()
    };
    let slow_host = |a, b| if a == 3 || b == 3 { 1.5 } else { 1.0 };
    assert_eq!(attempts(hosts(10), 0.0, slow_host), [TIMES_AGAIN]);
    assert_eq!(attempts(hosts(16), 0.3, |_, _| 1.0), [6]);
    // Few links are all measured again.
    assert_eq!(attempts(hosts(8), 0.3, |_, _| 1.0), [TIMES_AGAIN]);
}

#[test]
fn a_link_is_complete_with_its_own_attempts() {
    let hosts = hosts(9);
    let again = |from, attempts| Retest { from, to: from + 1, bytes: 8, is_slow: true, attempts };
    let given_up = |series: &[(Retest, usize)]| {
        let mut times = TimesBySize::default();
        for (link, attempt) in series.iter().flat_map(|(link, rows)| (1..=*rows).map(move |row| (link, row)))
        {
            let mut row = Measurement::new("links", "links", Metric::Latency, 2);
            (row.bytes, row.summary) = (Some(8), Summary::new(&[5000.0; 10]));
            let ends = [("from", link.from.to_string()), ("to", link.to.to_string())];
            let axes = ends.into_iter().chain(link.axes(attempt));
            row.axes.extend(axes.map(|(name, value)| (name.to_owned(), value)));
            times.add(&row, &hosts, MOST_ROWS);
        }
        times.0[0].attempts().1
    };
    // A look needed three attempts, the end of the sweep four.
    assert_eq!(given_up(&[(again(0, 3), 3), (again(2, 4), 4)]), BTreeSet::new());
    assert_eq!(given_up(&[(again(0, 4), 3), (again(2, 4), 4)]), BTreeSet::from([(0, 1)]));
    // The sweep was interrupted after two attempts.
    assert_eq!(given_up(&[(again(0, 4), 1), (again(2, 4), 2)]), BTreeSet::from([(0, 1)]));
}
