//! The method of a measurement as a paragraph for a publication, with the numbers of its file.

use std::collections::BTreeSet;

use ombx_estimate::{
    launches::weight_in_total,
    publishable::{INTERVAL, Publishable},
    state,
    text::named_values,
};
use ombx_links::verdict::{Checks, SweptRun};
use ombx_record::{
    cpu_list::parse_cpus,
    fact::{Fact, HostFacts},
    file::RunWithRows,
    link,
    result::{Measurement, Outcome, Placement, Run},
    runs::{hosts, library, number},
    stats::Summary,
    unit::counted,
};

use crate::provenance::host_list;

/// Maximum number of benchmarks that the paragraph names.
const MOST_NAMED: usize = 6;
/// Facts whose absence a reviewer asks about, in words.
const ASKED: [(&str, &str); 6] = [
    ("microcode", "the microcode"),
    ("smt", "the state of SMT"),
    ("governor", "the frequency governor"),
    ("turbo", "the state of turbo"),
    ("network", "the network device"),
    ("virtual_machine", "whether the hosts are virtual machines"),
];

/// Returns the method of a run as one paragraph. Nothing is said about what the file does not have.
pub fn paragraph(swept: &SweptRun) -> String {
    let SweptRun { run: RunWithRows { run, rows, .. }, links } = swept;
    let measured: Vec<&Measurement> = rows.iter().filter(|row| row.outcome == Outcome::Ok).collect();
    let of_links = links.iter().flat_map(|links| links.checks());
    let mut of_links = of_links.map(|(bytes, checks)| (Some(bytes), checks)).peekable();
    let mut names: BTreeSet<&str> = measured.iter().map(|row| row.bench.as_str()).collect();
    names.extend(of_links.peek().map(|_| link::BENCH));
    let (mut sizes, mut checks) = (BTreeSet::new(), Checks::default());
    let of_rows = measured.iter().map(|row| (row.bytes, Checks::new(row, 1)));
    for (bytes, some) in of_links.chain(of_rows) {
        sizes.extend(bytes);
        checks.add(some);
    }
    let parts = [
        Some(what(run, names, &sizes)),
        Some(ranks(run)),
        machines(&run.hosts),
        cores(run),
        Some(communication(run)),
        repetition(run, &measured, links.as_ref().map(|_| LINKS)),
        precision(&measured),
        verification(checks),
        publishable(rows),
        Some(clock(run)),
        unknown(run),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn what(run: &Run, names: BTreeSet<&str>, sizes: &BTreeSet<u64>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let benchmarks = match names.as_slice() {
        [] => "no benchmark".to_owned(),
        [link::BENCH] => format!("every link between {}", counted(run.places.len(), "rank")),
        some if some.len() > MOST_NAMED => {
            format!("{} and {} other benchmarks", some[..MOST_NAMED].join(", "), some.len() - MOST_NAMED)
        }
        some => listed(some),
    };
    let sizes = match (sizes.first(), sizes.last()) {
        (Some(least), Some(most)) if least == most => format!(" with messages of {}", size(*least)),
        (Some(least), Some(most)) => {
            format!(" with messages of {} sizes from {} to {}", sizes.len(), size(*least), size(*most))
        }
        _ => String::new(),
    };
    let commit = software(run, "commit").map(|commit| format!("commit {commit}, ")).unwrap_or_default();
    let compiler = software(run, "compiler").map(|compiler| format!(" by {compiler}")).unwrap_or_default();
    format!(
        "We measured {benchmarks}{sizes} with ombx {} ({commit}{} build{compiler}), started on {}.",
        run.version,
        run.profile,
        run.started.split('T').next().unwrap_or_default()
    )
}

/// Returns a known fact about the software of a run.
fn software<'r>(run: &'r Run, name: &str) -> Option<&'r str> {
    run.software.get(name).and_then(Fact::known)
}

