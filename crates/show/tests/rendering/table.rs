//! Text tables.

use ombx_estimate::{
    launches::Cases,
    number::{RateUnit, TimeUnit},
};
use ombx_record::{
    file,
    result::{Figure, Level, Mark, MarkCode, Measurement, Outcome, RunOutcome},
};
use ombx_show::Table;

use crate::{
    allreduce, around, bandwidth, complete, golden, latency, nine_launches, of_launches, rendered, shown,
};

fn table(rows: &[Measurement]) -> String {
    complete(&mut Table::default(), rows)
}

fn notice(code: &str, short: &str, advice: &str) -> Mark {
    Mark::with_advice(code, short, advice).at(Level::Caution)
}

/// Returns the lines between the heading and the notes.
fn grid(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let head = lines.iter().position(|line| line.trim_start().starts_with("bytes ")).unwrap();
    lines[head..].iter().take_while(|l| l.starts_with(' ') && !l.starts_with("  n/a")).copied().collect()
}

#[test]
fn of_the_golden_run() {
    let file::RunWithRows { run, rows, .. } = golden();
    insta::assert_snapshot!(rendered(&mut Table::default(), &run, &rows, RunOutcome::Complete));
}

#[test]
fn of_every_size_with_marks() {
    let mut rows: Vec<Measurement> =
        (0..23).step_by(2).map(|k| latency(1 << k, &around(2000 + (1 << k) * 3, 400))).collect();
    rows[0].trust =
        vec![notice("preempted", "preempted 12x", "something else ran on the ranks' CPUs: free them")];
    for (row, reached) in [(3, 3.1), (5, 2.4), (6, 9.9)] {
        let advice = format!("precision reached: {reached}%, asked for 1.0%: raise --max-time");
        rows[row].trust = vec![notice("not_converged", &format!("not converged ({reached}%)"), &advice)];
    }
    insta::assert_snapshot!(table(&rows));
}

#[test]
fn missing_figures_are_explained() {
    let few = table(&[latency(8, &[2000, 2010, 2020])]);
    assert!(few.contains("n/a: a 95% interval needs 6 independent samples\n"), "{few}");
    assert_eq!(few.matches("n/a ").count(), 2, "{few}");
    // Nobody asked for a percentile.
    assert!(!few.contains("p99 needs"), "{few}");
    let asked = |percentiles: &str| Table::default().showing(shown((None, None), percentiles));
    let few = complete(&mut asked("99"), &[latency(8, &[2000, 2010, 2020])]);
    assert!(few.contains("n/a: a p99 needs 368 samples of single iterations\n"), "{few}");
    let rate = complete(&mut asked("99"), &[bandwidth(8, &around(2000, 100))]);
    assert!(rate.contains("n/a: a p1 of the rate needs 368 samples of single iterations\n"), "{rate}");
    let enough = table(&[latency(8, &around(2000, 400))]);
    assert!(!enough.contains("n/a"), "{enough}");

    let mut marked = latency(8, &[2000, 2010, 2020]);
    marked.trust =
        vec![notice("no_interval", "no interval", "fewer than 6 samples have no interval: raise --max-time")];
    let marked = table(&[marked]);
    assert!(
        !marked.contains("a 95% interval needs") && marked.contains("no interval: fewer than 6"),
        "{marked}"
    );
}

#[test]
fn messages_of_0_bytes_have_a_rate() {
    let text = table(&[bandwidth(0, &around(2000, 400)), bandwidth(8, &around(2000, 400))]);
    let lines = grid(&text);
    assert!(lines[0].contains("  kmsg/s  samples"), "{text}");
    // 64 messages in 2.01 us.
    for line in &lines[1..] {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let rate: f64 = cells[cells.len() - 2].parse().unwrap();
        assert!((rate / 31_840.0 - 1.0).abs() < 0.01, "{text}");
    }
    assert!(lines[1].contains("n/a"), "{text}");
}

