//! Marks of rows: their codes, and what each code says.

use std::{cmp::Ordering, fmt};

use serde::{Deserialize, Serialize};

crate::named! {
    /// How much a mark matters, in ascending order.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[serde(rename_all = "lowercase")]
    pub enum Level {
        /// A fact that explains a row; its figure holds.
        Note = "note",
        /// The figure may be off by more than its interval says.
        #[default]
        Caution = "caution",
        /// No verdict may rest on the figure.
        Invalid = "invalid",
    }
}

/// Number of times that an effect must exceed what is tolerated before no verdict may rest on the row.
const INVALID: f64 = 5.0;

impl Level {
    /// All levels in ascending order.
    pub const ALL: [Level; 3] = [Level::Note, Level::Caution, Level::Invalid];

    /// Returns the level of an effect on a median, if this much is tolerated: an interval contains it, or the user asked for no more.
    pub fn of_effect(effect: f64, tolerated: f64) -> Level {
        if effect > INVALID * tolerated {
            Level::Invalid
        } else if effect > tolerated {
            Level::Caution
        } else {
            Level::Note
        }
    }

    /// Returns the level of this name.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// What is known of a code.
struct CodeEntry {
    name: &'static str,
    level: Level,
    phrase: &'static str,
    advice: &'static str,
}

/// Declares the codes of marks: name in result files, level, phrase, and what to do.
macro_rules! codes {
    ($($Code:ident = $name:ident, $level:ident, $phrase:literal, $advice:literal;)+) => {
        /// What a mark is about.
        ///
        /// A code has a stable name in result files, a usual level, a phrase for sentences, and an advice.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum MarkCode {
            $(#[doc = concat!("`", stringify!($name), "`: ", $phrase)] $Code,)+
            /// A code that this version of ombx does not know. Other versions wrote it.
            Other(String),
        }

        impl MarkCode {
            /// All codes that this version of ombx knows.
            pub const KNOWN: &[MarkCode] = &[$(MarkCode::$Code,)+];

            fn entry(&self) -> Option<CodeEntry> {
                Some(match self {
                    $(MarkCode::$Code => {
                        CodeEntry { name: stringify!($name), level: Level::$level, phrase: $phrase, advice: $advice }
                    })+
                    MarkCode::Other(_) => return None,
                })
            }
        }
    };
}

codes! {
    // Of a run.
    DebugBuild = debug_build, Invalid, "a debug build of ombx", "build with --release";
    Oversubscribed = oversubscribed, Invalid, "more ranks than CPUs", "use fewer ranks or more hosts";
    OverQuota = over_quota, Caution, "more ranks than a CPU quota allows",
        "raise the quota (docker run --cpus, CPU limit of a pod, cpu.max), or use fewer ranks";
    SharedCpu = shared_cpu, Invalid, "ranks on the same CPU", "bind each rank to its own CPU";
    Clock = clock, Caution, "a coarse clock", "raise --batch for short times";
    Unbound = unbound, Note, "ranks that are not bound", "bind ranks (mpiexec -bind-to core)";
    Governor = governor, Note, "CPUs that change their frequency", "set the governor to performance";
    ThreadMultiple = thread_multiple, Note, "locks for threads",
        "start with ombx, which gives that one ranks of its own, or run this one alone";
    Interrupts = interrupts, Note, "interrupts of a network device on the CPU of a rank",
        "bind the rank to the CPUs that are named, or move the interrupts";
    FarDevice = far_device, Note, "ranks far from their network device",
        "bind ranks to the CPUs that are named, unless the run uses a slower device";
    IdleRanks = idle_ranks, Note, "idle ranks", "start fewer ranks";

    // Of a row.
    Preempted = preempted, Note, "preempted ranks", "stop other programs, or bind ranks elsewhere";
    Waited = waited, Note, "ranks that waited for a CPU", "stop other programs, or bind ranks elsewhere";
    QuotaStops = quota_stops, Note, "ranks that a CPU quota stopped",
        "raise the quota (docker run --cpus, CPU limit of a pod, cpu.max), or use fewer ranks";
    Stolen = stolen, Note, "CPU time taken by the hypervisor", "measure on a host with dedicated cores";
    DeviceErrors = device_errors, Note, "errors of devices",
        "look at the cables, ports and logs of these hosts";
    Throttled = throttled, Caution, "CPUs that were too hot", "look at the cooling of these hosts";
    LaunchesDrift = launches_drift, Caution, "launches that drift", "repeat when the machine is steady";
    LaunchStates = launch_states, Caution, "launches in several states of the machine",
        "compare figures of one state only";
    PrecisionMissed = precision_missed, Caution, "precision that was asked for and not reached",
        "give a longer --budget, or quiet the machine";
    NoInterval = no_interval, Invalid, "no interval", "raise --max-time or --iterations";
    Autocorrelated = autocorrelated, Note, "samples that depend on each other",
        "look at the raw samples, raise --max-time";
    Slowed = slowed, Invalid, "rows that became slow", "give each rank a CPU of its own";
    NotConverged = not_converged, Note, "precision not reached", "raise --max-time";
    Bimodal = bimodal, Caution, "samples in two groups", "look at the raw samples and at other launches";
    SeveralLevels = several_levels, Caution, "rounds on several levels",
        "say it beside the figure; a longer queue may end it, with UCX in shared memory UCX_MM_FIFO_SIZE=1024";
    WrongClock = wrong_clock, Invalid, "a clock that runs wrong", "measure again";
    ClockCost = clock_cost, Note, "a costly reading of the clock", "--batch 10 divides it by 10";
    LateStarts = late_starts, Caution, "late starts", "give each rank its own CPU";
    ClocksApart = clocks_apart, Caution, "clocks that differ",
        "keep the network quiet, or use --pace dissemination";
    StartsApart = starts_apart, Caution, "pairs that started apart",
        "give each rank its own CPU, or raise --max-time";
    Saturated = saturated, Caution, "a rate that was not achieved",
        "offer less; raise --window if the achieved rate is below that of the link";
    BaseMoved = base_moved, Caution, "a base that differs before and after the loads",
        "repeat when the machine is steady";
    BelowOneWay = below_one_way, Invalid, "broadcasts faster than one message",
        "do not read this row as the time of a broadcast";
    OneByte = one_byte, Note, "1 byte instead of 0", "compare it with 1-byte rows";
    CrowdedThreads = crowded_threads, Invalid, "more threads than CPUs", "give each thread its own CPU";
    Unverified = unverified, Caution, "data that was not checked",
        "leave out --no-verify; --verify full or a smaller --window";
    Crowded = crowded, Invalid, "more ranks than CPUs", "use more hosts";
    Strangers = strangers, Caution, "foreign connections", "find out who connects";

    // Of `ombx doctor` alone.
    Limits = limits, Invalid, "limits that prevent a start", "raise this limit";
    Launcher = launcher, Invalid, "a launcher that does not start ranks", "read what it says";
    WrongLauncher = wrong_launcher, Invalid, "a launcher of another MPI",
        "use the mpiexec of that MPI, or let ombx run start the ranks";
    PathLauncher = path_launcher, Note, "a launcher of another MPI in PATH",
        "let ombx run start the ranks, or give the full path of this MPI's mpiexec";
    LockedMemory = memlock, Caution, "little memory that may be locked",
        "ulimit -l unlimited, also for remote shells";
    OpenFiles = nofile, Caution, "few open files", "ulimit -n 65536";
    Stack = stack, Caution, "small stacks", "ulimit -s 8192";
    SharedMemory = shared_memory, Caution, "little shared memory",
        "enlarge it (docker run --shm-size=1g) or remove files of old jobs";
    ForeignLoad = foreign_load, Caution, "other load", "wait until they end, or measure elsewhere";
    HugePages = huge_pages, Caution, "compaction for huge pages",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/defrag";
    PtraceScope = ptrace_scope, Caution, "ranks that cannot read each other's memory",
        "sysctl kernel.yama.ptrace_scope=0";
    DifferingHosts = differing_hosts, Caution, "hosts that differ from the others",
        "look at the device, its slot, cable and firmware, or leave the host out";
    DeviceMemory = device_memory, Invalid, "messages from memory of devices that do not arrive",
        "use an MPI that was built for this memory, or --staged";
    NarrowLink = narrow_link, Caution, "accelerators with fewer lanes than they can have",
        "look at its slot and riser";
    SharedDevice = shared_device, Note, "ranks that share an accelerator",
        "start as many ranks as devices, or the ranks under NVIDIA's Multi-Process Service";
    DividedDevice = divided_device, Note, "divided accelerators",
        "figures are not those of the whole device";
    NoEcc = no_ecc, Note, "memory without error correction", "say it beside them";
    NoGpudirectRdma = no_gpudirect_rdma, Caution, "accelerators that adapters do not reach",
        "load the module nvidia_peermem, or use a driver with dma-buf";
}

impl MarkCode {
    /// Returns the name in result files, such as `preempted`.
    pub fn name(&self) -> &str {
        match self {
            MarkCode::Other(name) => name,
            known => known.entry().map_or("", |entry| entry.name),
        }
    }

