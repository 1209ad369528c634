//! The entry of a benchmark in the registry: name, ranks, options, and the function that runs it.

use std::{collections::HashSet, fmt, panic::Location, ptr};

use ombx_record::{
    error::{Error, Result},
    result::Metric,
    unit::parse_sizes,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{
    benchmark::{
        ALIGNMENT, Case, Depth, Initialization, Layout, MEMORY_LIMIT, Method, PairCount, Parameter,
        ParameterList, ParameterValue, RankMatrix, Threading, Threads, parameter::registered_name,
    },
    measure::{plan::Plan, session::Session},
};

/// Letters in formulas.
pub const LETTERS: &str =
    "S: bytes of a message; W: operations in flight; P: pairs of ranks; t: time of an iteration";

/// Entry of one benchmark.
///
/// ```
/// # use ombx_core::{benchmark::{Benchmark, Case, Context, Kernel, Method, Metric, Work}, error::Result};
/// # struct Nothing;
/// # impl Kernel for Nothing {
/// #     const METRIC: Metric = Metric::Latency;
/// #     const METHOD: Method = Method { timed: "", untimed: "", like: "" };
/// #     fn work(_: &Case) -> Work { Work { bytes: 0, ops: 1, legs: 1 } }
/// #     fn open(_: &Context<'_>, _: &Case) -> Result<Self> { Ok(Nothing) }
/// #     fn active(&mut self) -> Result<()> { Ok(()) }
/// # }
/// ombx_core::inventory::submit!(
///     Benchmark::new::<Nothing>("acme.nothing", "what an empty iteration costs").sizes("0")
/// );
/// # fn main() {}
/// ```
pub struct Benchmark {
    /// Name on the command line: `family.name`.
    pub name: &'static str,
    /// Description in one sentence, lower case.
    pub about: &'static str,
    /// What is timed, and how the headline follows from it.
    pub described: Description,
    /// Ranks that the benchmark needs.
    pub ranks: RankNeeds,
    /// Sizes of messages.
    pub messages: MessageSizes,
    /// Parameters of its own.
    pub own: OwnParameters,
    /// Whether the benchmark is a broadcast. A broadcast cannot take less than an empty message one way; rows that do get a mark.
    pub one_way: bool,
    /// Returns an error with the reason if this build cannot run the benchmark.
    pub available: fn() -> std::result::Result<(), String>,
    /// Source line that registers the benchmark.
    pub at: &'static Location<'static>,
    /// Function that runs every case of a session.
    pub run: fn(&mut Session<'_>) -> Result<()>,
}

/// What a benchmark times, for people.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// Figure that is shown first.
    pub metric: Metric,
    /// Description of the method.
    pub method: Method,
    /// Functions of MPI or of the operating system in one iteration, in their order; empty if the entry does not name them.
    pub calls: &'static [&'static str],
    /// How the headline follows from the time t of an iteration, in the letters of [`LETTERS`]; empty if the entry does not say it.
    pub formula: &'static str,
    /// OSU programs that the benchmark replaces: one with default options, and one with other values of some parameters.
    pub osu: [Option<Osu>; 2],
}

/// Ranks that a benchmark needs.
#[derive(Debug, Clone, Copy)]
pub struct RankNeeds {
    /// Roles of the ranks.
    pub layout: Layout,
    /// Transport between the ranks.
    pub medium: Medium,
    /// Thread support that the benchmark needs from the library.
    pub threading: Threading,
    /// Whether the operation can be repeated in a launch.
    pub repeats: bool,
}

/// Sizes of the messages of a benchmark.
#[derive(Debug, Clone, Copy)]
pub struct MessageSizes {
    /// Default sizes, written as for `--sizes`.
    pub sizes: &'static str,
    /// Whether the benchmark has messages, so that the user can choose sizes.
    pub sized: bool,
    /// Parameter that is a list of sizes and replaces `--sizes`.
    pub sized_by: Option<&'static Parameter>,
    /// Returns the bytes of an element of a message. Default sizes that are no multiple of it are left out.
    pub element: fn(&Case, &Plan) -> u64,
    /// Whether a message is one element. The size is then that of the element, unless the user chooses sizes.
    pub one_element: bool,
}

/// Parameters of a benchmark that do not follow from its ranks.
#[derive(Debug, Clone, Copy)]
pub struct OwnParameters {
    /// Parameters that the entry lists.
    pub listed: ParameterList,
    /// Default values, where this benchmark differs from the defaults of its parameters.
    pub usual: Preset,
    /// When the benchmark keeps `depth` operations in flight.
    pub streams: Streams,
    /// Returns an error with the reason if a combination of values does not exist. Such combinations are not measured.
    pub combines: fn(&Case, &Plan) -> std::result::Result<(), String>,
}

