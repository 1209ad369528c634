//! Neighbourhoods that the user describes: a list of edges, or a periodic grid and a radius.

use std::{collections::BTreeSet, sync::Arc};

use ombx_record::{
    error::{Error, Result},
    unit::digits,
};

use super::{Case, CaseValues, Named, Parameter};
use crate::{
    benchmark::{
        ParameterValue,
        groups::{code, pairs},
    },
    measure::plan::Plan,
};

crate::parameter! {
    /// Topology of neighbourhood collectives
    pub enum Topology: "topology", Always, default Cartesian, refined by [&NEIGHBOURS, &TORUS] {
        /// Two-dimensional grid, as square as possible, not periodic
        Cartesian = "cartesian",
        /// Directed graph: each rank sends to the next two
        Graph = "graph",
        /// Periodic grid of --torus, as cubic as possible: each rank sends to all within a radius
        Torus = "torus",
        /// Directed graph of --neighbours
        Edges = "edges",
    }
}

/// The edges of [`Topology::Edges`]. Rows name their number and a code.
pub static NEIGHBOURS: Parameter = Parameter::free(
    "neighbours",
    "LIST|@FILE",
    "Edges of --topology edges: the rank that sends and the rank that receives, as 0:1,1:0; @FILE has a \
     line for each, as 0,1",
    |text| Edges::parse(text).map(drop),
)
.named(Named::AfterSize(|values, _| {
    let edges = Neighbourhood::from_values(values).edges;
    let is_named = values.get::<Topology>() == Topology::Edges && edges != Edges::DEFAULT;
    let code = || code(edges.iter().flat_map(|(from, to)| [from, to]).map(u64::from));
    is_named.then(|| format!("{}:{:04x}", edges.iter().count(), code()))
}));

/// The periodic grid of [`Topology::Torus`].
pub static TORUS: Parameter = Parameter::free(
    "torus",
    "DIMENSIONS:RADIUS",
    "Dimensions of the periodic grid of --topology torus, and how far away in each of them neighbours are \
     [default: 1:1]",
    |text| Torus::parse(text).map(drop),
)
.named(Named::AfterSize(|values, _| {
    let torus: Torus = values.get();
    let is_named = values.get::<Topology>() == Topology::Torus && torus != Torus::DEFAULT;
    is_named.then(|| torus.text())
}));

/// Most dimensions of a grid.
const MOST_DIMENSIONS: u32 = 4;
/// Largest radius.
const MOST_RADIUS: u32 = 8;

/// Edges of a directed graph: the rank that sends, then the rank that receives. All rows of a job share the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edges(Option<Arc<[(u32, u32)]>>);

impl Edges {
    /// Returns the edges.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().flat_map(|edges| edges.iter().copied())
    }
}

impl ParameterValue for Edges {
    const PARAMETER: &'static Parameter = &NEIGHBOURS;
    const DEFAULT: Edges = Edges(None);

    fn parse(text: &str) -> Result<Edges> {
        let mut found = BTreeSet::new();
        let mut all = Vec::new();
        for (from, to) in pairs("--neighbours", text)? {
            let refusal = |why: &str| Error::usage(format!("--neighbours {from}:{to}: {why}"));
            let ranks = u32::try_from(from).ok().zip(u32::try_from(to).ok());
            let ranks = ranks.ok_or_else(|| refusal("these are no ranks"))?;
            if from == to {
                return Err(refusal("a rank is no neighbour of itself"));
            }
            if !found.insert(ranks) {
                return Err(refusal("the edge is listed twice"));
            }
            all.push(ranks);
        }
        Ok(Edges(Some(all.into())))
    }

    fn text(&self) -> String {
        self.iter().map(|(from, to)| format!("{from}:{to}")).collect::<Vec<_>>().join(",")
    }
}

/// A periodic grid, in which each rank sends to all within a radius.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torus {
    /// Number of dimensions.
    pub dimensions: u32,
    /// Distance of neighbours in each dimension.
    pub radius: u32,
}

impl ParameterValue for Torus {
    const PARAMETER: &'static Parameter = &TORUS;
    const DEFAULT: Torus = Torus { dimensions: 1, radius: 1 };

