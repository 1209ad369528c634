//! Rounds of a sweep over links: the times of links that were measured at the same time, in arrays.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, Visitor},
};
use serde_json::{json, value::RawValue};

use crate::{
    link::{BENCH, RETEST, ROUND, ends_of, key_of_link},
    result::valid::{check_row, is_finite_and_not_negative},
    result::{Level, Mark, Measurement, Outcome},
    stats::Summary,
};

/// Axes that name a link and its round. The other axes are those of all links of a round.
const FROM: &str = "from";
const TO: &str = "to";
/// Maximum number of links in the record of a sweep that measures one pair at a time: of each size, a run that is killed loses at most
/// these.
const MOST_SERIAL: usize = 64;
/// Maximum length of what all links share in bytes.
const MOST_TEXT: usize = 1 << 15;

/// Median times of links that were measured at the same time. Of these links no samples are kept; rows with samples are those of links
/// that were measured again, and of links that failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Round {
    /// What the rows of all links share. `checked` is the least of them, and `grown` has what grew in each of them.
    #[serde(flatten)]
    pub row: Measurement,
    /// Number of the round in the schedule; `None` in a sweep that measures one pair at a time.
    #[serde(default, rename = "round", skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Timed rank of each link.
    pub from: Vec<u32>,
    /// Rank that answers, of each link.
    pub to: Vec<u32>,
    /// Median time of one leg of each link in nanoseconds: five digits, or more; below 10 ns to 10^-6 ns.
    pub median_ns: Vec<f32>,
    /// Marks of the links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<RoundMark>,
}

/// A flattened field would make the reader of serde keep each number of the arrays as a value of its own. Here the fields of the row are
/// kept as text, until all are there.
impl<'de> Deserialize<'de> for Round {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Round, D::Error> {
        from.deserialize_map(RoundVisitor)
    }
}

struct RoundVisitor;

impl<'de> Visitor<'de> for RoundVisitor {
    type Value = Round;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a round")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Round, A::Error> {
        let (mut number, mut from, mut to, mut median_ns, mut marks) = (None, None, None, None, None);
        let mut row = String::new();
        while let Some(name) = fields.next_key::<String>()? {
            let is_repeated = match name.as_str() {
                "round" => number.replace(fields.next_value()?).is_some(),
                "from" => from.replace(fields.next_value()?).is_some(),
                "to" => to.replace(fields.next_value()?).is_some(),
                "median_ns" => median_ns.replace(fields.next_value()?).is_some(),
                "marks" => marks.replace(fields.next_value()?).is_some(),
                _ => {
                    let value: Box<RawValue> = fields.next_value()?;
                    let comma = if row.is_empty() { "" } else { "," };
                    row += &format!("{comma}{}:{}", json!(name), value.get());
                    false
                }
            };
            if is_repeated {
                return Err(A::Error::custom(format!("duplicate field `{name}`")));
            }
        }
        let missing = A::Error::missing_field;
        Ok(Round {
            row: serde_json::from_str(&format!("{{{row}}}")).map_err(A::Error::custom)?,
            number: number.flatten(),
            from: from.ok_or_else(|| missing("from"))?,
            to: to.ok_or_else(|| missing("to"))?,
            median_ns: median_ns.ok_or_else(|| missing("median_ns"))?,
            marks: marks.unwrap_or_default(),
        })
    }
}

/// Mark of some links of a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoundMark {
    /// The mark of the first link that has it, with the largest effect of all.
    #[serde(flatten)]
    pub mark: Mark,
    /// Places of the links in the arrays, ascending; empty if all links have the mark.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<u32>,
    /// Effect on each link that has the mark; `None` where it is unknown. Empty if it is that of `mark` on all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Option<f64>>,
}

impl RoundMark {
    /// Returns the mark of some links of a round, with the same effect on each; of all if there are no places.
    pub fn new(mark: Mark, links: Vec<u32>) -> RoundMark {
        RoundMark { mark, links, effects: Vec::new() }
    }

    /// Returns the effect on a link: `None` if the link does not have the mark, and `Some(None)` if it has, with an unknown effect.
    pub fn effect(&self, link: usize) -> Option<Option<f64>> {
        let place = match &self.links[..] {
            [] => link,
            links => links.binary_search(&(link as u32)).ok()?,
        };
        Some(self.effects.get(place).map_or(self.mark.effect, |effect| *effect))
    }

    fn of_link(&self, link: usize) -> Option<Mark> {
        Some(self.mark.clone().bounded(self.effect(link)?))
    }

