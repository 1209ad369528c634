//! Layouts: which ranks take part in a benchmark, their roles, and how their times are aggregated.

use std::{collections::BTreeMap, sync::Arc};

use ombx_record::{
    error::{Error, Result},
    result::Aggregation,
    unit::{Rank, digits},
};

use crate::benchmark::{Heading, Parameter, ParameterValue, Role};

/// Ranks and roles of a benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Rank 0 is timed and rank 1 answers, or by [`Direction`] the other way round. Other ranks are idle.
    Pair,
    /// Pairs of ranks by [`Pairing`]; the first rank of each is timed. `--pairs` overrides their number. An odd last rank is idle.
    Pairs(Pairs),
    /// The root is timed and all other ranks answer it: rank 0, or the one of `--root`.
    Star,
    /// Ranks of the first node and of all other nodes; see [`Fan`]. The ranks that send are timed.
    Fan(FanDirection),
    /// Rank 0 is timed and starts other processes. Other ranks are idle.
    Alone,
    /// Every rank is timed.
    Everyone {
        /// Minimum number of ranks.
        least: u32,
    },
}

/// Default number of pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairs {
    /// One.
    One,
    /// As many as the ranks allow.
    Most,
}

crate::parameter! {
    /// Which ranks are a pair
    pub enum Pairing: "pairing", IfChosen, default Block {
        /// Rank i and rank i + pairs
        Block = "block",
        /// Ranks 2i and 2i + 1
        Adjacent = "adjacent",
    }
}

crate::parameter! {
    /// Rank that is timed: it sends, connects or requests
    pub enum Direction: "direction", IfChosen, default Forward {
        /// Rank 0
        Forward = "forward",
        /// Rank 1
        Reverse = "reverse",
    }
}

crate::parameter! {
    /// How far the neighbours of a periodic chain are from a rank
    pub enum Distance: "distance", IfChosen, default Next {
        /// One rank
        Next = "next",
        /// Half of the ranks: of an even number, both neighbours are the same rank
        Half = "half",
    }
}

/// Number of pairs of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairCount(pub u32);

impl ParameterValue for PairCount {
    const PARAMETER: &'static Parameter = &Parameter::one_of::<PairCount>(
        "pairs",
        "PAIRS",
        "Pairs of ranks that communicate at the same time, in benchmarks of pairs [default: as many as the \
         ranks allow]",
    )
    .under(Heading::General);
    const DEFAULT: PairCount = PairCount(1);

    fn parse(text: &str) -> Result<PairCount> {
        let pairs = digits(text).filter(|pairs| *pairs > 0).map(PairCount);
        pairs.ok_or_else(|| Error::usage(format!("not a number from 1 to {}", u32::MAX)))
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A layout that is applied to a number of ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Ranks that take part: 0 to `ranks` - 1.
    pub ranks: u32,
    /// Number of pairs, in a fan of parents and children; 1 for layouts without pairs.
    pub pairs: u32,
    layout: Layout,
    pairing: Pairing,
    direction: Direction,
    /// The rank that is timed in a star.
    root: Rank,
    fan: Option<Arc<Fan>>,
}

impl Layout {
    /// Returns whether senders and receivers, or origins and targets, are different ranks.
    pub const fn has_roles(self) -> bool {
        matches!(self, Layout::Pair | Layout::Pairs(_) | Layout::Star)
    }

    /// Returns the number of ranks that `ombx run` starts by default.
    pub const fn ranks_wanted(self, pairs: Option<u32>) -> u32 {
        match (self, pairs) {
            (Layout::Alone, _) => 1,
            (Layout::Pair | Layout::Star | Layout::Fan(_), _) => 2,
            (Layout::Pairs(_), None) => 2,
            (Layout::Pairs(_), Some(pairs)) => pairs.saturating_mul(2),
            (Layout::Everyone { least }, _) => {
                if least > 2 {
                    least
                } else {
                    2
                }
            }
        }
    }