    /// Returns the level of a mark that no fact of the row raises. That of an unknown code is a note.
    pub fn level(&self) -> Level {
        self.entry().map_or(Level::Note, |entry| entry.level)
    }

    /// Returns what the mark says, as a noun: `ranks that waited for a CPU`. Unknown codes are their own words.
    pub fn phrase(&self) -> String {
        self.entry().map_or_else(|| self.name().replace('_', " "), |entry| entry.phrase.to_owned())
    }

    /// Returns what to do; empty for an unknown code.
    pub fn advice(&self) -> &'static str {
        self.entry().map_or("", |entry| entry.advice)
    }
}

impl From<&str> for MarkCode {
    /// Returns the code of this name.
    fn from(name: &str) -> MarkCode {
        let known = MarkCode::KNOWN.iter().find(|code| code.name() == name);
        known.cloned().unwrap_or_else(|| MarkCode::Other(name.to_owned()))
    }
}

impl From<String> for MarkCode {
    fn from(name: String) -> MarkCode {
        MarkCode::from(name.as_str())
    }
}

impl From<MarkCode> for String {
    fn from(code: MarkCode) -> String {
        code.name().to_owned()
    }
}

impl fmt::Display for MarkCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Codes are in the order of their names.
impl Ord for MarkCode {
    fn cmp(&self, other: &MarkCode) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl PartialOrd for MarkCode {
    fn partial_cmp(&self, other: &MarkCode) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for MarkCode {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        String::schema_name()
    }

    fn inline_schema() -> bool {
        String::inline_schema()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

/// A mark: what could have disturbed a row, and how much that matters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mark {
    /// How much it matters.
    pub level: Level,
    /// Stable code for programs, such as `preempted`.
    pub code: MarkCode,
    /// Text for the column `trust`, such as `preempted 12x`.
    pub short: String,
    /// Text that says what happened, then what to do.
    pub advice: String,
    /// Bound of the effect: by how much the time of the row is too long at most, as a fraction of it; `None` if there is no bound.
    #[serde(default, skip_serializing_if = "is_unbounded")]
    pub effect: Option<f64>,
}

fn is_unbounded(effect: &Option<f64>) -> bool {
    !effect.is_some_and(f64::is_finite)
}

/// Text before the bound of an effect.
const UP_TO: &str = " (up to ";

/// Returns a fraction in percent, with one decimal below 10 %, rounded up: a bound remains one.
fn percent_up(part: f64) -> String {
    // The tolerance keeps a digit that rounding moved by a last bit.
    let above = |steps: f64| (part * steps - 1e-9).ceil() as u64;
    let tenths = above(1e3);
    if tenths < 100 { format!("{}.{}%", tenths / 10, tenths % 10) } else { format!("{}%", above(1e2)) }
}

impl Mark {
    /// Returns a mark with the level and the advice of its code, from its text in the column and what happened.
    pub fn new(code: MarkCode, short: impl Into<String>, cause: impl fmt::Display) -> Mark {
        let advice = format!("{cause}: {}", code.advice());
        Mark::with_advice(code, short, advice)
    }

    /// Returns a mark with the level of its code. The advice says what happened, then what to do.
    pub fn with_advice(
        code: impl Into<MarkCode>,
        short: impl Into<String>,
        advice: impl Into<String>,
    ) -> Mark {
        let code = code.into();
        Mark { level: code.level(), code, short: short.into(), advice: advice.into(), effect: None }
    }

    /// Returns the mark with another bound of its effect, also in its short text: `waited 5% (up to 0.3%)`.
    #[must_use]
    pub fn bounded(self, effect: Option<f64>) -> Mark {
        let what = self.short.split(UP_TO).next().unwrap_or_default();
        let short = match effect {
            Some(effect) => format!("{what}{UP_TO}{})", percent_up(effect)),
            None => what.to_owned(),
        };
        Mark { short, effect, ..self }
    }

    /// Returns the mark with another level.
    #[must_use]
    pub fn at(self, level: Level) -> Mark {
        Mark { level, ..self }
    }
}

#[cfg(test)]
mod tests {
    use crate::result::mark::*;

    const PAGE: &str = include_str!("../../../../docs/reference/marks.md");

    /// Returns the rows of the tables of marks: code, level, and what to do.
    fn documented() -> Vec<[String; 3]> {
        let mut rows = Vec::new();
        for line in PAGE.lines().filter(|line| line.starts_with("| `")) {
            let plain = line.replace('`', "");
            let cells: Vec<&str> = plain.trim_matches('|').split(" | ").map(str::trim).collect();
            let [code, _, level, _, advice] = cells.try_into().unwrap();
            rows.push([code, level, advice].map(str::to_owned));
        }
        rows
    }

    #[test]
    fn the_page_has_level_and_advice_of_each_mark() {
        let rows = documented();
        assert!(rows.len() > 20, "{rows:?}");
        for [name, level, advice] in &rows {
            let code = MarkCode::from(name.as_str());
            let by_effect = level == "by D" && code.level() == Level::Note;
            assert!(by_effect || level.starts_with(code.level().name()), "{name}: {level}");
            assert_eq!(advice, code.advice(), "{name}");
        }
    }

    #[test]
    fn every_mark_is_on_the_page_and_has_words() {
        for code in MarkCode::KNOWN {
            assert!(PAGE.contains(&format!("`{code}`")), "{code}");
            assert!(!code.phrase().contains('_') && code.phrase() != code.name(), "{code}");
        }
    }

    #[test]
    fn a_bound_is_part_of_the_short_text_and_rounded_up() {
        let mark = Mark::new(MarkCode::Waited, "waited 5%", "they waited");
        let of = |effect: f64| mark.clone().bounded(Some(0.5)).bounded(Some(effect)).short;
        assert_eq!(
            [0.0, 0.0001, 0.083, 0.0999, 0.101].map(of),
            ["0.0%", "0.1%", "8.3%", "10%", "11%"].map(|bound| format!("waited 5% (up to {bound})"))
        );
        assert_eq!(mark.clone().bounded(Some(0.5)).bounded(None), mark);
    }

    #[test]
    fn a_code_is_known_by_its_name() {
        for code in MarkCode::KNOWN {
            assert_eq!(MarkCode::from(code.name()), *code);
        }
        let other = MarkCode::from("of_another_program");
        assert_eq!((other.name(), other.phrase()), ("of_another_program", "of another program".into()));
    }
}