    /// Adds the link at the end of the round.
    fn add(&mut self, at: u32, mark: &Mark) {
        self.links.push(at);
        self.effects.push(mark.effect);
        let effect = self.mark.effect.zip(mark.effect).map(|(a, b)| a.max(b));
        self.mark = self.mark.clone().bounded(effect);
    }

    /// Leaves out what is the same for all links.
    fn end(&mut self, links: usize) {
        if self.links.len() == links {
            self.links = Vec::new();
        }
        if self.effects.iter().all(|effect| *effect == self.mark.effect) {
            self.effects = Vec::new();
        }
    }
}

impl Round {
    /// Returns the number of links.
    pub fn len(&self) -> usize {
        self.from.len()
    }

    /// Returns the marks that are more than notes.
    pub fn doubts(&self) -> impl Iterator<Item = &RoundMark> {
        self.marks.iter().filter(|mark| mark.mark.level >= Level::Caution)
    }

    /// Returns the number of links with marks that are more than notes.
    pub fn doubtful(&self) -> usize {
        if self.doubts().any(|mark| mark.links.is_empty()) {
            return self.len();
        }
        self.doubts().flat_map(|mark| &mark.links).collect::<BTreeSet<_>>().len()
    }

    /// Returns the number of links that have a mark, of which these are the places.
    pub fn count(&self, links: &[u32]) -> usize {
        if links.is_empty() { self.len() } else { links.len() }
    }

    /// Returns whether the round has no links.
    pub fn is_empty(&self) -> bool {
        self.from.is_empty()
    }

    /// Returns the timed rank, the other rank and the time of each link.
    pub fn links(&self) -> impl ExactSizeIterator<Item = (u32, u32, f32)> + '_ {
        self.from.iter().zip(&self.to).zip(&self.median_ns).map(|((from, to), ns)| (*from, *to, *ns))
    }

    /// Returns the row of each link. Its summary has the median in the place of every figure.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Measurement> + '_ {
        (0..self.len()).map(|at| self.row_of(at))
    }

    fn row_of(&self, at: usize) -> Measurement {
        let (from, to, ns) = (self.from[at], self.to[at], self.median_ns[at]);
        let mut axes = self.row.axes.clone();
        axes.extend([(FROM.to_owned(), from.to_string()), (TO.to_owned(), to.to_string())]);
        axes.extend(self.number.map(|number| (ROUND.to_owned(), number.to_string())));
        Measurement {
            key: key_of_link(&axes, self.row.bytes, self.row.depth),
            axes,
            summary: Summary::new(&[f64::from(ns)]),
            trust: self.marks.iter().filter_map(|mark| mark.of_link(at)).collect(),
            grown: if at == 0 { self.row.grown.clone() } else { Vec::new() },
            ..self.row.clone()
        }
    }

    /// Checks the record, both before writing and after reading. The error names the violated condition.
    pub(crate) fn check(&self) -> Result<(), String> {
        let links = self.len();
        if links == 0 || self.to.len() != links || self.median_ns.len() != links {
            return Err("from, to and median_ns must have one entry for each link".into());
        }
        if !self.median_ns.iter().all(|ns| is_finite_and_not_negative(f64::from(*ns))) {
            return Err("median_ns has a number that is not a time".into());
        }
        let is_place = |mark: &RoundMark| {
            mark.links.is_sorted_by(|a, b| a < b)
                && mark.links.last().is_none_or(|last| (*last as usize) < links)
        };
        if !self.marks.iter().all(is_place) {
            return Err("a mark has links that are not in the round".into());
        }
        let is_complete = |mark: &RoundMark| [0, self.count(&mark.links)].contains(&mark.effects.len());
        if !self.marks.iter().all(is_complete) {
            return Err("a mark must have no effects, or one for each of its links".into());
        }
        let row = &self.row;
        let has_samples = row.summary.is_some() || !row.samples.is_empty() || !row.tail.is_empty();
        let has_more = !row.trust.is_empty() || !row.figures.is_empty();
        let is_summed = row.launches.is_some() || row.phases.is_some();
        if row.bench != BENCH || row.outcome != Outcome::Ok || has_samples || has_more || is_summed {
            return Err("its links were not measured, or have samples".into());
        }
        if [FROM, TO, ROUND, RETEST].iter().any(|axis| row.axes.contains_key(*axis)) {
            return Err("an axis that each link has of its own is one of all".into());
        }
        let axes: usize = row.axes.iter().map(|(name, value)| name.len() + value.len()).sum();
        let length = |mark: &Mark| mark.code.name().len() + mark.short.len() + mark.advice.len();
        let marks: usize = self.marks.iter().map(|RoundMark { mark, .. }| length(mark)).sum();
        if row.key.len() + axes + marks > MOST_TEXT {
            return Err(format!("its text has more than {MOST_TEXT} bytes, and every link has a copy of it"));
        }
        check_row(row)
    }
}