    /// Applies the layout to `available` ranks; a fan as on one node.
    ///
    /// # Errors
    /// [`Error::unsupported`] if there are too few ranks.
    pub fn assign(self, available: u32, pairs: Option<u32>) -> Result<Assignment> {
        let assigned = |ranks, pairs| {
            let (pairing, direction) = (Pairing::Block, Direction::Forward);
            Ok(Assignment { ranks, pairs, layout: self, pairing, direction, root: Rank(0), fan: None })
        };
        let short = |need: u32| {
            Err(Error::unsupported(format!("needs {need} ranks, has {available}; start it with -n {need}")))
        };
        match self {
            Layout::Pair if available < 2 => short(2),
            Layout::Pair => assigned(2, 1),
            Layout::Pairs(usual) => {
                let most = match usual {
                    Pairs::One => 1,
                    Pairs::Most => (available / 2).max(1),
                };
                let pairs = pairs.unwrap_or(most);
                match pairs.checked_mul(2) {
                    Some(ranks) if ranks <= available => assigned(ranks, pairs),
                    need => short(need.unwrap_or(u32::MAX)),
                }
            }
            Layout::Alone => assigned(1, 1),
            Layout::Star | Layout::Fan(_) if available < 2 => short(2),
            Layout::Star => assigned(available, 1),
            Layout::Fan(_) => assigned(available, 1)?.on_nodes(&vec![0; available as usize]),
            Layout::Everyone { least } if available < least => short(least),
            Layout::Everyone { .. } => assigned(available, 1),
        }
    }

    /// Returns whether the option `--pairs` applies.
    pub const fn has_pairs(self) -> bool {
        matches!(self, Layout::Pairs(_))
    }

    /// Returns the default aggregation.
    pub const fn aggregation(self) -> Aggregation {
        match self {
            Layout::Alone | Layout::Pair | Layout::Pairs(Pairs::One) | Layout::Star => Aggregation::Origin,
            Layout::Pairs(Pairs::Most) | Layout::Fan(_) => Aggregation::Pairs,
            Layout::Everyone { .. } => Aggregation::Slowest,
        }
    }

    /// Returns the number of ranks in words, for `ombx list`.
    pub fn describe(self) -> String {
        match self {
            Layout::Alone => "1".into(),
            Layout::Pair => "2".into(),
            Layout::Pairs(_) => "2 x pairs".into(),
            Layout::Star | Layout::Fan(_) => "2..".into(),
            Layout::Everyone { least } => format!("{least}.."),
        }
    }
}

impl Assignment {
    /// Returns the assignment with another pairing.
    #[must_use]
    pub fn paired(self, pairing: Pairing) -> Assignment {
        Assignment { pairing, ..self }
    }

    /// Returns the assignment with another direction, which [`Layout::Pair`] has.
    #[must_use]
    pub fn directed(self, direction: Direction) -> Assignment {
        Assignment { direction, ..self }
    }

    /// Returns the assignment with another root, which [`Layout::Star`] has.
    #[must_use]
    pub fn rooted(self, root: Rank) -> Assignment {
        Assignment { root, ..self }
    }

    /// Returns the timed rank of a pair or a star, the lowest one of other layouts.
    pub const fn timed(&self) -> Rank {
        match (self.layout, self.direction) {
            (Layout::Pair, Direction::Reverse) => Rank(1),
            (Layout::Star, _) => self.root,
            _ => Rank(0),
        }
    }

    /// Returns the assignment of a fan on nodes, and any other unchanged. `node_of` is the lowest rank on the node of each rank.
    ///
    /// # Errors
    /// [`Error::unsupported`] if a fan has different numbers of ranks on its nodes.
    pub fn on_nodes(self, node_of: &[u32]) -> Result<Assignment> {
        let Layout::Fan(_) = self.layout else { return Ok(self) };
        let fan = Fan::new(node_of)?;
        Ok(Assignment { pairs: fan.pairs(), fan: Some(Arc::new(fan)), ..self })
    }

