//! Where, when and how rows were measured, as sections of named values. Values that a file does not have are left out or named as not
//! recorded.

use std::collections::{BTreeMap, BTreeSet};

use ombx_host::node_set;
use ombx_links::{causes, verdict::SweptRun};
use ombx_record::{
    fact::{Fact, Facts, HostFacts, TITLES, title_of},
    file::RunWithRows,
    order::sort_by_number,
    result::{Growth, LoadedFile, LoadedFiles, Measurement, Placement, Run, RunOutcome},
    runs::hosts,
    unit::counted,
};

/// Text for files without facts.
pub const NOT_RECORDED: &str = "not recorded";
/// Maximum number of hosts that are named in one value.
const MOST_HOSTS: usize = 8;
/// Maximum length of a list of all hosts in characters.
const LONGEST_LIST: usize = 160;

/// Values under one title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Title.
    pub title: &'static str,
    /// Names and values.
    pub values: Vec<(String, String)>,
}

/// Returns the provenance of a run: the launches of one setup, or a sweep over links.
pub fn sections(swept: &SweptRun) -> Vec<Section> {
    let run = &swept.run;
    let section = |title, values| Section { title, values };
    vec![
        section("Run", of_run(run)),
        section("Software", of_software(&run.run)),
        section("Hosts", of_hosts(&run.run.hosts).into_iter().chain(differences(swept)).collect()),
        section("Ranks", of_ranks(&run.run)),
        section("Options", of_options(&run.run.plan)),
        section("Environment", pairs(&run.run.env)),
    ]
}

/// Returns the largest number of launches that a row comes from.
pub fn launches(run: &RunWithRows) -> usize {
    run.rows.iter().map(Measurement::launch_count).max().unwrap_or(1).max(1)
}

fn of_run(run: &RunWithRows) -> Vec<(String, String)> {
    let ended = match run.end {
        None => "without an end record".to_owned(),
        Some((outcome, tally)) => {
            let word = match outcome {
                RunOutcome::Complete => "complete",
                RunOutcome::Interrupted => "interrupted",
                RunOutcome::Broken => "broken",
            };
            format!("{word}, {}", counted(tally.cases as usize, "row"))
        }
    };
    let launches = launches(run);
    let id = match launches {
        1 => run.run.id.clone(),
        several => format!("{}, the first of {several} launches", run.run.id),
    };
    let words: Vec<String> = run.run.argv.iter().map(|word| shell_word(word)).collect();
    named([("command", words.join(" ")), ("started", run.run.started.clone()), ("ended", ended), ("run", id)])
}

fn of_software(run: &Run) -> Vec<(String, String)> {
    let clock = format!(
        "{}, resolution {} ns, {} ns per reading",
        run.clock.source, run.clock.resolution_ns, run.clock.overhead_ns
    );
    let mut values = named([("ombx", format!("{}, {} build", run.version, run.profile))]);
    let own = |name: &str| ["commit", "compiler"].contains(&name);
    let (of_ombx, of_fabric): (Facts, Facts) =
        run.software.clone().into_iter().partition(|(name, _)| own(name));
    values.extend(ordered(&of_ombx).map(|(name, fact)| (title_of(name), text(fact))));
    values.extend(named([(run.fabric.as_str(), run.library.clone())]));
    // Loaded files have their paths below.
    let is_shown = |(name, _): &(&String, &Fact)| *name != "library_files" || run.loaded.is_none();
    values.extend(ordered(&of_fabric).filter(is_shown).map(|(name, fact)| (title_of(name), text(fact))));
    values.extend(run.loaded.iter().flat_map(of_loaded));
    values.extend(named([("clock", clock)]));
    values
}

/// Returns program, libraries and preloads, each with its contents.
fn of_loaded(files: &LoadedFiles) -> Vec<(String, String)> {
    let LoadedFiles { program, libraries, preloads, others } = files;
    let listed = |title: &str, files: &[LoadedFile]| {
        files.iter().map(|file| (title.to_owned(), file.to_string())).collect::<Vec<_>>()
    };
    let others = format!("{}, CRC-32 {}", counted(others.count as usize, "file"), others.crc32);
    [
        listed("program", std::slice::from_ref(program)),
        listed("library", libraries),
        listed("preload", preloads),
        named([("other loaded files", others)]),
    ]
    .concat()
}