fn ranks(run: &Run) -> String {
    let hosts = hosts(run);
    let count = run.places.len();
    let on = match hosts.as_slice() {
        [one] => format!("the host {one}"),
        several => format!("{} hosts ({})", several.len(), host_list(several)),
    };
    let placement = match Placement::from_places(&run.places) {
        placement if placement.is_worth_reporting(&run.places) => {
            format!(" in {} placement", placement.name())
        }
        _ => String::new(),
    };
    let bound = |cpus: &str| parse_cpus(cpus).len() == 1;
    let binding = match run.places.iter().filter(|place| bound(&place.cpus)).count() {
        all if all == count && count > 0 => ", each bound to one CPU",
        0 => ", none bound to a single CPU",
        _ => ", some of them bound to one CPU",
    };
    format!("The {} ran on {on}{placement}{binding}.", counted(count, "rank"))
}

/// Describes the hosts, each group of equal ones once.
fn machines(hosts: &[HostFacts]) -> Option<String> {
    match hosts {
        [] => None,
        [all] => {
            let (it, they) = if all.hosts.len() == 1 { ("The host", "It") } else { ("Each host", "Each") };
            machine(all, it, they)
        }
        groups => Some(groups.iter().filter_map(named_machines).collect::<Vec<_>>().join(" ")),
    }
}

/// Describes a group of equal hosts by their names.
fn named_machines(group: &HostFacts) -> Option<String> {
    let names: Vec<&str> = group.hosts.iter().map(String::as_str).collect();
    let subject = if names.len() == 1 { host_list(&names) } else { format!("Each of {}", host_list(&names)) };
    machine(group, &subject, "It")
}