    /// Returns the children of a rank in a fan; none in other layouts.
    pub fn children(&self, rank: Rank) -> Vec<Rank> {
        self.fan.as_ref().map_or(Vec::new(), |fan| fan.children_of(rank))
    }

    /// Returns the aggregation. Several pairs have several timed ranks.
    pub const fn aggregation(&self) -> Aggregation {
        if self.pairs > 1 || self.timed().0 != 0 { Aggregation::Pairs } else { self.layout.aggregation() }
    }

    /// Returns the ranks that a rank sends to and receives from where all ranks pass messages on: twice its peer in a pair, else the next
    /// and the previous rank.
    pub fn neighbours(&self, rank: Rank) -> [Rank; 2] {
        let (_, peer) = self.role(rank);
        if matches!(self.layout, Layout::Pair | Layout::Pairs(_)) {
            return [peer; 2];
        }
        [Rank((rank.0 + 1) % self.ranks), Rank((rank.0 + self.ranks - 1) % self.ranks)]
    }

    /// Returns the role of a rank and its peer.
    pub fn role(&self, rank: Rank) -> (Role, Rank) {
        match (self.layout, self.pairing) {
            (Layout::Pair, _) if self.timed() == Rank(1) => match rank {
                Rank(0) => (Role::Passive, Rank(1)),
                _ => (Role::Active, Rank(0)),
            },
            (Layout::Alone | Layout::Everyone { .. }, _) => (Role::Active, rank),
            (Layout::Star, _) if rank == self.root => (Role::Active, rank),
            (Layout::Star, _) => (Role::Passive, self.root),
            (Layout::Fan(direction), _) => {
                let parent = self.fan.as_ref().and_then(|fan| fan.parent_of(rank));
                let sends = parent.is_some() == (direction == FanDirection::In);
                (if sends { Role::Active } else { Role::Passive }, parent.unwrap_or(rank))
            }
            (_, Pairing::Adjacent) if rank.0.is_multiple_of(2) => (Role::Active, Rank(rank.0 + 1)),
            (_, Pairing::Adjacent) => (Role::Passive, Rank(rank.0 - 1)),
            (_, Pairing::Block) if rank.0 < self.pairs => (Role::Active, Rank(rank.0 + self.pairs)),
            (_, Pairing::Block) => (Role::Passive, Rank(rank.0 - self.pairs)),
        }
    }
}

/// Direction of the messages of a fan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FanDirection {
    /// From the other nodes to the first.
    In,
    /// From the first node to the others.
    Out,
}

/// Nodes with equally many ranks. Rank i of the first node is the parent of rank i of every other node.
///
/// Ranks of one node exchange no messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fan {
    /// Ranks of each node in ascending order.
    nodes: Vec<Vec<Rank>>,
}

impl Fan {
    /// Groups ranks by their node, whose name is the lowest rank on it. On a single node every rank counts as a node.
    ///
    /// # Errors
    /// [`Error::unsupported`] if nodes have different numbers of ranks.
    pub fn new(node_of: &[u32]) -> Result<Fan> {
        let mut nodes: BTreeMap<u32, Vec<Rank>> = BTreeMap::new();
        for (rank, node) in (0..).map(Rank).zip(node_of) {
            nodes.entry(*node).or_default().push(rank);
        }
        let nodes: Vec<Vec<Rank>> = match nodes.len() {
            1 => nodes.into_values().flatten().map(|rank| vec![rank]).collect(),
            _ => nodes.into_values().collect(),
        };
        let differs = |pair: &&[Vec<Rank>]| pair[0].len() != pair[1].len();
        if let Some([one, other]) = nodes.windows(2).find(differs) {
            return Err(Error::unsupported(format!(
                "needs the same number of ranks on every host: rank {} is one of {} on its host, rank {} one of {}",
                one[0],
                one.len(),
                other[0],
                other.len()
            )));
        }
        Ok(Fan { nodes })
    }

    /// Returns the number of pairs of parent and child.
    pub fn pairs(&self) -> u32 {
        let children: usize = self.nodes.iter().skip(1).map(Vec::len).sum();
        children as u32
    }

