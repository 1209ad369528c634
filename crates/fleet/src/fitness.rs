//! Hosts that are fit and hosts that are not, as lists for launchers and batch systems.
//!
//! A host is unfit if a verdict finds something wrong with it. Of a link, one of two hosts is unfit, and nothing tells which: the hosts with
//! most such links are left out until no such link is left between fit hosts, so that few are left out (a greedy vertex cover).

use std::collections::{BTreeMap, BTreeSet};

use ombx_host::node_set;
use ombx_links::verdict;
use ombx_record::{
    event::Event,
    result::RunOutcome,
    verdict::{Conclusion, Sentence, Verdict},
};

/// Hosts of a sweep over links, by its verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fitness {
    /// Hosts in which nothing wrong was found, in the order of their ranks; none if this cannot be told.
    pub fit: Vec<String>,
    /// Hosts with something wrong, each with what was found.
    pub unfit: BTreeMap<String, BTreeSet<String>>,
    /// Why other hosts are not known to be fit.
    pub unknown: Option<String>,
}

impl Fitness {
    /// Divides hosts, of which some were not reached.
    pub fn new(hosts: &[String], unreached: &[String], verdict: &Verdict) -> Fitness {
        let mut fitness = Fitness::default();
        for host in unreached {
            fitness.exclude(host, "it could not be reached");
        }
        let mut links = Vec::new();
        for sentence in verdict.sentences.iter().filter(|sentence| is_of_hosts(sentence)) {
            for about in &sentence.about {
                match about.as_slice() {
                    [one, other] if one != other => links.push(([one, other], sentence)),
                    [host, ..] => fitness.exclude(host, &sentence.text),
                    [] => {}
                }
            }
        }
        loop {
            links.retain(|(ends, _)| ends.iter().all(|host| !fitness.unfit.contains_key(*host)));
            let mut links_of = BTreeMap::<&String, usize>::new();
            for end in links.iter().flat_map(|(ends, _)| ends) {
                *links_of.entry(end).or_default() += 1;
            }
            // Of equal ones, the last.
            let Some((worst, _)) = links_of.into_iter().max_by_key(|(_, links)| *links) else { break };
            for ([one, other], sentence) in links.iter().filter(|(ends, _)| ends.contains(&worst)) {
                let other = if *one == worst { other } else { one };
                fitness
                    .exclude(worst, &format!("{}; {worst} is left out, and {other} is not", sentence.text));
            }
        }
        let undecided = |sentence: &&Sentence| {
            sentence.conclusion == Conclusion::None || is_of_hosts(sentence) && sentence.about.is_empty()
        };
        fitness.unknown = verdict.sentences.iter().find(undecided).map(|sentence| sentence.text.clone());
        if fitness.unknown.is_none() {
            fitness.fit = hosts.iter().filter(|host| !fitness.unfit.contains_key(*host)).cloned().collect();
        }
        fitness
    }

    fn exclude(&mut self, host: &str, why: &str) {
        self.unfit.entry(host.to_owned()).or_default().insert(why.to_owned());
    }
}

/// Returns whether a sentence finds something wrong with hosts or links. Links that share a bottleneck are as fast as others alone.
fn is_of_hosts(sentence: &Sentence) -> bool {
    sentence.conclusion.is_finding() && sentence.conclusion != Conclusion::Shared
}

/// Which hosts a list has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Those in which nothing wrong was found.
    Fit,
    /// Those with something wrong, each behind a comment with the reasons.
    Unfit,
}

impl Fitness {
    /// Returns a list of hosts: one in each line, and comments behind `#`. Host files of Open MPI, Hydra and Slurm have this form.
    pub fn list(&self, listed: Listed, all: usize) -> String {
        let (number, what) = match listed {
            Listed::Fit => (self.fit.len(), "without a finding of ombx"),
            Listed::Unfit => (self.unfit.len(), "with a finding of ombx"),
        };
        let mut lines = vec![format!("# {number} of {all} hosts, {what}")];
        lines.extend(self.unknown.iter().map(|why| format!("# other hosts are not known to be fit: {why}")));
        match listed {
            Listed::Fit => lines.extend(self.fit.iter().cloned()),
            Listed::Unfit => {
                for (host, reasons) in &self.unfit {
                    lines.extend(reasons.iter().map(|reason| format!("# {reason}")));
                    lines.push(host.clone());
                }
            }
        }
        lines.join("\n") + "\n"
    }
}

/// List of hosts of a sweep over links, which is known at its end.
#[derive(Debug)]
pub struct HostList {
    listed: Listed,
    hosts: Vec<String>,
    known: BTreeSet<String>,
    unreached: Vec<String>,
    verdict: Option<Verdict>,
    is_complete: bool,
}

impl HostList {
    /// Returns a list without hosts.
    pub fn new(listed: Listed) -> HostList {
        let (hosts, unreached) = (Vec::new(), Vec::new());
        HostList { listed, hosts, known: BTreeSet::new(), unreached, verdict: None, is_complete: true }
    }