/// Describes one host: its hardware, then its software.
fn machine(group: &HostFacts, subject: &str, pronoun: &str) -> Option<String> {
    let fact = |name: &str| group.facts.get(name).and_then(Fact::known);
    let count =
        |name: &str, noun: &str| fact(name).and_then(|n| n.parse::<usize>().ok()).map(|n| counted(n, noun));
    let cpu = fact("cpu").map(|cpu| {
        let smt = fact("smt").map(|state| format!("SMT {state}"));
        let microcode = fact("microcode").map(|code| format!("microcode {code}"));
        let counts =
            [count("sockets", "socket"), count("cores", "core"), count("threads", "hardware thread")];
        let details: Vec<String> = counts.into_iter().chain([smt, microcode]).flatten().collect();
        if details.is_empty() {
            format!("the CPU {cpu}")
        } else {
            format!("the CPU {cpu} ({})", details.join(", "))
        }
    });
    let hardware = [
        cpu,
        fact("numa").map(|numa| format!("NUMA: {numa}")),
        fact("memory").map(|memory| format!("{memory} of memory")),
        fact("network").map(|network| format!("the network devices [{network}]")),
    ];
    let software = [
        fact("os").map(str::to_owned),
        fact("kernel").map(|kernel| format!("kernel {kernel}")),
        fact("governor").map(|governor| format!("frequency governor {governor}")),
        fact("turbo").map(|turbo| format!("turbo {turbo}")),
        fact("virtual_machine").filter(|text| *text != "none").map(|_| "in a virtual machine".to_owned()),
        fact("container").filter(|text| *text != "none").map(|engine| format!("in a container ({engine})")),
    ];
    let sentence = |subject: &str, verb: &str, parts: Vec<String>| {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        (!parts.is_empty()).then(|| format!("{subject} {verb} {}.", listed(&parts)))
    };
    let [hardware, software] =
        [hardware.into_iter().flatten().collect(), software.into_iter().flatten().collect()];
    let hardware = sentence(subject, "has", hardware);
    let pronoun = if hardware.is_some() { pronoun } else { subject };
    let sentences: Vec<String> =
        [hardware, sentence(pronoun, "runs", software)].into_iter().flatten().collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

fn communication(run: &Run) -> String {
    let device = software(run, "device").map(|device| format!(" (device {device})")).unwrap_or_default();
    let transport = software(run, "transport");
    let transport = transport.map(|them| format!(", over these transports: {them}")).unwrap_or_default();
    let env = named_values(&run.env, ", ");
    let env = if env.is_empty() { env } else { format!(", with {env} in the environment") };
    format!("Ranks communicated through {}{device}{transport}{env}.", library(run).replace(" Version:", ""))
}

/// Says how often ranks were started, and what the results and their intervals are. `of_links` says it of links that were measured in rounds.
fn repetition(run: &Run, rows: &[&Measurement], of_links: Option<&str>) -> Option<String> {
    let started = started_once(run);
    if rows.is_empty() {
        return of_links.map(|results| format!("{started}; {results}."));
    }
    let launches = rows.iter().map(|row| row.launch_count()).collect::<BTreeSet<usize>>();
    let (least, most) = (*launches.first()?, *launches.last()?);
    let samples: BTreeSet<usize> = rows.iter().filter_map(|row| Some(row.summary.as_ref()?.n)).collect();
    let subject = if of_links.is_some() { "A link that was measured again" } else { "A case" };
    let samples = match (samples.first(), samples.last()) {
        (Some(least), Some(most)) if least == most => {
            format!(" {subject} has {} samples.", counted_plain(*least))
        }
        (Some(least), Some(most)) => {
            format!(" {subject} has between {} and {} samples.", counted_plain(*least), counted_plain(*most))
        }
        _ => String::new(),
    };
    let (means, medians): (Vec<&Measurement>, Vec<&Measurement>) =
        rows.iter().copied().partition(|row| weight_in_total(row).is_some());
    if most == 1 {
        let of_pairs = "the mean of its samples, which is total time over total work, with the 95 % interval of the median of 12 means \
                        of consecutive samples";
        let of_samples =
            "the median of its samples (of rounds, the mean of their medians) with a 95 % interval";
        let of_rows =
            results([(!means.is_empty()).then_some(of_pairs), (!medians.is_empty()).then_some(of_samples)]);
        return Some(format!("{started}; {}.{samples}", of_links.unwrap_or(&of_rows)));
    }
    let times = if least == most { format!("{most}") } else { format!("{least} to {most}") };
    let of_pairs = format!("total time over total work of all launches{}", in_state(&means));
    let of_samples = format!(
        "the median over the launches of their medians (of rounds, the mean of their medians){}",
        in_state(&medians)
    );
    let results = results([
        (!means.is_empty()).then_some(of_pairs.as_str()),
        (!medians.is_empty()).then_some(of_samples.as_str()),
    ]);
    let over = |rows: &[&Measurement]| rows.iter().any(|row| row.over_launches().is_some());
    let intervals = [
        over(&means).then(|| intervals_of_means(if medians.is_empty() { "a result" } else { PAIRS })),
        over(&medians).then(|| intervals(&medians, if means.is_empty() { "a result" } else { OTHERS })),
        Some(between(rows)),
    ];
    let intervals = intervals.into_iter().flatten().collect::<Vec<_>>().join(" ");
    Some(format!("All ranks were started {times} times (launches); {results}. {intervals}{samples}"))
}

/// What the results of a sweep over links are.
const LINKS: &str = "a result is the median of the samples of a link, without an interval; those that were measured again, alone, have a 95 % interval if their samples are enough";

/// Says that ranks were started once: of a sweep with several launches, each is described by itself.
fn started_once(run: &Run) -> String {
    let several = number::<u32>(run, "launches").filter(|launches| *launches > 1);
    let once = match (several, number::<u32>(run, "launch")) {
        (Some(of), Some(launch)) => {
            format!("This is launch {launch} of {of}, in each of which all ranks were started once")
        }
        _ => "All ranks were started once".to_owned(),
    };
    format!(
        "{once}, so intervals say nothing about the difference between starts of the job, nor between runs"
    )
}

/// Names of results, where a file has both kinds.
const PAIRS: &str = "a result of several pairs";
const OTHERS: &str = "any other result";

/// Says what a result is: of several pairs that begin together, and of one pair.
fn results([of_pairs, of_one]: [Option<&str>; 2]) -> String {
    match (of_pairs, of_one) {
        (Some(pairs), Some(one)) => format!("{PAIRS} is {pairs}; {OTHERS} is {one}"),
        (one, other) => format!("a result is {}", one.or(other).unwrap_or_default()),
    }
}

/// Says that the launches of a result are those in one state of the machine, if some result has others.
fn in_state(rows: &[&Measurement]) -> &'static str {
    let has_states = |row: &&Measurement| row.over_launches().is_some_and(|over| over.states.len() > 1);
    if rows.iter().any(has_states) { " in the most frequent state of the machine" } else { "" }
}