/// When a benchmark keeps `depth` operations in flight.
#[derive(Debug, Clone, Copy)]
pub enum Streams {
    /// Never.
    Never,
    /// In every case.
    Always,
    /// Under one value of a parameter.
    Only(&'static Parameter, &'static str),
}

impl Streams {
    /// Returns whether some cases do.
    pub const fn exists(self) -> bool {
        !matches!(self, Streams::Never)
    }
}

/// Transport between the ranks of a benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Medium {
    /// MPI.
    Mpi,
    /// Sockets, without MPI.
    Sockets,
    /// None: one rank starts the processes of the benchmark itself.
    Own,
}

inventory::collect!(Benchmark);

/// A selected benchmark. An OSU name selects values too.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// Selected benchmark.
    pub bench: &'static Benchmark,
    /// Values that the name selects.
    pub preset: Preset,
}

/// A choice as other processes of the same build get it.
#[derive(Serialize, Deserialize)]
struct NamedChoice {
    bench: String,
    preset: Vec<(String, String)>,
}

impl Serialize for Choice {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        let preset = self.preset.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        NamedChoice { bench: self.bench.name.to_owned(), preset: preset.collect() }.serialize(to)
    }
}

/// The benchmark and the parameters must be registered.
impl<'d> Deserialize<'d> for Choice {
    fn deserialize<D: Deserializer<'d>>(from: D) -> std::result::Result<Choice, D::Error> {
        let NamedChoice { bench: name, preset } = NamedChoice::deserialize(from)?;
        let found = inventory::iter::<Benchmark>.into_iter().find(|bench| bench.name == name);
        let bench = found.ok_or_else(|| de::Error::custom(format!("this build has no benchmark {name}")))?;
        if preset.is_empty() {
            return Ok(Choice { bench, preset: &[] });
        }
        let value = |(name, value): (String, String)| {
            let value: &'static str = value.leak();
            registered_name(&name).map(|name| (name, value)).map_err(de::Error::custom)
        };
        let preset = preset.into_iter().map(value).collect::<std::result::Result<Vec<_>, D::Error>>()?;
        // A process reads the choices of one job.
        Ok(Choice { bench, preset: preset.leak() })
    }
}

