//! The benchmarks of this binary: const entries that register themselves.

use std::{fmt, panic::Location};

use crate::{
    case::Axis,
    engine::{self, Session},
    error::{Error, Result},
    kernel::{Kernel, Method, Metric},
    layout::Layout,
};

/// One benchmark: a line of data.
///
/// ```
/// # use ombx_core::{kernel::*, case::Case, error::Result, registry::Benchmark};
/// # struct Nothing;
/// # impl Kernel for Nothing {
/// #     const METRIC: Metric = Metric::Latency;
/// #     const METHOD: Method = Method { timed: "", untimed: "", like: "" };
/// #     fn work(_: &Case) -> Work { Work { bytes: 0, ops: 1, legs: 1 } }
/// #     fn open(_: &Cx<'_>, _: &Case) -> Result<Self> { Ok(Nothing) }
/// #     fn active(&mut self) -> Result<()> { Ok(()) }
/// # }
/// ombx_core::inventory::submit! { Benchmark::of::<Nothing>("acme.nothing", "what an empty iteration costs").sizes("0") }
/// # fn main() {}
/// ```
pub struct Benchmark {
    /// `family.name`, as on the command line.
    pub name: &'static str,
    /// One sentence, lower case.
    pub about: &'static str,
    /// What the headline is.
    pub metric: Metric,
    /// What is timed and what is not.
    pub method: Method,
    /// Which ranks do what, and how their times combine.
    pub layout: Layout,
    /// Sizes measured by default, in the form of `--sizes`.
    pub sizes: &'static str,
    /// Whether it keeps `depth` operations in flight.
    pub streams: bool,
    /// What the user can choose.
    pub axes: &'static [&'static Axis],
    /// Its OSU counterpart.
    pub osu: Option<Osu>,
    /// Why this build cannot run it, if so.
    pub available: fn() -> std::result::Result<(), String>,
    /// Where it is registered.
    pub at: &'static Location<'static>,
    /// Runs every case of a session.
    pub run: fn(&mut Session<'_>) -> Result<()>,
}

/// The OSU program that a benchmark succeeds, for the drop-in and the osu format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Osu {
    /// Program: `osu_put_bw`.
    pub name: &'static str,
    /// Its header without number: `OSU MPI_Put Bandwidth Test`.
    pub title: &'static str,
}

inventory::collect!(Benchmark);

impl Benchmark {
    /// An entry that runs a kernel; one pair of ranks, 1 B to 4 MiB, unless said otherwise.
    #[track_caller]
    pub const fn of<K: Kernel>(name: &'static str, about: &'static str) -> Benchmark {
        Benchmark::custom(name, about, K::METRIC, K::METHOD, engine::run::<K>)
    }

    /// An entry that runs what is no single kernel.
    #[track_caller]
    pub const fn custom(
        name: &'static str,
        about: &'static str,
        metric: Metric,
        method: Method,
        run: fn(&mut Session<'_>) -> Result<()>,
    ) -> Benchmark {
        Benchmark {
            name,
            about,
            metric,
            method,
            layout: Layout::Pair,
            sizes: "1..4M",
            streams: false,
            axes: &[],
            osu: None,
            available: || Ok(()),
            at: Location::caller(),
            run,
        }
    }

    /// Sizes measured by default.
    #[must_use]
    pub const fn sizes(mut self, sizes: &'static str) -> Benchmark {
        self.sizes = sizes;
        self
    }

    /// It keeps `depth` operations in flight.
    #[must_use]
    pub const fn streaming(mut self) -> Benchmark {
        self.streams = true;
        self
    }

    /// Which ranks do what.
    #[must_use]
    pub const fn layout(mut self, layout: Layout) -> Benchmark {
        self.layout = layout;
        self
    }

    /// What the user can choose.
    #[must_use]
    pub const fn axes(mut self, axes: &'static [&'static Axis]) -> Benchmark {
        self.axes = axes;
        self
    }

    /// The OSU program it succeeds, and that program's title.
    #[must_use]
    pub const fn osu(mut self, name: &'static str, title: &'static str) -> Benchmark {
        self.osu = Some(Osu { name, title });
        self
    }

    /// A test of whether this build can run it; the reason if not.
    #[must_use]
    pub const fn available(mut self, test: fn() -> std::result::Result<(), String>) -> Benchmark {
        self.available = test;
        self
    }
}

impl fmt::Debug for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}:{})", self.name, self.at.file(), self.at.line())
    }
}

/// All entries, sorted by name, no name twice.
#[derive(Debug)]
pub struct Registry {
    entries: Vec<&'static Benchmark>,
}

impl Registry {
    /// Collects what is linked into this binary.
    pub fn load() -> Result<Registry> {
        Registry::of(inventory::iter::<Benchmark>.into_iter())
    }

    /// A registry of given entries; a name that stands twice is an error that names both places.
    pub fn of(entries: impl Iterator<Item = &'static Benchmark>) -> Result<Registry> {
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|b| (b.name, b.at.file(), b.at.line()));
        match entries.windows(2).find(|pair| pair[0].name == pair[1].name) {
            None => Ok(Registry { entries }),
            Some(pair) => {
                Err(Error::usage(format!("two benchmarks have one name: {:?} and {:?}", pair[0], pair[1])))
            }
        }
    }

    /// All of them, by name.
    pub fn all(&self) -> &[&'static Benchmark] {
        &self.entries
    }

    /// Every axis that a benchmark here has, once, by name.
    pub fn axes(&self) -> Vec<&'static Axis> {
        let mut axes: Vec<&'static Axis> = self.entries.iter().flat_map(|b| b.axes.iter().copied()).collect();
        axes.sort_by_key(|a| a.name);
        axes.dedup_by_key(|a| a.name);
        axes
    }

    /// Those that a pattern names: a name, a glob (`rma.*`) or an OSU name; none is an error with the nearest name.
    pub fn find(&self, pattern: &str) -> Result<Vec<&'static Benchmark>> {
        let glob = glob::Pattern::new(pattern)
            .map_err(|e| Error::usage(format!("pattern {pattern:?} is not a name or a glob: {}", e.msg)))?;
        let named = |b: &&&Benchmark| glob.matches(b.name) || b.osu.is_some_and(|o| glob.matches(o.name));
        let found: Vec<_> = self.entries.iter().filter(named).copied().collect();
        if found.is_empty() {
            let near =
                self.nearest(pattern).map(|name| format!("; did you mean {name}?")).unwrap_or_default();
            return Err(Error::usage(format!(
                "no benchmark is called {pattern:?}{near} (ombx list shows all)"
            )));
        }
        Ok(found)
    }

    fn nearest(&self, wrong: &str) -> Option<&'static str> {
        let names = self.entries.iter().flat_map(|b| [Some(b.name), b.osu.map(|o| o.name)]).flatten();
        let scored = names.map(|name| (strsim::damerau_levenshtein(name, wrong), name));
        scored
            .min()
            .filter(|(distance, _)| *distance <= (wrong.chars().count() / 2).max(2))
            .map(|(_, name)| name)
    }
}