    fn parse(text: &str) -> Result<Torus> {
        let numbers = text.split_once(':').and_then(|(one, other)| Some((digits(one)?, digits(other)?)));
        let torus = numbers.map(|(dimensions, radius)| Torus { dimensions, radius });
        let fits = |Torus { dimensions, radius }: &Torus| {
            (1..=MOST_DIMENSIONS).contains(dimensions) && (1..=MOST_RADIUS).contains(radius)
        };
        torus.filter(fits).ok_or_else(|| {
            Error::usage(format!(
                "--torus {text}: give 1 to {MOST_DIMENSIONS} dimensions and a radius of 1 to {MOST_RADIUS}, as \
                 in --torus 2:1"
            ))
        })
    }

    fn text(&self) -> String {
        format!("{}:{}", self.dimensions, self.radius)
    }
}

/// The neighbourhood of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbourhood {
    /// Edges of a graph; none if the user lists none.
    pub edges: Edges,
    /// The periodic grid.
    pub torus: Torus,
}

impl Neighbourhood {
    /// The neighbourhood of a case whose user describes none.
    pub const DEFAULT: Neighbourhood = Neighbourhood { edges: Edges::DEFAULT, torus: Torus::DEFAULT };

    /// Returns the neighbourhood that the values of a case describe.
    pub fn from_values(values: &CaseValues) -> Neighbourhood {
        Neighbourhood { edges: values.get(), torus: values.get() }
    }
}

/// Returns why the topology of a case does not exist under a plan, if so.
///
/// # Errors
/// The reason and what to choose.
pub fn check(case: &Case, plan: &Plan) -> std::result::Result<(), String> {
    let chosen = |topology: Topology| plan.chosen.includes(topology);
    let given = |parameter: &Parameter| plan.chosen.has(parameter);
    let reasons = [
        (
            case.get::<Topology>() == Topology::Edges && !given(&NEIGHBOURS),
            "--topology edges needs a list of edges: add --neighbours, as in --neighbours 0:1,1:0",
        ),
        (given(&NEIGHBOURS) && !chosen(Topology::Edges), "--neighbours lists edges: add --topology edges"),
        (
            given(&TORUS) && !chosen(Topology::Torus),
            "--torus describes a periodic grid: add --topology torus",
        ),
    ];
    match reasons.into_iter().find(|(hit, _)| *hit) {
        Some((_, why)) => Err(why.to_owned()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_describe_a_neighbourhood() {
        let of = |parameter: &'static Parameter, text: &str| {
            Neighbourhood::from_values(&CaseValues::NONE.with(parameter, text))
        };
        assert_eq!(of(&NEIGHBOURS, "0:1,2:0").edges.iter().collect::<Vec<_>>(), [(0, 1), (2, 0)]);
        assert_eq!(of(&TORUS, "3:2").torus, Torus { dimensions: 3, radius: 2 });
        assert_eq!(Neighbourhood::from_values(CaseValues::NONE), Neighbourhood::DEFAULT);
    }

    #[test]
    fn rows_name_what_their_topology_has() {
        let key = |topology: Topology| {
            let case = Case::of_pair(8).with(topology);
            let values = case.values.with(&NEIGHBOURS, "0:1,1:0").with(&TORUS, "2:1");
            Case { values, ..case }.key("x.y", None)
        };
        assert_eq!(key(Topology::Torus), "x.y/topology=torus,bytes=8,torus=2:1");
        assert_eq!(key(Topology::Graph), "x.y/topology=graph,bytes=8");
        assert!(key(Topology::Edges).starts_with("x.y/topology=edges,bytes=8,neighbours=2:"));
    }

    #[test]
    fn mistakes_are_refused() {
        for (text, why) in
            [("0:0", "itself"), ("0:1,0:1", "twice"), ("0:99999999999", "no ranks"), ("x", "pair")]
        {
            assert!(Edges::parse(text).unwrap_err().to_string().contains(why), "{text}");
        }
        for text in ["", "2", "0:1", "1:0", "5:1", "2:9", "-1:1"] {
            assert!(Torus::parse(text).is_err(), "{text}");
        }
    }
}