#[test]
fn collectives_show_algorithm_and_bus_bandwidth() {
    let rows = [allreduce(8, &around(2000, 400)), allreduce(4096, &around(2000, 400))];
    let text = table(&rows);
    let lines = grid(&text);
    assert!(lines[0].contains("  algorithm MB/s  bus MB/s  samples"), "{text}");
    let cells =
        |line: &str| -> Vec<f64> { line.split_whitespace().filter_map(|cell| cell.parse().ok()).collect() };
    for line in &lines[1..] {
        let cells = cells(line);
        let [.., algorithm, bus, _] = cells[..] else { panic!("{text}") };
        assert!((bus / algorithm / 1.5 - 1.0).abs() < 0.01, "{text}");
    }
    // 4096 bytes in 2.01 us.
    assert!((cells(lines[2]).iter().rev().nth(2).unwrap() / 2038.0 - 1.0).abs() < 0.01, "{text}");
    assert!(!table(&[latency(8, &around(2000, 400))]).contains("bus"));
    // The algorithm bandwidth is left out before percentiles, and the bus bandwidth after them.
    let shown = |columns: usize| {
        let text = complete(&mut Table::default().fitting(Some(columns)), &rows);
        let title = grid(&text)[0].to_owned();
        ["algorithm MB/s", " p99 ", "bus MB/s"].map(|name| title.contains(name))
    };
    let mut all: Vec<_> = (50..130).rev().map(shown).collect();
    all.dedup();
    let [yes, no] = [true, false];
    assert_eq!(all, [[yes, yes, yes], [no, yes, yes], [no, no, yes], [no, no, no]]);
}

#[test]
fn unresolved_figures_are_not_numbers() {
    for (row, why) in [
        (latency(0, &[0; 400]), "n/a: the time is below the resolution of the clock\n"),
        (bandwidth(8, &[0; 400]), "n/a: the time is below the resolution of the clock\n"),
        (bandwidth(0, &around(2000, 400)), "n/a: 0 bytes have no bandwidth\n"),
        (Measurement { summary: None, samples: vec![], ..latency(8, &[]) }, "n/a: nothing was sampled\n"),
    ] {
        let text = table(&[row]);
        assert!(text.contains(why), "{text}");
        let cells: Vec<&str> = grid(&text)[1].split_whitespace().collect();
        assert_eq!(cells[1..6], ["n/a"; 5], "{text}");
    }
    // With a sample of 0 ns, a rate has no maximum. Its other figures remain.
    let mut times = around(2000, 400);
    times[9] = 0;
    let row =
        grid(&table(&[bandwidth(8, &times)]))[1].split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(row[7], "n/a", "{row:?}");
    assert_eq!(row.iter().filter(|cell| *cell == "n/a").count(), 1);
}

#[test]
fn a_failed_row_shows_no_figure_of_wrong_data() {
    let mut broken = golden().rows.remove(3);
    let text = table(&[broken.clone()]);
    assert!(text.contains("FAILED") && text.contains("wrong data"), "{text}");
    assert!(text.contains("FAILED at 64 bytes: data arrived wrong at rank 0, message 3, byte 63"), "{text}");
    assert!(!text.contains("894"), "{text}");
    broken.check = ombx_record::result::Check::Unsupported;
    broken.outcome = Outcome::Failed("the file system is full".into());
    let text = table(&[broken]);
    assert!(
        !text.contains("wrong data") && text.contains("FAILED at 64 bytes: the file system is full"),
        "{text}"
    );
}

#[test]
fn skipped_rows_are_counted_by_reason() {
    let skip = |bytes, why: &str| Measurement {
        outcome: Outcome::Skipped(why.into()),
        summary: None,
        samples: vec![],
        ..latency(bytes, &[])
    };
    let rows = [
        skip(1, "too little memory"),
        latency(2, &around(2000, 400)),
        skip(4, "too little memory"),
        skip(8, "no"),
    ];
    let text = table(&rows);
    assert!(text.contains("  skipped 1 row: no\n  skipped 2 rows: too little memory\n"), "{text}");
    assert_eq!(grid(&text).len(), 2 + 2, "a head, a row and the two reasons: {text}");
}

