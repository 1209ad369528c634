//! Fans: a rank of the first node and the ranks with the same number on all other nodes.

use std::collections::BTreeMap;

use crate::{
    error::{Error, Result},
    unit::Rank,
};

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
    pub fn of(node_of: &[u32]) -> Result<Fan> {
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

    /// Returns the children of each rank that has some. A placement is a letter per rank.
    fn families(placement: &str) -> Vec<(u32, Vec<u32>)> {
        let hosts = placement.as_bytes();
        let node_of = |host: &u8| hosts.iter().position(|other| other == host).unwrap() as u32;
        let fan = Fan::of(&hosts.iter().map(node_of).collect::<Vec<_>>()).unwrap();
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
        let error = Fan::of(&[0, 0, 2, 3, 3]).unwrap_err().to_string();
        assert!(error.contains("rank 0 is one of 2 on its host, rank 2 one of 1"), "{error}");
    }
}