/// Both ranks of a link, and its time in nanoseconds.
type Link = (u32, u32, f32);

/// Collects rows of links into rounds while a file is written. A sweep of one pair at a time has one for each message size.
#[derive(Debug, Default)]
pub struct Rounds {
    open: Vec<Round>,
}

impl Rounds {
    /// Takes a row. Returns the rounds that it ends, and whether the row was taken; otherwise it is a record of its own.
    pub fn add(&mut self, row: &Measurement) -> (Vec<Round>, bool) {
        let Some((shared, number, link)) = divided(row) else { return (self.end(), false) };
        let known = self.open.iter().position(|open| is_shared(&open.row, &shared));
        let is_full = |at: usize| number.is_none() && self.open[at].len() >= MOST_SERIAL;
        let continues =
            |first: &Round| first.number == number && known.map_or(number.is_none(), |at| !is_full(at));
        let ends = self.open.first().is_some_and(|first| !continues(first));
        let ended = if ends { self.end() } else { Vec::new() };
        let at = known.filter(|_| !ends).unwrap_or(self.open.len());
        if at == self.open.len() {
            let (from, to, median_ns, marks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            self.open.push(Round { row: shared, number, from, to, median_ns, marks });
        }
        self.open[at].add(link, row);
        (ended, true)
    }

    /// Returns the rounds that are open.
    pub fn open(&self) -> &[Round] {
        &self.open
    }

    /// Ends the rounds, and returns them.
    pub fn end(&mut self) -> Vec<Round> {
        let mut ended = std::mem::take(&mut self.open);
        for round in &mut ended {
            let links = round.len();
            round.marks.iter_mut().for_each(|mark| mark.end(links));
        }
        ended
    }
}

impl Round {
    fn add(&mut self, (from, to, ns): Link, row: &Measurement) {
        let at = self.len() as u32;
        self.from.push(from);
        self.to.push(to);
        self.median_ns.push(ns);
        self.row.checked = if at == 0 { row.checked } else { self.row.checked.min(row.checked) };
        self.row.grown.extend(row.grown.iter().cloned());
        for mark in &row.trust {
            let known = self
                .marks
                .iter_mut()
                .find(|known| (&known.mark.code, known.mark.level) == (&mark.code, mark.level));
            match known {
                // A row may have a mark twice.
                Some(known) if known.links.last() == Some(&at) => {}
                Some(known) => known.add(at, mark),
                None => {
                    let effects = vec![mark.effect];
                    self.marks.push(RoundMark { mark: mark.clone(), links: vec![at], effects });
                }
            }
        }
    }
}

/// Returns what a row shares with the others of its round, the number of the round, and its link; `None` if the row is a record of its
/// own.
fn divided(row: &Measurement) -> Option<(Measurement, Option<u32>, Link)> {
    let is_ordinary = row.bench == BENCH
        && row.outcome == Outcome::Ok
        && !row.axes.contains_key(RETEST)
        && row.launches.is_none();
    let ([from, to], ns) = (ends_of(row)?, row.summary.as_ref()?.median);
    let number = match row.axes.get(ROUND) {
        Some(number) => Some(number.parse().ok()?),
        None => None,
    };
    if !is_ordinary
        || !is_finite_and_not_negative(ns)
        || row.key != key_of_link(&row.axes, row.bytes, row.depth)
    {
        return None;
    }
    let is_of_all = |(name, _): &(&String, &String)| ![FROM, TO, ROUND].contains(&name.as_str());
    let axes: BTreeMap<String, String> =
        row.axes.iter().filter(is_of_all).map(|(name, value)| (name.clone(), value.clone())).collect();
    let shared = Measurement {
        bytes: row.bytes,
        depth: row.depth,
        pairs: row.pairs,
        work: row.work,
        bus: row.bus,
        aggregation: row.aggregation,
        check: row.check.clone(),
        ..Measurement::new(BENCH, key_of_link(&axes, row.bytes, row.depth), row.metric, row.ranks)
    };
    Some((Measurement { axes, ..shared }, number, (from, to, rounded(ns))))
}

/// Returns whether two rows differ at most in what a round sums up.
fn is_shared(open: &Measurement, other: &Measurement) -> bool {
    (&open.key, &open.axes, open.bytes, open.depth, open.pairs, open.ranks, open.metric)
        == (&other.key, &other.axes, other.bytes, other.depth, other.pairs, other.ranks, other.metric)
        && (open.work, open.bus, open.aggregation, &open.check)
            == (other.work, other.bus, other.aggregation, &other.check)
}

/// Returns a time with at least five digits, but to no less than 10^-6 ns, and without fractions of a nanosecond from 10 µs on: the clock
/// reads no better.
fn rounded(ns: f64) -> f32 {
    let digits = if ns > 0.0 { (4 - ns.log10().floor() as i32).clamp(0, 6) } else { 0 };
    let scale = 10_f64.powi(digits);
    ((ns * scale).round() / scale) as f32
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use crate::{
        event::{Event, round::*},
        file,
        result::{Check, Figure, MarkCode, Metric, Phases, Samples, Work},
    };

    fn row(from: u32, to: u32, round: Option<u32>, ns: f64) -> Measurement {
        let axes =
            [("pattern", "semidirectional".to_owned()), ("from", from.to_string()), ("to", to.to_string())];
        let axes = axes.into_iter().chain(round.map(|round| ("round", round.to_string())));
        let axes: BTreeMap<String, String> = axes.map(|(name, value)| (name.to_owned(), value)).collect();
        Measurement {
            key: key_of_link(&axes, Some(8), None),
            axes,
            bytes: Some(8),
            work: Some(Work { bytes: 16, ops: 2, legs: 2 }),
            check: Check::Passed,
            checked: 20 + u64::from(from),
            samples: vec![Samples {
                rank: from,
                batch: 1,
                elapsed_ns: vec![2 * ns as u64; 9],
                ..Samples::default()
            }],
            summary: Summary::new(&[ns; 9]),
            figures: [("retransmits".to_owned(), Figure::Value(0.0))].into(),
            ..Measurement::new(BENCH, "", Metric::Latency, 2)
        }
    }

    #[test]
    fn rows_of_a_round_are_one_record_of_few_bytes_a_link() {
        let ranks = 2000;
        let mut rounds = Rounds::default();
        for from in 0..ranks {
            let added = rounds.add(&row(from, ranks - 1 - from, Some(3), 5016.234 + f64::from(from)));
            assert_eq!(added, (Vec::new(), true));
        }
        let (ended, taken) = rounds.add(&row(0, 1, Some(4), 7.0));
        let [round] = &ended[..] else { panic!("{} rounds", ended.len()) };
        assert!(taken && round.len() == ranks as usize && round.number == Some(3));
        assert_eq!((round.row.checked, round.row.samples.len()), (20, 0));
        let mut line = Vec::new();
        file::write(&mut line, &Event::Round(Cow::Borrowed(round))).unwrap();
        // A link is two rows, one in each direction.
        assert!(line.len() <= 20 * ranks as usize, "{} bytes", line.len());
        let read = file::parse(std::str::from_utf8(&line).unwrap(), 1).unwrap().unwrap();
        assert_eq!(read, Event::Round(Cow::Borrowed(round)));
        let back: Vec<Measurement> = round.rows().collect();
        let first = row(0, ranks - 1, Some(3), 5016.2);
        assert_eq!((&back[0].key, &back[0].axes, back[0].work), (&first.key, &first.axes, first.work));
        assert!((back[0].summary.as_ref().unwrap().median - 5016.2).abs() < 1e-3);
    }

    #[test]
    fn rows_that_differ_are_records_of_their_own() {
        let mut rounds = Rounds::default();
        let mut again = row(0, 1, None, 7.0);
        again.axes.insert(RETEST.into(), "alone".into());
        let failed = Measurement { outcome: Outcome::Failed("no".into()), ..row(0, 1, Some(1), 7.0) };
        let renamed = Measurement { key: "links/x".into(), ..row(0, 1, Some(1), 7.0) };
        for other in [again, failed, renamed, Measurement { summary: None, ..row(0, 1, Some(1), 7.0) }] {
            assert!(rounds.add(&row(2, 3, Some(1), 7.0)).1);
            let (ended, taken) = rounds.add(&other);
            assert!(!taken && ended.iter().map(Round::len).eq([1]), "{}", other.key);
        }
        assert!(rounds.end().is_empty());
        // One pair at a time has no rounds, and few rows in a record.
        let records: usize = (0..200).map(|from| rounds.add(&row(from, 300, None, 9.0)).0.len()).sum();
        assert_eq!((records, rounds.end()[0].len()), (3, 8));
    }

    #[test]
    fn one_pair_at_a_time_has_few_records_whatever_the_number_of_sizes() {
        let mut rounds = Rounds::default();
        let mut records = Vec::new();
        for from in 0..200 {
            for bytes in [8, 65536] {
                let mut row = Measurement { bytes: Some(bytes), ..row(from, 300, None, 9.0) };
                row.key = key_of_link(&row.axes, row.bytes, row.depth);
                let (ended, taken) = rounds.add(&row);
                assert!(taken);
                records.extend(ended);
            }
        }
        records.extend(rounds.end());
        let sizes: Vec<_> = records.iter().map(|round| (round.row.bytes.unwrap(), round.len())).collect();
        assert_eq!(sizes, [64, 64, 64, 8].map(|links| [(8, links), (65536, links)]).concat());
        // Rows of rounds are in the order of measuring.
        assert!(rounds.add(&row(0, 1, None, 9.0)).1);
        let ended = rounds.add(&row(0, 1, Some(0), 9.0)).0;
        assert_eq!(ended.iter().map(|round| round.number).collect::<Vec<_>>(), [None]);
    }

    #[test]
    fn marks_are_kept_once_with_the_links_that_have_them() {
        let mark = |effect| Mark {
            effect: Some(effect),
            ..Mark::with_advice(MarkCode::Preempted, "preempted 2x", "wait").at(Level::Caution)
        };
        let mut rounds = Rounds::default();
        for from in 0..4 {
            let mut trust = vec![Mark::with_advice("few", "few", "more")];
            trust.extend((from % 2 == 1).then(|| mark(0.1 * f64::from(from))));
            rounds.add(&Measurement { trust, ..row(from, 9, Some(1), 7.0) });
        }
        let round = rounds.end().remove(0);
        assert_eq!(round.marks.iter().map(|mark| &mark.links[..]).collect::<Vec<_>>(), [&[][..], &[1, 3]]);
        assert!((round.marks[1].mark.effect.unwrap() - 0.3).abs() < 1e-9);
        // The bound of the link with the largest effect holds for all.
        assert_eq!(round.marks[1].mark.short, "preempted 2x (up to 30%)");
        let counts: Vec<usize> = round.rows().map(|row| row.trust.len()).collect();
        assert_eq!(counts, [1, 2, 1, 2]);
        assert_eq!(round.marks.iter().map(|mark| round.count(&mark.links)).collect::<Vec<_>>(), [4, 2]);
        assert_eq!(round.doubts().count(), 1);
        // Each row has the effect on its own link.
        let effects: Vec<_> = round.rows().map(|row| row.trust.last().and_then(|mark| mark.effect)).collect();
        assert_eq!(effects, [None, Some(0.1), None, Some(0.1 * 3.0)]);
        assert_eq!(round.marks.iter().map(|mark| mark.effects.len()).collect::<Vec<_>>(), [0, 2]);
        round.check().unwrap();
        let mut short = round.clone();
        short.marks[1].effects.truncate(1);
        assert!(short.check().unwrap_err().contains("one for each"));
    }

    #[test]
    fn a_record_whose_links_would_have_copies_of_much_is_refused() {
        let mut rounds = Rounds::default();
        rounds.add(&row(0, 1, Some(1), 7.0));
        let round = rounds.end().remove(0);
        round.check().unwrap();
        let spoilt = |spoil: &dyn Fn(&mut Round)| {
            let mut round = round.clone();
            spoil(&mut round);
            round.check().unwrap_err()
        };
        let axis = |name: &str, value: String| {
            spoilt(&|round| drop(round.row.axes.insert(name.to_owned(), value.clone())))
        };
        assert!(axis("memory", "x".repeat(MOST_TEXT)).contains("copy"));
        for name in [FROM, TO, ROUND, RETEST] {
            assert!(axis(name, "1".into()).contains("of its own"), "{name}");
        }
        let mark = Mark::with_advice("few", "few", "x".repeat(MOST_TEXT));
        let marks = vec![RoundMark::new(mark, Vec::new())];
        assert!(spoilt(&|round| round.marks.clone_from(&marks)).contains("copy"));
        let samples = vec![Samples { batch: 1, ..Samples::default() }];
        assert!(spoilt(&|round| round.row.tail.clone_from(&samples)).contains("have samples"));
        assert!(spoilt(&|round| round.row.phases = Some(Phases::default())).contains("have samples"));
    }

    #[test]
    fn times_keep_five_digits() {
        for (ns, kept) in
            [(0.0, 0.0), (800.1234, 800.12), (5016.234, 5016.2), (12_345.6, 12_346.0), (1e6 + 0.4, 1e6)]
        {
            assert_eq!(rounded(ns), kept as f32, "{ns}");
        }
    }
}