#[test]
fn repeated_advice_is_printed_once() {
    let mark = notice("governor", "governor powersave", "set the governor to performance");
    let row = |row: Measurement| Measurement { trust: vec![mark.clone()], ..row };
    let rows = [row(latency(8, &around(2000, 400))), row(bandwidth(8, &around(2000, 400)))];
    let text = table(&rows);
    assert_eq!(text.matches("governor: set").count(), 1, "{text}");
    assert_eq!(text.matches("governor powersave\n").count(), 2, "{text}");
}

#[test]
fn notes_are_shown_on_request_only() {
    let mut rows = [8, 16, 32].map(|bytes| latency(bytes, &around(2000, 400)));
    rows.iter_mut().for_each(|row| (row.launches, row.checked) = (nine_launches(1000.0), 600));
    rows[0].trust =
        vec![Mark::with_advice(MarkCode::Governor, "governor powersave", "set the governor to performance")];
    rows[1].trust = vec![rows[0].trust[0].clone(), notice("bimodal", "bimodal", "look at the samples")];
    rows[2].trust =
        vec![Mark::with_advice(MarkCode::SharedCpu, "shared CPU", "bind each rank to its own CPU")];
    let usual = table(&rows);
    assert!(!usual.contains("governor"), "{usual}");
    assert!(grid(&usual)[2].ends_with(" bimodal") && grid(&usual)[3].ends_with(" shared CPU"), "{usual}");
    assert!(usual.contains("  shared cpu: bind each rank"), "{usual}");
    let all = complete(&mut Table::default().with_notes(), &rows);
    assert!(grid(&all)[1].ends_with(" governor powersave"), "{all}");
    assert!(grid(&all)[2].ends_with(" governor powersave, bimodal"), "{all}");
    assert!(all.contains("  governor: set the governor"), "{all}");
    let sum = "\n1 of 3 rows is fit to publish; 2 not: ranks on the same CPU (1), samples in two groups (1)\n\
               verified: all 3600 checked operations were right (1200 in the least checked row)\n";
    assert!(usual.contains(sum), "{usual}");
    let excluded =
        "errors in more than 0.25 % of the operations of any row are excluded with 95 % probability\n";
    assert!(all.contains(sum) && all.contains(excluded), "{all}");
}

#[test]
fn columns_of_any_width_are_aligned() {
    let mut rows: Vec<Measurement> = [(1, 900), (1000, 1_234_567), (4_194_303, 98_765_432_100)]
        .map(|(b, ns)| latency(b, &around(ns, 400)))
        .into();
    rows.push(latency(16, &[2000, 2010]));
    rows[1].trust = vec![notice("stolen", "stolen 12%", "x"), notice("clock", "clock", "y")];
    let text = table(&rows);
    let lines = grid(&text);
    let columns =
        ["bytes", "us", "95% within this launch", "p99 iteration", "min sample", "max sample", "samples"];
    for (at, name) in columns.iter().enumerate() {
        let end = lines[0].find(&format!(" {name}")).unwrap() + 1 + name.len();
        for line in &lines[1..=rows.len()] {
            let shown = line.chars().take(end).collect::<String>();
            assert!(
                !shown.ends_with(' ') && line.chars().nth(end).is_none_or(|c| c == ' '),
                "column {at}:\n{text}"
            );
        }
    }
    assert!(lines[2].ends_with("  stolen 12%, clock"), "{text}");
}

#[test]
fn without_marks_it_is_at_most_120_columns_wide() {
    let mut widest = latency(999_999_999, &around(3_000_000_000_000, 100_000));
    widest.samples[0].batch = 1_000_000;
    let mut fastest = bandwidth(999_999_999, &around(50_000, 100_000));
    fastest.samples[0].batch = 1_000_000;
    for row in [widest, fastest] {
        let text = table(&[row]);
        let longest = grid(&text).iter().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= 120, "{longest} columns:\n{text}");
    }
}