/// Says what the intervals of means over several launches are. `which` names the results.
fn intervals_of_means(which: &str) -> String {
    format!(
        "{} has the 95 % interval of Student's t for a ratio over the launches, which contains the true mean less often if few \
         launches have a pause.",
        capitalised(which)
    )
}

/// Returns whether the interval of a row is an interval of 95 %, not the range of few launches.
fn is_interval(row: &Measurement) -> bool {
    row.over_launches().is_none_or(|over| over.coverage() >= INTERVAL)
}

/// Says what the intervals of rows over several launches are. `which` names the results, such as `a result`.
fn intervals(rows: &[&Measurement], which: &str) -> String {
    let over = || rows.iter().filter_map(|row| row.over_launches());
    let ranges: Vec<f64> =
        over().map(|over| over.coverage()).filter(|coverage| *coverage < INTERVAL).collect();
    let percent = |coverage: f64| format!("{:.0}", coverage * 100.0);
    let [low, high] = [f64::min, f64::max].map(|end| ranges.iter().copied().reduce(end).map(percent));
    let coverage = match (low, high) {
        (Some(low), Some(high)) if low != high => format!("{low} to {high} %"),
        (low, _) => format!("{} %", low.unwrap_or_default()),
    };
    let rest = format!(
        "the range of the launches, which contains the median of all such launches with a probability of {coverage}"
    );
    match (ranges.len(), over().count() - ranges.len()) {
        (0, _) => {
            format!(
                "{} has the distribution-free 95 % interval from order statistics over the launches.",
                capitalised(which)
            )
        }
        (_, 0) => format!("Too few launches for an interval of 95 %: {which} has {rest}."),
        (some, others) => format!(
            "{} the distribution-free 95 % interval from order statistics over the launches; {} {rest}.",
            if others == 1 { "1 result has".to_owned() } else { format!("{others} results have") },
            if some == 1 {
                "1 has too few of them and has".to_owned()
            } else {
                format!("{some} have too few of them and have")
            },
        ),
    }
}

/// Says what is known about the variation between runs.
fn between(rows: &[&Measurement]) -> String {
    let known: Vec<usize> = rows
        .iter()
        .filter_map(|row| row.over_launches()?.between.filter(|between| between.next_ns.is_some()))
        .map(|between| between.runs)
        .collect();
    let runs = match (known.iter().min(), known.iter().max()) {
        (Some(least), Some(most)) if least == most => format!("{most} earlier runs"),
        (Some(least), Some(most)) => format!("{least} to {most} earlier runs"),
        _ => return "This is the uncertainty within the run; the variation between runs is unknown.".into(),
    };
    let of = if known.len() == rows.len() {
        String::new()
    } else {
        format!(" for {} of {} results", known.len(), rows.len())
    };
    format!("The variation between runs is known from {runs}{of}.")
}