    /// Returns the parent of a rank; `None` for a parent.
    pub fn parent_of(&self, rank: Rank) -> Option<Rank> {
        let at = self.nodes.iter().skip(1).find_map(|node| node.binary_search(&rank).ok())?;
        self.nodes.first()?.get(at).copied()
    }

    /// Returns the children of a rank in the order of their nodes; none for a child.
    pub fn children_of(&self, rank: Rank) -> Vec<Rank> {
        let at = self.nodes.first().and_then(|parents| parents.binary_search(&rank).ok());
        at.map_or(Vec::new(), |at| self.nodes.iter().skip(1).map(|node| node[at]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_of_a_pair_are_mutual() {
        for available in 2..9 {
            let assignment = Layout::Pairs(Pairs::Most).assign(available, None).unwrap();
            assert_eq!(assignment.ranks, available / 2 * 2);
            for assignment in Pairing::ALL.iter().map(|pairing| assignment.clone().paired(*pairing)) {
                for rank in (0..assignment.ranks).map(Rank) {
                    let (role, peer) = assignment.role(rank);
                    let (other, back) = assignment.role(peer);
                    assert_ne!(role, other);
                    assert_eq!(back, rank);
                }
            }
        }
    }

    #[test]
    fn the_second_rank_of_a_pair_may_be_timed() {
        let forward = Layout::Pair.assign(2, None).unwrap();
        assert_eq!(forward.aggregation(), Aggregation::Origin);
        let reverse = forward.directed(Direction::Reverse);
        assert_eq!([0, 1].map(|rank| reverse.role(Rank(rank)).0), [Role::Passive, Role::Active]);
        assert_eq!([0, 1].map(|rank| reverse.role(Rank(rank)).1.0), [1, 0]);
        assert_eq!(reverse.aggregation(), Aggregation::Pairs);
    }

    #[test]
    fn every_other_rank_of_a_star_answers_the_first() {
        let assignment = Layout::Star.assign(5, None).unwrap();
        assert_eq!(
            (assignment.ranks, assignment.pairs, assignment.aggregation()),
            (5, 1, Aggregation::Origin)
        );
        assert_eq!(assignment.role(Rank(0)), (Role::Active, Rank(0)));
        assert!((1..5).all(|rank| assignment.role(Rank(rank)) == (Role::Passive, Rank(0))));
        assert!(Layout::Star.assign(1, None).is_err());
        let rooted = assignment.rooted(Rank(2));
        assert_eq!(rooted.role(Rank(2)), (Role::Active, Rank(2)));
        assert!([0, 1, 3, 4].iter().all(|rank| rooted.role(Rank(*rank)) == (Role::Passive, Rank(2))));
        assert_eq!((rooted.timed(), rooted.aggregation()), (Rank(2), Aggregation::Pairs));
    }

    #[test]
    fn the_senders_of_a_fan_are_timed() {
        for (direction, timed) in [(FanDirection::In, vec![2, 3, 4, 5]), (FanDirection::Out, vec![0, 1])] {
            let one_node = Layout::Fan(direction).assign(6, None).unwrap();
            assert_eq!((one_node.ranks, one_node.pairs, one_node.children(Rank(0)).len()), (6, 5, 5));
            let fan = one_node.on_nodes(&[0, 0, 2, 2, 4, 4]).unwrap();
            assert_eq!((fan.ranks, fan.pairs, fan.aggregation()), (6, 4, Aggregation::Pairs));
            let active = |rank: &u32| fan.role(Rank(*rank)).0 == Role::Active;
            assert_eq!((0..6).filter(active).collect::<Vec<_>>(), timed);
            assert_eq!((0..6).map(|rank| fan.role(Rank(rank)).1.0).collect::<Vec<_>>(), [0, 1, 0, 1, 0, 1]);
            assert_eq!(fan.children(Rank(1)), [Rank(3), Rank(5)]);
        }
        assert!(Layout::Fan(FanDirection::In).assign(1, None).is_err());
    }

    #[test]
    fn pairs_are_blocks_or_adjacent() {
        let assignment = Layout::Pairs(Pairs::Most).assign(7, Some(3)).unwrap();
        let timed = |pairing: Pairing| -> Vec<(u32, u32)> {
            let assignment = assignment.clone().paired(pairing);
            let of = |rank: u32| match assignment.role(Rank(rank)) {
                (Role::Active, peer) => Some((rank, peer.0)),
                (Role::Passive, _) => None,
            };
            (0..assignment.ranks).filter_map(of).collect()
        };
        assert_eq!(timed(Pairing::Block), [(0, 3), (1, 4), (2, 5)]);
        assert_eq!(timed(Pairing::Adjacent), [(0, 1), (2, 3), (4, 5)]);
    }

    #[test]
    fn too_few_ranks_are_refused_with_the_number_needed() {
        let error = Layout::Pairs(Pairs::Most).assign(4, Some(9)).unwrap_err();
        assert!(error.to_string().contains("needs 18 ranks, has 4"), "{error}");
        assert!(Layout::Pair.assign(1, None).is_err());
        assert!(Layout::Pairs(Pairs::Most).assign(4, Some(u32::MAX)).is_err());
    }
}

#[cfg(test)]
mod fan_tests {
    use super::*;

    /// Returns the children of each rank that has some. A placement is a letter per rank.
    fn families(placement: &str) -> Vec<(u32, Vec<u32>)> {
        let hosts = placement.as_bytes();
        let node_of = |host: &u8| hosts.iter().position(|other| other == host).unwrap() as u32;
        let fan = Fan::new(&hosts.iter().map(node_of).collect::<Vec<_>>()).unwrap();
        let ranks = || (0..hosts.len() as u32).map(Rank);
        for rank in ranks() {
            let (parent, children) = (fan.parent_of(rank), fan.children_of(rank));
            assert_ne!(
                parent.is_some(),
                !children.is_empty(),
                "{placement}: {rank} is either parent or child"
            );
            assert!(children.iter().all(|child| fan.parent_of(*child) == Some(rank)), "{placement}: {rank}");
        }
        let of = |rank: Rank| (rank.0, fan.children_of(rank).iter().map(|child| child.0).collect::<Vec<_>>());
        let families: Vec<(u32, Vec<u32>)> =
            ranks().map(of).filter(|(_, children)| !children.is_empty()).collect();
        assert_eq!(fan.pairs() as usize, families.iter().map(|(_, children)| children.len()).sum::<usize>());
        families
    }

    #[test]
    fn a_parent_has_a_child_of_its_number_on_every_other_node() {
        assert_eq!(families("ab"), [(0, vec![1])]);
        assert_eq!(families("abc"), [(0, vec![1, 2])]);
        // Block, cyclic and mixed placements of three nodes with two ranks.
        assert_eq!(families("aabbcc"), [(0, vec![2, 4]), (1, vec![3, 5])]);
        assert_eq!(families("abcabc"), [(0, vec![1, 2]), (3, vec![4, 5])]);
        assert_eq!(families("abbcca"), [(0, vec![1, 3]), (5, vec![2, 4])]);
        assert_eq!(families("aaabbb"), [(0, vec![3]), (1, vec![4]), (2, vec![5])]);
        // Rank 0 is on the first node, whatever its name is.
        assert_eq!(families("zzaa"), [(0, vec![2]), (1, vec![3])]);
    }

    #[test]
    fn on_one_node_every_rank_counts_as_a_node() {
        assert_eq!(families("aa"), [(0, vec![1])]);
        assert_eq!(families("aaaa"), [(0, vec![1, 2, 3])]);
    }

    #[test]
    fn unequal_nodes_are_refused() {
        let error = Fan::new(&[0, 0, 2, 3, 3]).unwrap_err().to_string();
        assert!(error.contains("rank 0 is one of 2 on its host, rank 2 one of 1"), "{error}");
    }
}