#[test]
fn an_incomplete_run_is_marked() {
    let rows = [latency(8, &around(2000, 400))];
    let of = |rows: &[Measurement], outcome| rendered(&mut Table::default(), &golden().run, rows, outcome);
    assert!(of(&rows, RunOutcome::Interrupted).ends_with("\nnot complete: interrupted after 1 row\n"));
    assert!(
        of(&[], RunOutcome::Interrupted).ends_with("no rows\n\nnot complete: interrupted after 0 rows\n")
    );
    assert!(of(&rows, RunOutcome::Broken).contains("the job ended early, after 1 row\n"));
}

#[test]
fn the_heading_shortens_hosts_and_library() {
    let mut run = golden().run;
    run.library = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4\nmore".into();
    let head = |run: &_| {
        rendered(&mut Table::default(), run, &[], RunOutcome::Complete).lines().next().unwrap().to_owned()
    };
    assert_eq!(head(&run), "ombx 0.1.0 (release) · Open MPI v4.1.4 · 2 ranks on n01:0 n02:0");
    let apart = run.places.clone();
    run.places = [&apart[..], &apart[..]].concat();
    assert!(head(&run).ends_with("4 ranks on n01:0 n02:0 n01:0 n02:0, cyclic placement"), "{}", head(&run));
    run.places = vec![run.places[0].clone(); 8];
    run.library = "MPICH Version:\t4.0.2\nMPICH Release date".into();
    assert_eq!(head(&run), "ombx 0.1.0 (release) · MPICH Version: 4.0.2 · 8 ranks on 1 host");
    run.places.truncate(1);
    assert!(head(&run).ends_with("1 rank on n01:0"));
}

#[test]
fn control_characters_of_a_file_are_removed() {
    let file::RunWithRows { mut run, mut rows, .. } = golden();
    run.library = "\u{1b}[2J".into();
    run.places[0].host = "a\rb".into();
    rows[0].bench = "p2p\u{7}".into();
    rows[0].trust[0].short = "x\u{1b}[31m".into();
    rows[0].trust[0].advice = "y\nz".into();
    rows[2].outcome = Outcome::Skipped("\u{1b}]0;title\u{7} \u{202e}txet\u{2028}".into());
    rows[3].outcome = Outcome::Failed("a\nb".into());
    let text = rendered(&mut Table::default(), &run, &rows, RunOutcome::Complete);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    assert!(!text.contains(['\u{202e}', '\u{2028}']), "{text:?}");
}

#[test]
fn rows_of_one_benchmark_share_a_table() {
    let rows =
        [latency(1, &around(1000, 400)), latency(2, &around(1000, 400)), bandwidth(1, &around(1000, 400))];
    let text = table(&rows);
    assert_eq!(text.matches(" bytes ").count(), 2, "{text}");
}