/// Returns each fact once if all hosts have it in common, otherwise for each group of hosts.
fn of_hosts(hosts: &[HostFacts]) -> Vec<(String, String)> {
    let all: Facts = hosts.iter().flat_map(|group| group.facts.clone()).collect();
    let mut values = Vec::new();
    for (name, _) in ordered(&all) {
        let mut groups: Vec<(Option<&Fact>, Vec<&str>)> = Vec::new();
        for host in hosts {
            let (fact, names) = (host.facts.get(name), host.hosts.iter().map(String::as_str));
            match groups.iter_mut().find(|(known, _)| *known == fact) {
                Some((_, group)) => group.extend(names),
                None => groups.push((fact, names.collect())),
            }
        }
        let value = |fact: Option<&Fact>| fact.map_or_else(|| "not recorded".to_owned(), text);
        match groups.as_slice() {
            [(fact, _)] => values.push((title_of(name), value(*fact))),
            several => {
                values.extend(several.iter().map(|(fact, hosts)| {
                    (format!("{} of {}", title_of(name), host_list(hosts)), value(*fact))
                }))
            }
        }
    }
    if values.is_empty() { named([("facts", NOT_RECORDED.to_owned())]) } else { values }
}

/// Returns in what hosts differ from most others or are limited, and the counters of their devices that grew during the run.
fn differences(SweptRun { run, links }: &SweptRun) -> impl Iterator<Item = (String, String)> {
    let others = links.iter().flat_map(|links| links.grown()).chain(run.grown.iter().cloned());
    let grown = Growth::summed(run.rows.iter().flat_map(|row| row.grown.iter().cloned()).chain(others));
    let grown: Vec<String> = grown.iter().map(|one| format!("{} {one}", one.host)).collect();
    let differ = causes::sentence(&causes::of_hosts(&run.run.hosts, &[]));
    let grown = (!grown.is_empty()).then(|| grown.join(", "));
    let all = [("hosts that differ or are limited", differ), ("counters that grew", grown)];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)))
}

/// Returns the ranks of each host and the CPUs that they may use.
fn of_ranks(run: &Run) -> Vec<(String, String)> {
    let placement = Placement::from_places(&run.places).name();
    let mut values = named([("placement", format!("{}, {placement}", counted(run.places.len(), "rank")))]);
    for host in hosts(run) {
        let here = (0..).zip(&run.places).filter(|(_, place)| place.host == host);
        let (ranks, cpus): (Vec<u32>, Vec<&str>) =
            here.map(|(rank, place)| (rank, place.cpus.as_str())).unzip();
        let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
        let different: BTreeSet<&str> = cpus.iter().copied().collect();
        let cpus = match different.len() {
            1 if ranks.len() > 1 => format!("all on CPUs {}", cpus[0]),
            _ => format!("on CPUs {}", cpus.join(" ")),
        };
        values.push((host.to_owned(), format!("{noun} {} {cpus}", ranges(&ranks))));
    }
    values
}

/// Returns the facts in the order of [`TITLES`].
fn ordered(facts: &Facts) -> impl Iterator<Item = (&String, &Fact)> {
    let position = |name: &str| TITLES.iter().position(|(known, _)| *known == name).unwrap_or(TITLES.len());
    let mut all: Vec<(&String, &Fact)> = facts.iter().collect();
    sort_by_number(&mut all, |(name, _)| position(name) as i64);
    all.into_iter()
}

fn text(fact: &Fact) -> String {
    match fact {
        Fact::Known(value) => value.clone(),
        Fact::Unknown { reason } => format!("unknown: {reason}"),
    }
}

fn named<const N: usize>(values: [(&str, String); N]) -> Vec<(String, String)> {
    values.map(|(name, value)| (name.to_owned(), value)).into()
}