    /// Takes an event of a launch.
    pub fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Run(run) => {
                let hosts = run.places.iter().map(|place| &place.host);
                let known = &mut self.known;
                self.hosts.extend(hosts.filter(|host| known.insert((*host).clone())).cloned());
                let unreached =
                    run.plan.get(verdict::LEFT_OUT).and_then(|hosts| node_set::expand(hosts).ok());
                self.unreached = unreached.unwrap_or_default();
            }
            Event::Verdict(verdict) => self.verdict = Some(verdict.clone().into_owned()),
            Event::End { outcome, .. } => self.is_complete &= *outcome == RunOutcome::Complete,
            _ => {}
        }
    }

    /// Returns the list; without hosts that are fit if a launch did not complete.
    pub fn text(&self) -> String {
        let verdict = self.verdict.clone().filter(|_| self.is_complete);
        let verdict = verdict.unwrap_or_else(|| Verdict::incomplete("the run did not complete"));
        let all = self.hosts.iter().chain(&self.unreached).collect::<BTreeSet<_>>().len();
        Fitness::new(&self.hosts, &self.unreached, &verdict).list(self.listed, all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn finding(conclusion: Conclusion, text: &str, about: &[&str]) -> Sentence {
        let about = about.iter().map(|about| names(about)).collect();
        Sentence { about, ..Sentence::new(conclusion, text) }
    }

    fn verdict(sentences: Vec<Sentence>) -> Verdict {
        let conclusion = sentences[0].conclusion;
        Verdict { sentences, conclusion, ..Verdict::incomplete("") }
    }

    fn of(hosts: &str, sentences: Vec<Sentence>) -> Fitness {
        Fitness::new(&names(hosts), &[], &verdict(sentences))
    }

    fn unfit(fitness: &Fitness) -> Vec<&str> {
        fitness.unfit.keys().map(String::as_str).collect()
    }

    #[test]
    fn hosts_with_findings_are_unfit_and_others_are_fit() {
        let fitness = of(
            "h1 h2 h3 h4",
            vec![
                finding(Conclusion::Slow, "h3 is slow", &["h3"]),
                finding(Conclusion::Errors, "h1 counts errors", &["h1"]),
                finding(Conclusion::Shared, "paths share a bottleneck", &[]),
                finding(Conclusion::Clear, "latency is met", &[]),
            ],
        );
        assert_eq!((fitness.fit.join(" ").as_str(), unfit(&fitness)), ("h2 h4", vec!["h1", "h3"]));
        let clear = of("h1 h2", vec![finding(Conclusion::Clear, "nothing stands out", &[])]);
        assert_eq!((clear.fit, clear.unfit.len()), (names("h1 h2"), 0));
        let alone = of("h1 h2", vec![finding(Conclusion::Slow, "a link of ranks of h1", &["h1 h1"])]);
        assert_eq!((alone.fit.join(" ").as_str(), unfit(&alone)), ("h2", vec!["h1"]));
    }

    #[test]
    fn no_link_with_a_finding_is_left_between_fit_hosts() {
        let slow = |links: &[&str]| finding(Conclusion::Slow, "slow", links);
        for (links, expected) in [
            (&["h1 h2"][..], "h2"),
            (&["h1 h2", "h3 h1", "h1 h4"], "h1"),
            (&["h1 h2", "h3 h4"], "h2 h4"),
            (&["h1 h2", "h2 h1"], "h2"),
            (&["h1 h2", "h2 h3", "h3 h1"], "h2 h3"),
        ] {
            let fitness = of("h1 h2 h3 h4", vec![slow(links)]);
            assert_eq!(unfit(&fitness).join(" "), expected, "{links:?}");
            let is_fit = |host: &str| fitness.fit.iter().any(|fit| fit == host);
            assert!(links.iter().all(|link| !link.split(' ').all(is_fit)), "{links:?}");
        }
        // Links of a host that is unfit anyway say nothing about their other ends.
        let both = of("h1 h2 h3", vec![slow(&["h2 h1"]), finding(Conclusion::Errors, "errors", &["h1"])]);
        assert_eq!(unfit(&both), ["h1"]);
        let reasons = &of("h1 h2", vec![slow(&["h1 h2"])]).unfit["h2"];
        assert_eq!(
            reasons.iter().map(String::as_str).collect::<Vec<_>>(),
            ["slow; h2 is left out, and h1 is not"]
        );
    }

    #[test]
    fn nobody_is_called_fit_without_a_verdict() {
        for (unknown, sentence) in [
            ("too few", finding(Conclusion::None, "too few", &[])),
            ("all are slower", finding(Conclusion::Slow, "all are slower", &[])),
        ] {
            let fitness = of("h1 h2", vec![finding(Conclusion::Errors, "errors", &["h2"]), sentence]);
            assert_eq!((fitness.fit.len(), unfit(&fitness)), (0, vec!["h2"]));
            assert_eq!(fitness.unknown.as_deref(), Some(unknown));
        }
    }

    #[test]
    fn lists_have_a_host_in_each_line_and_comments() {
        let found = verdict(vec![finding(Conclusion::Slow, "h2 is slow", &["h2"])]);
        let text = |listed, outcome, verdict: Option<&Verdict>| {
            let mut list = HostList::new(listed);
            list.hosts = names("h1 h2 h3");
            list.unreached = names("h9");
            let events = verdict.map(|verdict| Event::Verdict(std::borrow::Cow::Borrowed(verdict)));
            let end = Event::End { outcome, tally: Default::default() };
            events.iter().chain([&end]).for_each(|event| list.event(event));
            list.text()
        };
        assert_eq!(
            text(Listed::Fit, RunOutcome::Complete, Some(&found)),
            "# 2 of 4 hosts, without a finding of ombx\nh1\nh3\n"
        );
        assert_eq!(
            text(Listed::Unfit, RunOutcome::Complete, Some(&found)),
            "# 2 of 4 hosts, with a finding of ombx\n# h2 is slow\nh2\n# it could not be reached\nh9\n"
        );
        for (outcome, verdict) in [(RunOutcome::Interrupted, Some(&found)), (RunOutcome::Complete, None)] {
            assert_eq!(
                text(Listed::Fit, outcome, verdict),
                "# 0 of 4 hosts, without a finding of ombx\n\
                 # other hosts are not known to be fit: the run did not complete\n"
            );
        }
    }
}