/// Says how wide intervals are, and ranges, which are no intervals.
fn precision(rows: &[&Measurement]) -> Option<String> {
    let with_summary = || rows.iter().filter(|row| row.summary.is_some());
    let widths = |are_intervals: bool| {
        let of_kind = with_summary().filter(move |row| is_interval(row) == are_intervals);
        of_kind.filter_map(|row| row.summary.as_ref().and_then(Summary::precision)).collect::<Vec<f64>>()
    };
    let (intervals, ranges) = (widths(true), widths(false));
    let said = |widths: &[f64], what: &str| {
        let widest = widths.iter().copied().reduce(f64::max)? * 100.0;
        Some(match widths.len() {
            1 => format!("half the {what} is {widest:.2} % of the result"),
            all => format!(
                "half the {what} is at most {widest:.2} % of the result in all {all} results with one"
            ),
        })
    };
    let without = match with_summary().count() - intervals.len() - ranges.len() {
        0 => None,
        1 => Some("1 result has neither".to_owned()),
        some => Some(format!("{some} results have neither")),
    };
    let parts: Vec<String> =
        [said(&intervals, "interval"), said(&ranges, "range"), without].into_iter().flatten().collect();
    let text = format!("{}.", capitalised(&parts.join("; ")));
    (!(intervals.is_empty() && ranges.is_empty())).then_some(text)
}

/// Returns a text with a capital first letter.
fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at_checked(1).unwrap_or((text, ""));
    first.to_uppercase() + rest
}

fn verification(Checks { passed, of }: Checks) -> Option<String> {
    match (passed, of) {
        (_, 0) => None,
        (0, _) => Some("The received data were not verified.".into()),
        (checked, all) if checked == all => Some(format!(
            "The received data were verified in {}, outside the timed loops.",
            if all == 1 { "the only case with data".into() } else { format!("all {all} cases with data") }
        )),
        (checked, all) => {
            Some(format!("The received data were verified in {checked} of {all} cases with data."))
        }
    }
}

fn publishable(rows: &[Measurement]) -> Option<String> {
    let mut sum = Publishable::default();
    // One launch and few samples are what is asked of a link.
    rows.iter().filter(|row| row.bench != link::BENCH).for_each(|row| sum.add(row));
    (!sum.is_empty()).then(|| format!("By the marks of ombx, {sum}."))
}

/// Says in which states the launches found the machine. It may also change during a launch.
fn cores(run: &Run) -> Option<String> {
    let (states, distances) = state::in_words(run)?;
    let changed = if states > 1 { "; the machine changed its state" } else { "" };
    Some(format!(
        "Before and after each launch, a cache line took {distances} from one core to another{changed}."
    ))
}

fn clock(run: &Run) -> String {
    let clock = &run.clock;
    format!(
        "Times were read from the clock {} (resolution {} ns, {} ns per reading).",
        clock.source, clock.resolution_ns, clock.overhead_ns
    )
}

/// Names what a reviewer asks about and the hosts do not tell.
fn unknown(run: &Run) -> Option<String> {
    let is_unknown = |name: &str| {
        run.hosts.iter().any(|group| matches!(group.facts.get(name), Some(Fact::Unknown { .. })))
    };
    let mut missing: Vec<&str> =
        ASKED.iter().filter(|(name, _)| is_unknown(name)).map(|(_, words)| *words).collect();
    if matches!(run.software.get("transport"), Some(Fact::Unknown { .. })) {
        missing.push("the transports in use");
    }
    (!missing.is_empty()).then(|| format!("The system does not tell {}.", listed(&missing)))
}

fn listed(items: &[&str]) -> String {
    match items {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Formats a count with separators of thousands.
fn counted_plain(n: usize) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|g| std::str::from_utf8(g).ok()).collect();
    groups.join(",")
}

/// Formats a size for text: `8 B`, `64 KiB`.
fn size(bytes: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let whole = units.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{bytes} B"), |(unit, name)| format!("{} {name}", bytes / unit))
}

/// Title, as `CITATION.cff` has it.
const TITLE: &str = "ombx: trustworthy communication micro-benchmarks for clusters";