fn pairs(values: &BTreeMap<String, String>) -> Vec<(String, String)> {
    values.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the options by their words: `core to core (ns)`, not `core_to_core_ns`.
fn of_options(plan: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let title = |name: &str| match name.rsplit_once('_') {
        Some((words, unit @ ("ns" | "us" | "ms" | "s"))) => format!("{} ({unit})", words.replace('_', " ")),
        _ => name.replace('_', " "),
    };
    plan.iter().map(|(name, value)| (title(name), value.clone())).collect()
}

/// Lists hosts; of many with unlike names only the first ones.
pub(crate) fn host_list(hosts: &[&str]) -> String {
    let fold = |hosts: &[&str]| node_set::fold(hosts.iter().copied());
    let all = fold(hosts);
    match hosts.len().checked_sub(MOST_HOSTS).filter(|_| all.len() > LONGEST_LIST) {
        None | Some(0) => all,
        Some(more) => format!("{} and {more} others", fold(&hosts[..MOST_HOSTS])),
    }
}

/// Lists increasing numbers with ranges: `0-3,8`.
fn ranges(numbers: &[u32]) -> String {
    let mut all: Vec<[u32; 2]> = Vec::new();
    for number in numbers {
        match all.last_mut() {
            Some([_, last]) if *last + 1 == *number => *last = *number,
            _ => all.push([*number, *number]),
        }
    }
    let one =
        |[first, last]: &[u32; 2]| if first == last { first.to_string() } else { format!("{first}-{last}") };
    all.iter().map(one).collect::<Vec<_>>().join(",")
}

/// Quotes a word for the shell if necessary.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use ombx_testkit::golden;

    use crate::provenance::*;

    fn host(name: &str, memory: &str) -> HostFacts {
        let facts = [
            ("memory", Fact::Known(memory.into())),
            ("cpu", Fact::Known("Xeon 1".into())),
            ("turbo", Fact::Unknown { reason: "no cpufreq".into() }),
        ];
        HostFacts {
            hosts: vec![name.into()],
            facts: facts.map(|(name, fact)| (name.to_owned(), fact)).into(),
        }
    }

    #[test]
    fn facts_are_listed_per_host_only_where_hosts_differ() {
        let hosts = [host("n01", "1 GiB"), host("n02", "2 GiB"), host("n03", "1 GiB")];
        let expected = [
            ("CPU", "Xeon 1"),
            ("turbo", "unknown: no cpufreq"),
            ("memory of n[01,03]", "1 GiB"),
            ("memory of n02", "2 GiB"),
        ];
        assert_eq!(of_hosts(&hosts), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_fact_that_one_host_lacks_is_not_invented() {
        let mut hosts = [host("n01", "1 GiB"), host("n02", "1 GiB")];
        hosts[1].facts.remove("memory");
        let values = of_hosts(&hosts);
        assert!(values.contains(&("memory of n02".into(), "not recorded".into())), "{values:?}");
    }

    #[test]
    fn a_file_without_facts_has_what_it_has_and_nothing_else() {
        let sections = sections(&golden().into());
        let values = |title: &str| &sections.iter().find(|section| section.title == title).unwrap().values;
        assert_eq!(*values("Hosts"), [("facts".to_owned(), NOT_RECORDED.to_owned())]);
        let software: Vec<&str> = values("Software").iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(software, ["ombx", "mpi", "clock"]);
        assert_eq!(values("Ranks")[1], ("n01".to_owned(), "rank 0 on CPUs 0".to_owned()));
        assert!(values("Environment").contains(&("UCX_TLS".into(), "rc,sm".into())));
    }

    #[test]
    fn options_and_facts_have_words_and_units() {
        let plan =
            [("core_to_core_ns", "56"), ("row_time_s", "0.1"), ("receive-from", "any"), ("warm_up", "3")];
        let titles = of_options(&plan.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        let titles: Vec<&str> = titles.iter().map(|(title, _)| title.as_str()).collect();
        assert_eq!(titles, ["core to core (ns)", "receive-from", "row time (s)", "warm up"]);
        assert_eq!(["thread_level", "mlx5_0 firmware"].map(title_of), ["thread level", "mlx5_0 firmware"]);
    }

    #[test]
    fn many_hosts_and_ranks_are_shortened() {
        let hosts: Vec<String> = (0..20).map(|n| format!("n{n}")).collect();
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        assert_eq!(host_list(&hosts), "n[0-19]");
        let hosts: Vec<String> = (0..20u8).map(|n| format!("host-of-{}", char::from(b'a' + n))).collect();
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let list = host_list(&hosts);
        assert!(
            list.starts_with("host-of-a,host-of-b,") && list.ends_with("host-of-h and 12 others"),
            "{list}"
        );
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(shell_word("a b's"), r"'a b'\''s'");
    }
}