impl Benchmark {
    /// Returns an entry with its own `run` function instead of one kernel.
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
            described: Description { metric, method, calls: &[], formula: "", osu: [None; 2] },
            ranks: RankNeeds {
                layout: Layout::Pair,
                medium: Medium::Mpi,
                threading: Threading::Single,
                repeats: true,
            },
            messages: MessageSizes {
                sizes: "1..4M",
                sized: true,
                sized_by: None,
                element: |_, _| 1,
                one_element: false,
            },
            own: OwnParameters {
                listed: ParameterList::EMPTY,
                usual: &[],
                streams: Streams::Never,
                combines: |_, _| Ok(()),
            },
            one_way: false,
            available: || Ok(()),
            at: Location::caller(),
            run,
        }
    }

    settings! {
        /// Names the functions of one iteration and the formula of the headline.
        iterates(calls: &'static [&'static str], formula: &'static str)
            sets described.calls = calls, described.formula = formula;

        /// Sets the default sizes.
        sizes(sizes: &'static str) sets messages.sizes = sizes;

        /// Declares that the benchmark has no messages. It then has one row and ignores `--sizes`.
        without_sizes() sets messages.sizes = "0", messages.sized = false;

        /// Declares that the operation happens once in a launch. It can then neither be a load nor be measured under one.
        once() sets ranks.repeats = false;

        /// Declares that the benchmark keeps `depth` operations in flight.
        streaming() sets own.streams = Streams::Always;

        /// Declares that the benchmark keeps `depth` operations in flight under one value of a parameter.
        streaming_only(parameter: &'static Parameter, value: &'static str)
            sets own.streams = Streams::Only(parameter, value);

        /// Sets the roles of the ranks.
        layout(layout: Layout) sets ranks.layout = layout;

        /// Sets the thread support that the benchmark needs.
        needing(threading: Threading) sets ranks.threading = threading;

        /// Declares that a parameter is a list of sizes and replaces `--sizes`.
        sized_by(parameter: &'static Parameter) sets messages.sized_by = Some(parameter);

        /// Declares that the benchmark needs one rank, which starts other processes.
        by_itself() sets ranks.medium = Medium::Own, ranks.layout = Layout::Alone;

        /// Declares that sockets connect the ranks, without MPI.
        over_sockets() sets ranks.medium = Medium::Sockets;

        /// Sets default values of parameters for this benchmark.
        usually(values: Preset) sets own.usual = values;

        /// Sets the test of combinations of values, and the bytes of an element of a message.
        made_of(element: fn(&Case, &Plan) -> u64, combines: fn(&Case, &Plan) -> std::result::Result<(), String>)
            sets messages.element = element, own.combines = combines;

        /// Declares that a message is one element.
        of_one_element() sets messages.one_element = true;

        /// Declares that it cannot take less than an empty message one way; paced runs measure that time too.
        above_one_way() sets one_way = true;

        /// Sets the test of whether this build can run it. The test returns the reason if not.
        available(test: fn() -> std::result::Result<(), String>) sets available = test;
    }

    /// Adds parameters.
    #[must_use]
    pub const fn with(mut self, parameters: &[&'static Parameter]) -> Benchmark {
        self.own.listed = self.own.listed.with(parameters);
        self
    }

    /// Returns every parameter of the benchmark, in the order in which keys of rows name them. The number of operations in flight is
    /// the last, because it may depend on others.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        let over_mpi = [Initialization::PARAMETER, Threading::PARAMETER, RankMatrix::PARAMETER, &ALIGNMENT];
        let over_mpi = over_mpi.into_iter().filter(|_| self.ranks.medium == Medium::Mpi);
        let pairs = self.ranks.layout.has_pairs().then_some(PairCount::PARAMETER);
        let depth = self.own.streams.exists().then_some(Depth::PARAMETER);
        self.own.listed.iter().chain(over_mpi).chain([&MEMORY_LIMIT]).chain(pairs).chain(depth)
    }

    /// Returns the declaration of a parameter that the benchmark has, with its own default; `None` if it does not have it.
    pub fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.parameters().find(|parameter| parameter.name == name)
    }

    /// Returns whether the benchmark has a parameter.
    pub fn has(&self, parameter: &Parameter) -> bool {
        self.parameter(parameter.name).is_some()
    }

    /// Returns the default of one of its parameters.
    pub fn default_of(&self, parameter: &Parameter) -> Option<&'static str> {
        let usual = self.own.usual.iter().find(|(name, _)| *name == parameter.name);
        usual.map(|(_, value)| *value).or(parameter.default)
    }

    /// Sets the OSU program that the benchmark replaces, and the title that the program prints.
    #[must_use]
    pub const fn osu(mut self, name: &'static str, title: &'static str) -> Benchmark {
        self.described.osu[0] = Some(Osu { name, title, axes: &[] });
        self
    }

    /// Sets another OSU program that the benchmark replaces, with the values that this program uses.
    #[must_use]
    pub const fn osu_with(mut self, name: &'static str, title: &'static str, axes: Preset) -> Benchmark {
        self.described.osu[1] = Some(Osu { name, title, axes });
        self
    }

    /// Returns whether a case keeps `depth` operations in flight. Rows of other cases do not name the depth.
    pub fn streams_in(&self, case: &Case) -> bool {
        match self.own.streams {
            Streams::Never => false,
            Streams::Always => true,
            Streams::Only(parameter, value) => case.text(parameter) == Some(value),
        }
    }

    /// Returns the threads of each rank under a plan; `None` for single-threaded benchmarks.
    pub fn threads_of(&self, plan: &Plan) -> Option<Threads> {
        let parameter = self.parameter(Threads::PARAMETER.name)?;
        let text = plan.chosen.text(parameter).or(parameter.default)?;
        Threads::parse(text).ok()
    }

    /// Returns the OSU programs that the benchmark replaces.
    pub fn osu_names(&self) -> impl Iterator<Item = &Osu> {
        self.described.osu.iter().flatten()
    }
}

