//! One benchmark as a line of data: what it is called, which ranks it needs, what users can choose, and what runs it.

use std::{fmt, panic::Location};

use crate::{
    benchmark::{
        axis::Axis,
        layout::Layout,
        preset::{Osu, Preset},
        setting::Setting,
        threads::{Threading, Threads},
        work::{Method, Metric},
    },
    error::{Error, Result},
    measure::{
        plan::{Plan, parse_sizes},
        session::Session,
    },
};

/// One benchmark: a line of data.
///
/// ```
/// # use ombx_core::{benchmark::{case::Case, context::Context, entry::Benchmark, kernel::Kernel, work::*}, error::Result};
/// # struct Nothing;
/// # impl Kernel for Nothing {
/// #     const METRIC: Metric = Metric::Latency;
/// #     const METHOD: Method = Method { timed: "", untimed: "", like: "" };
/// #     fn work(_: &Case) -> Work { Work { bytes: 0, ops: 1, legs: 1 } }
/// #     fn open(_: &Context<'_>, _: &Case) -> Result<Self> { Ok(Nothing) }
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
    /// Whether it has messages, whose sizes the user can choose.
    pub sized: bool,
    /// Whether it keeps `depth` operations in flight.
    pub streams: bool,
    /// Whether its operation has a root.
    pub rooted: bool,
    /// What it asks of the library for threads.
    pub threading: Threading,
    /// What connects its ranks.
    pub medium: Medium,
    /// What the user can choose.
    pub axes: &'static [&'static Axis],
    /// What the user can set freely.
    pub settings: &'static [&'static Setting],
    /// The one of its settings that is a list of sizes and stands for `--sizes`.
    pub sized_by: Option<&'static Setting>,
    /// Values that it takes on its axes by default, where those differ from the axes' own.
    pub usual: Preset,
    /// Whether it is a broadcast, which takes no less than an empty message one way; rows that do say so.
    pub one_way: bool,
    /// Its OSU counterparts: the program itself, and one that is this benchmark with something chosen.
    pub osu: [Option<Osu>; 2],
    /// Why this build cannot run it, if so.
    pub available: fn() -> std::result::Result<(), String>,
    /// Where it is registered.
    pub at: &'static Location<'static>,
    /// Runs every case of a session.
    pub run: fn(&mut Session<'_>) -> Result<()>,
}

/// What connects the ranks of a benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// MPI.
    Mpi,
    /// Sockets, without MPI.
    Sockets,
    /// None: the benchmark brings its own processes, and one process of ombx starts them.
    Own,
}

inventory::collect!(Benchmark);

/// A benchmark that was asked for, by its own name or by another that chooses something.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// The benchmark.
    pub bench: &'static Benchmark,
    /// What its name chose.
    pub preset: Preset,
}

impl Benchmark {
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
            sized: true,
            streams: false,
            rooted: false,
            threading: Threading::Single,
            medium: Medium::Mpi,
            axes: &[],
            settings: &[],
            sized_by: None,
            usual: &[],
            one_way: false,
            osu: [None; 2],
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

    /// It has no messages: one row, whatever sizes the user chooses.
    #[must_use]
    pub const fn without_sizes(mut self) -> Benchmark {
        (self.sizes, self.sized) = ("0", false);
        self
    }

    /// Its operation has a root.
    #[must_use]
    pub const fn with_root(mut self) -> Benchmark {
        self.rooted = true;
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

    /// What the user can set freely.
    #[must_use]
    pub const fn settings(mut self, settings: &'static [&'static Setting]) -> Benchmark {
        self.settings = settings;
        self
    }

    /// A setting that is a list of sizes and stands for `--sizes`.
    #[must_use]
    pub const fn sized_by(mut self, setting: &'static Setting) -> Benchmark {
        self.sized_by = Some(setting);
        self
    }

    /// It brings its own processes and needs one rank, which starts them.
    #[must_use]
    pub const fn by_itself(mut self) -> Benchmark {
        self.medium = Medium::Own;
        self.layout = Layout::Alone;
        self
    }

    /// Its ranks are connected by sockets and know no MPI.
    #[must_use]
    pub const fn over_sockets(mut self) -> Benchmark {
        self.medium = Medium::Sockets;
        self
    }

    /// Values that it takes on its axes by default.
    #[must_use]
    pub const fn usually(mut self, values: Preset) -> Benchmark {
        self.usual = values;
        self
    }

    /// It takes no less than an empty message one way, which is measured too where it is paced.
    #[must_use]
    pub const fn above_one_way(mut self) -> Benchmark {
        self.one_way = true;
        self
    }

    /// The default of one of its axes.
    pub fn default_of(&self, axis: &Axis) -> &'static str {
        self.usual.iter().find(|(name, _)| *name == axis.name).map_or(axis.default, |(_, value)| value)
    }

    /// The OSU program it succeeds, and that program's title.
    #[must_use]
    pub const fn osu(mut self, name: &'static str, title: &'static str) -> Benchmark {
        self.osu[0] = Some(Osu { name, title, axes: &[] });
        self
    }

    /// Another OSU program, which is this benchmark with something chosen on its axes.
    #[must_use]
    pub const fn osu_with(mut self, name: &'static str, title: &'static str, axes: Preset) -> Benchmark {
        self.osu[1] = Some(Osu { name, title, axes });
        self
    }

    /// Threads of each rank under a plan, where it runs several.
    pub fn threads_of(&self, plan: &Plan) -> Option<Threads> {
        (self.threading == Threading::Multiple).then(|| plan.threads.unwrap_or_default())
    }

    /// Its OSU names.
    pub fn osu_names(&self) -> impl Iterator<Item = &Osu> {
        self.osu.iter().flatten()
    }

    /// A test of whether this build can run it; the reason if not.
    #[must_use]
    pub const fn available(mut self, test: fn() -> std::result::Result<(), String>) -> Benchmark {
        self.available = test;
        self
    }
}

impl Benchmark {
    /// The rules of an entry: a name of two or more parts, a sentence, sizes that can be read, axes with their default.
    pub(super) fn check(&self) -> Result<()> {
        let bad = |why: String| Err(Error::usage(format!("benchmark {self:?}: {why}")));
        let part =
            |p: &str| !p.is_empty() && p.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        if !self.name.contains('.') || !self.name.split('.').all(part) {
            return bad("its name is not family.name in lower case".into());
        }
        if self.about.is_empty() {
            return bad("no sentence says what it is".into());
        }
        if let Err(e) = parse_sizes(self.sizes) {
            return bad(format!("its sizes are {:?}: {e}", self.sizes));
        }
        for (name, value) in self.osu_names().flat_map(|osu| osu.axes).chain(self.usual) {
            if !self.axes.iter().any(|axis| axis.name == *name && axis.values.contains(value)) {
                return bad(format!("{name}={value} is chosen, which it does not have"));
            }
        }
        match self.axes.iter().find(|axis| !axis.values.contains(&axis.default)) {
            Some(Axis { name, default, .. }) => {
                bad(format!("the default {default:?} of the axis {name} is none of its values"))
            }
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}:{})", self.name, self.at.file(), self.at.line())
    }
}