#[test]
fn additional_figures_have_columns_or_reasons() {
    let mut row = latency(1, &around(1000, 400));
    row.figures.insert("overlap_percent".into(), Figure::Value(93.25));
    row.figures.insert("residual_us".into(), Figure::Unresolved("the clocks drift".into()));
    let text = table(&[row.clone()]);
    for part in ["overlap percent", "93.250", "n/a: the clocks drift"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    row.figures.insert("overlap_low_percent".into(), Figure::Value(88.5));
    row.figures.insert("overlap_high_percent".into(), Figure::Value(98.0));
    let text = table(&[row]);
    assert!(text.contains("93.2 (88.5 .. 98.0)") && !text.contains("low"), "{text}");
}

#[test]
fn rows_over_launches_have_their_number_and_range() {
    let file::RunWithRows { run, mut rows, .. } = of_launches();
    let shown = |rows: &[Measurement]| rendered(&mut Table::default(), &run, rows, RunOutcome::Complete);
    let text = shown(&rows);
    assert!(text.contains("3 launches, cases in random order") && text.contains("(75%)"), "{text}");
    assert!(text.contains("min launch  max launch  launches") && !text.contains("1 launch:"), "{text}");
    // A row that only one launch has measured.
    let over = rows[0].launches.as_mut().unwrap();
    over.medians_ns.truncate(1);
    let text = shown(&rows);
    assert!(text.contains("n/a: an interval over launches needs 2 launches"), "{text}");
    assert!(text.contains("1 launch: variation between launches unknown"), "{text}");
}

#[test]
fn units_and_percentiles_are_those_of_the_user() {
    // 4000 different times: the percentile p is at the p * 40th.
    let times: Vec<u64> = (0..4000).map(|i| 20_000 + (i * 1601) % 4000).collect();
    let rows = [latency(8, &times), bandwidth(1 << 20, &times)];
    let chosen = shown((Some(TimeUnit::Ns), Some(RateUnit::GigaBits)), "50,99.9,90");
    let text = complete(&mut Table::default().showing(chosen), &rows);
    let canonical = table(&rows);
    let cells = |text: &str, bench: &str| -> [Vec<String>; 2] {
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|line| line.starts_with(bench)).unwrap();
        let words = |line: &str| {
            line.split("  ").map(str::trim).filter(|w| !w.is_empty()).map(String::from).collect()
        };
        [words(lines[at + 1]), words(lines[at + 2])]
    };
    let [titles, times] = cells(&text, "p2p.latency");
    let ends = ["min sample", "max sample"];
    assert_eq!(titles[..3], ["bytes", "ns", "95% within this launch"]);
    assert_eq!(titles[3..6], ["p50 iteration", "p99.9 iteration", "p90 iteration"]);
    assert_eq!(titles[6..8], ends);
    let [_, in_us] = cells(&canonical, "p2p.latency");
    let number = |cell: &str| cell.parse::<f64>().unwrap();
    assert!((number(&times[1]) - 1e3 * number(&in_us[1])).abs() < 1.0, "{text}{canonical}");
    let legs = rows[0].work.unwrap().legs as f64;
    for (at, sample) in [(3, 21_999.0), (4, 23_995.0), (5, 23_599.0)] {
        assert!((number(&times[at]) - sample / legs).abs() < 1.0, "{at} {sample}: {text}");
    }
    let [titles, rates] = cells(&text, "rma.put_bw");
    assert_eq!(titles[..3], ["bytes", "Gbit/s", "95% within this launch"]);
    assert_eq!(titles[3..6], ["p50 iteration", "p0.1 iteration", "p10 iteration"]);
    assert_eq!(titles[6..8], ends);
    let [_, in_mb] = cells(&canonical, "rma.put_bw");
    assert!((number(&rates[1]) / number(&in_mb[1]) - 8e-3).abs() < 1e-5, "{text}{canonical}");
    assert!(number(&rates[4]) < number(&rates[5]) && number(&rates[5]) < number(&rates[3]), "{text}");
}

#[test]
fn a_percentile_says_how_many_samples_it_needs() {
    let text = complete(
        &mut Table::default().showing(shown((None, None), "50,99.99")),
        &[latency(8, &around(2000, 400))],
    );
    assert!(text.contains("n/a: a p99.99 needs 36887 samples of single iterations\n"), "{text}");
    assert_eq!(text.matches("n/a").count(), 2, "{text}");
}

/// The percentile of a row over launches is that of all their single iterations, as for the percentiles of the file.
#[test]
fn chosen_percentiles_of_launches_are_combined() {
    let launches: Vec<file::RunWithRows> = (0..6u64)
        .map(|launch| {
            let file::RunWithRows { mut run, .. } = golden();
            run.id = launch.to_string();
            let rows = vec![latency(8, &around(2000, 4000))];
            file::RunWithRows { rows, ..file::RunWithRows::new(run) }
        })
        .collect();
    let mut cases = Cases::with_percentiles("99,95".parse().unwrap());
    launches.iter().for_each(|launch| cases.launch(launch));
    let summary = cases.groups()[0].estimates()[0].summary.clone().unwrap();
    assert!(
        summary.p99.is_some() && summary.chosen == [(99.0, summary.p99), (95.0, summary.p95)],
        "{summary:?}"
    );
}