impl Benchmark {
    /// Checks the rules of an entry: a name of two or more parts, a description, valid sizes, and valid default values.
    pub(crate) fn check(&self) -> Result<()> {
        let bad = |why: String| Err(Error::usage(format!("benchmark {self:?}: {why}")));
        let part =
            |p: &str| !p.is_empty() && p.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        if !self.name.contains('.') || !self.name.split('.').all(part) {
            return bad("its name is not `family.name` in lower case".into());
        }
        if self.about.is_empty() {
            return bad("it has no description".into());
        }
        if let Err(e) = parse_sizes(self.messages.sizes) {
            return bad(format!("its sizes are {:?}: {e}", self.messages.sizes));
        }
        for (name, value) in self.osu_names().flat_map(|osu| osu.axes).chain(self.own.usual) {
            if self.parameter(name).is_none_or(|parameter| parameter.read(value).is_err()) {
                return bad(format!("it has no {name}={value}, which is a default or an OSU choice"));
            }
        }
        if let Streams::Only(parameter, value) = self.own.streams
            && !parameter.names().contains(&value)
        {
            return bad(format!("it streams only with {}={value}, which does not exist", parameter.name));
        }
        for parameter in self.parameters() {
            let name = parameter.name;
            if self.parameters().filter(|other| other.name == name).count() > 1 {
                return bad(format!("it lists the parameter {name} twice"));
            }
            if let Some(Err(e)) = parameter.default.map(|default| parameter.read(default)) {
                return bad(format!("the default of the parameter {name}: {e}"));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}:{})", self.name, self.at.file(), self.at.line())
    }
}

/// OSU program that a benchmark replaces; used by `ombx osu` and the osu format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Osu {
    /// Name of the program, such as `osu_put_bw`.
    pub name: &'static str,
    /// Title that the program prints, without version: `OSU MPI_Put Bandwidth Test`.
    pub title: &'static str,
    /// Values of the benchmark's parameters, if the user selects none.
    pub axes: Preset,
}

/// Parameters and values that a name selects.
pub type Preset = &'static [(&'static str, &'static str)];

/// Benchmark entries, sorted by unique name.
#[derive(Debug)]
pub struct Registry {
    entries: Vec<&'static Benchmark>,
    /// Every parameter of the entries once, sorted by name.
    parameters: Vec<&'static Parameter>,
}

impl Registry {
    /// Returns the entries that are linked into this binary.
    ///
    /// # Errors
    /// As [`Registry::new`].
    pub fn load() -> Result<Registry> {
        Registry::new(inventory::iter::<Benchmark>.into_iter())
    }

    /// Returns a registry of the given entries.
    ///
    /// # Errors
    /// Usage error for a duplicate name, two different parameters of one name, or in a debug build an invalid entry. It names the source
    /// lines of entries. A release build checks the entries that are measured.
    pub fn new(entries: impl Iterator<Item = &'static Benchmark>) -> Result<Registry> {
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|b| (b.name, b.at.file(), b.at.line()));
        if cfg!(debug_assertions) {
            entries.iter().try_for_each(|b| b.check())?;
        }
        // Most entries share their parameters.
        let mut seen = HashSet::new();
        let all = entries.iter().flat_map(|b| b.parameters());
        let mut parameters: Vec<&'static Parameter> =
            all.filter(|parameter| seen.insert(ptr::from_ref(*parameter))).collect();
        parameters.sort_by_key(|parameter| parameter.name);
        let differ =
            |pair: &&[&Parameter]| pair[0].name == pair[1].name && pair[0].names() != pair[1].names();
        if let Some([parameter, _]) = parameters.windows(2).find(differ) {
            return Err(Error::usage(format!(
                "two parameters with different values have the name {}: rename one",
                parameter.name
            )));
        }
        parameters.dedup_by_key(|parameter| parameter.name);
        match entries.windows(2).find(|pair| pair[0].name == pair[1].name) {
            None => Ok(Registry { entries, parameters }),
            Some(pair) => Err(Error::usage(format!(
                "two benchmarks have the same name: {:?} and {:?}; rename one",
                pair[0], pair[1]
            ))),
        }
    }

    /// Returns all entries, sorted by name.
    pub fn all(&self) -> &[&'static Benchmark] {
        &self.entries
    }

    /// Returns the benchmark of this exact name.
    ///
    /// # Errors
    /// A usage error if no crate that is linked registers it.
    pub fn get(&self, name: &str) -> Result<Choice> {
        let bench = self.entries.iter().find(|bench| bench.name == name);
        let bench = bench.ok_or_else(|| {
            Error::usage(format!(
                "no linked crate registers the benchmark {name}; link the crate of its family"
            ))
        })?;
        Ok(Choice { bench, preset: &[] })
    }

    /// Returns every parameter of the entries once, sorted by name.
    pub fn parameters(&self) -> &[&'static Parameter] {
        &self.parameters
    }
}

#[cfg(test)]
mod registry_tests;