/// Returns the entry of ombx for BibTeX, with the version that measured.
pub fn bibtex(run: &Run) -> String {
    let note = software(run, "commit").map(|commit| format!("  note    = {{commit {}}},\n", braced(commit)));
    let note = note.unwrap_or_default();
    let year = run.started.get(..4).filter(|year| year.chars().all(|c| c.is_ascii_digit()));
    let year = year.map(|year| format!("  year    = {{{year}}},\n")).unwrap_or_default();
    format!(
        "@software{{ombx,\n  author  = {{{{{}}}}},\n  title   = {{{TITLE}}},\n  version = {{{}}},\n\
         {year}{note}}}\n",
        authors(env!("CARGO_PKG_AUTHORS")).join("} and {"),
        braced(&run.version)
    )
}

/// Returns the names in a list of Cargo such as `A. Author <a@example.org>:B. Author`.
fn authors(list: &str) -> Vec<&str> {
    list.split(':').map(|author| author.split(" <").next().unwrap_or(author)).collect()
}

/// Removes what would end a value of BibTeX.
fn braced(text: &str) -> String {
    text.chars().filter(|c| !"{}\\%".contains(*c) && !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use std::{borrow::Cow, fs};

    use ombx_links::verdict::SweepCollector;
    use ombx_record::{
        event::{Event, Round},
        result::{Aggregation, BetweenRuns, Check, Growth, Metric, OverLaunches},
    };
    use ombx_testkit::golden;

    use crate::{methods::*, provenance};

    fn with_facts(mut run: RunWithRows) -> RunWithRows {
        let known = |text: &str| Fact::Known(text.into());
        let facts = [
            ("cpu", known("Xeon 1")),
            ("sockets", known("2")),
            ("cores", known("64")),
            ("smt", known("off")),
            ("memory", known("251.6 GiB")),
            ("governor", Fact::Unknown { reason: "no cpufreq".into() }),
            ("container", known("none")),
        ];
        let facts = facts.map(|(name, fact)| (name.to_owned(), fact)).into();
        run.run.hosts = vec![HostFacts { hosts: vec!["n01".into(), "n02".into()], facts }];
        run.run.software = [("commit".to_owned(), known("abc123"))].into();
        run
    }

    #[test]
    fn the_paragraph_has_the_numbers_of_the_file() {
        let text = paragraph(&with_facts(golden()).into());
        for part in [
            "We measured p2p.latency and rma.put_bw with messages of 2 sizes from 8 B to 64 KiB with ombx \
             0.1.0 (commit abc123, release build), started on 2026-01-02.",
            "The 2 ranks ran on 2 hosts (n[01-02]), each bound to one CPU.",
            "Each host has the CPU Xeon 1 (2 sockets, 64 cores, SMT off) and 251.6 GiB of memory.",
            "Ranks communicated through MPICH 4.0.2, with UCX_TLS=rc,sm in the environment.",
            "All ranks were started once",
            "A case has between 10 and 400 samples.",
            "Half the interval is at most",
            "The received data were verified in all 2 cases with data, outside the timed loops.",
            "Times were read from the clock tsc (resolution 1 ns, 9 ns per reading).",
            "The system does not tell the frequency governor.",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("container") && !text.contains("cache line"), "{text}");
        let mut run = golden();
        run.run.plan.insert(state::BEFORE.into(), "34.6, 178, 35.4".into());
        let text = paragraph(&run.into());
        assert!(
            text.contains(
                "a cache line took 35 or 178 ns from one core to another; the machine changed its state"
            ),
            "{text}"
        );
    }

    #[test]
    fn nothing_is_said_about_what_an_earlier_file_does_not_have() {
        let text = paragraph(&golden().into());
        for word in ["host has", "commit", "transport", "does not tell", "unknown"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
        assert!(text.contains("with ombx 0.1.0 (release build), started"), "{text}");
    }

    #[test]
    fn hosts_that_differ_are_described_one_by_one() {
        let mut run = with_facts(golden());
        let mut other = run.run.hosts[0].clone();
        run.run.hosts[0].hosts = vec!["n01".into()];
        other.hosts = vec!["n02".into()];
        other.facts.insert("memory".into(), Fact::Known("1 GiB".into()));
        run.run.hosts.push(other);
        let text = paragraph(&run.into());
        assert!(
            text.contains(
                "n01 has the CPU Xeon 1 (2 sockets, 64 cores, SMT off) and 251.6 GiB of memory. n02 has the CPU "
            ),
            "{text}"
        );
    }

    #[test]
    fn links_that_were_summed_up_are_described() {
        let grown = Growth { host: "n1".into(), device: "eth0".into(), counter: "rx_errors".into(), by: 2 };
        let round = |number: u32, bytes: u64| {
            let row = Measurement::new(link::BENCH, "links", Metric::Latency, 2);
            let row =
                Measurement { bytes: Some(bytes), check: Check::Passed, grown: vec![grown.clone()], ..row };
            let (from, to, median_ns) = (vec![0, 1], vec![1, 0], vec![900.0; 2]);
            Event::Round(Cow::Owned(Round {
                row,
                number: Some(number),
                from,
                to,
                median_ns,
                marks: Vec::new(),
            }))
        };
        let mut collector = SweepCollector::default();
        collector.event(Event::Run(Cow::Owned(golden().run)));
        for number in 0..3 {
            collector.event(round(number, 8));
            collector.event(round(number, 65536));
        }
        let run = collector.end().remove(0);
        let (text, sections) = (paragraph(&run), provenance::sections(&run));
        for part in [
            "We measured every link between 2 ranks with messages of 2 sizes from 8 B to 64 KiB",
            "verified in all 12 cases with data",
            "All ranks were started once",
            "a result is the median of the samples of a link, without an interval;",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("fit to publish"), "{text}");
        let values = sections.iter().flat_map(|section| &section.values);
        let [grew] = values.filter(|(name, _)| name == "counters that grew").collect::<Vec<_>>()[..] else {
            panic!("{sections:?}")
        };
        assert_eq!(grew.1, "n1 eth0 rx_errors +12");
    }

    #[test]
    fn numbers_of_launches_are_given() {
        let mut row = golden().rows.remove(0);
        row.launches = Some(OverLaunches::of_one_state(vec![1.0; 9], 1.0, None, 0.96));
        assert!(
            repetition(&golden().run, &[&row], None)
                .unwrap()
                .starts_with("All ranks were started 9 times (launches); a result is")
        );
        let over = |coverage: f64, runs: Option<usize>| {
            let mut over = OverLaunches::of_one_state(vec![1.0; 3], 1.0, Some([0.9, 1.2]), coverage);
            over.between =
                runs.map(|runs| BetweenRuns { runs, next_ns: Some([0.5, 2.0]), ..BetweenRuns::default() });
            let summary =
                Summary { median: 1.0, ci95: Some([0.9, 1.2]), ..golden().rows[0].summary.clone().unwrap() };
            Measurement { launches: Some(over), summary: Some(summary), ..row.clone() }
        };
        let (range, interval) = (over(0.75, None), over(0.96, Some(5)));
        let all = |rows: &[&Measurement]| {
            format!("{} {}", repetition(&golden().run, rows, None).unwrap(), precision(rows).unwrap())
        };
        let text = all(&[&range, &range]);
        assert!(!text.contains("95 % interval") && !text.contains("alf the interval"), "{text}");
        for part in [
            "a result has the range of the launches, which contains the median of all such launches with a probability of 75 %.",
            "the variation between runs is unknown",
            "Half the range is at most 15.00 % of the result in all 2 results with one.",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let text = all(&[&interval, &interval, &range]);
        for part in [
            "2 results have the distribution-free 95 % interval from order statistics over the launches; 1 has too few",
            "The variation between runs is known from 5 earlier runs for 2 of 3 results.",
            "Half the interval is at most 15.00 % of the result in all 2 results with one; half the range is 15.00 % of the result.",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert_eq!(
            (counted_plain(1_234_567), size(96), size(3 << 20)),
            ("1,234,567".into(), "96 B".into(), "3 MiB".into())
        );
    }

    #[test]
    fn results_of_several_pairs_are_totals_with_an_interval_of_their_own() {
        let run = golden().run;
        let row = golden().rows.remove(0);
        let summary = row.summary.clone().unwrap();
        let one = Measurement { aggregation: Aggregation::Origin, ..row };
        let pairs = |launches: usize| {
            let summary = Some(Summary { mean: 2.0, median: 2.0, ..summary.clone() });
            let over = OverLaunches::of_one_state(vec![1.0; launches], 1.0, Some([0.9, 1.2]), 0.95);
            let launches = (launches > 1).then_some(over);
            Measurement { aggregation: Aggregation::Pairs, summary, launches, ..one.clone() }
        };
        let nine = OverLaunches::of_one_state(vec![1.0; 9], 1.0, Some([0.9, 1.2]), 0.96);
        let other = Measurement { launches: Some(nine), ..one.clone() };
        let said = |rows: &[&Measurement]| repetition(&run, rows, None).unwrap();
        let t = "has the 95 % interval of Student's t for a ratio over the launches";
        let text = said(&[&pairs(3)]);
        assert!(
            text.contains("a result is total time over total work of all launches. A result has"),
            "{text}"
        );
        assert!(text.contains(t) && !text.contains("median") && !text.contains("Too few"), "{text}");
        let text = said(&[&pairs(9), &other]);
        for part in [
            "a result of several pairs is total time over total work of all launches; any other result is the median",
            "A result of several pairs has the 95 % interval of Student's t",
            "Any other result has the distribution-free 95 % interval from order statistics over the launches.",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let text = said(&[&pairs(1)]);
        assert!(
            text.contains("a result is the mean of its samples") && !text.contains("starts of the job; a"),
            "{text}"
        );
        // Launches in two states: only those of one are behind the result.
        let mut two = pairs(9);
        let over = two.launches.as_mut().unwrap();
        over.states.push(over.states[0].clone());
        let text = said(&[&two]);
        assert!(
            text.contains("total work of all launches in the most frequent state of the machine."),
            "{text}"
        );
        // Each launch of a sweep over links is a run of its own.
        let mut run = golden().run;
        run.plan
            .extend([("launch", "2"), ("launches", "3")].map(|(name, value)| (name.into(), value.into())));
        let text = repetition(&run, &[&one], Some(LINKS)).unwrap();
        assert!(
            text.starts_with("This is launch 2 of 3, in each of which all ranks were started once"),
            "{text}"
        );
        assert!(text.contains("without an interval; those that were measured again"), "{text}");
    }

    #[test]
    fn the_citation_has_the_version_and_the_commit_and_agrees_with_its_file() {
        let entry = {
            let mut run = golden().run;
            run.software = [("commit".to_owned(), Fact::Known("abc123".into()))].into();
            bibtex(&run)
        };
        let expected = "@software{ombx,\n  author  = {{The ombx developers}},\n  title   = {ombx: \
                        trustworthy communication micro-benchmarks for clusters},\n  version = {0.1.0},\n  \
                        year    = {2026},\n  note    = {commit abc123},\n}\n";
        assert_eq!(entry, expected);
        let file = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../CITATION.cff")).unwrap();
        for part in [TITLE, concat!("version: ", env!("CARGO_PKG_VERSION"))] {
            assert!(file.contains(part), "{part}");
        }
        assert_eq!(authors("A. Author <a@example.org>:B. Author"), ["A. Author", "B. Author"]);
        let mut evil = golden().run;
        evil.version = "1}\n\\input{x}".into();
        assert!(bibtex(&evil).contains("version = {1inputx}"));
    }
}
