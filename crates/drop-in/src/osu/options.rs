//! The plan and the columns that OMB's options give for a program. Options without an equivalent are rejected with a reason.

use ombx_core::{
    benchmark::{
        Chosen, Depth, ElementType, Initialization, PairCount, Parameter, ParameterValue, Root, Threading,
        Threads,
        memory::{Api, BufferMemory, Place},
    },
    measure::plan::Plan,
    two_sided::pattern::Buffers,
};
use ombx_host::performance::{INSTRUCTIONS, kernel_meter};
use ombx_record::{
    error::{Error, Result},
    order::each_once,
    unit::{Bytes, counted, parse_sizes},
};

use crate::osu::{
    OsuAccelerator, OsuColumns, described,
    programs::{Program, ProgramKind, STARTUP},
};

/// Default of `-W`.
const WINDOW: u32 = 64;
/// Memory limit of OMB without `-M`, and the least one.
const MEMORY_LIMIT: Bytes = Bytes(512 << 20);
const LEAST_MEMORY_LIMIT: Bytes = Bytes(1 << 20);
/// Window sizes of `-V`.
const WINDOWS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Options of the programs of OMB. An option that is not given is `None`, or an empty list.
#[derive(Debug)]
pub struct OsuOptions {
    /// Words for the memory of the buffers.
    pub buffers: Vec<String>,
    /// `-m`
    pub message_size: Option<MessageSize>,
    /// `-i`
    pub iterations: Option<u64>,
    /// `-x`
    pub warmup: Option<u64>,
    /// `-W`
    pub window_size: Option<u32>,
    /// `-t`
    pub num_test_calls: Option<String>,
    /// `-b`
    pub buffer_num: Option<Buffers>,
    /// `-c`, with the directory after it or an empty text.
    pub validation: Option<String>,
    /// Whether `-u` is given.
    pub validation_warmup: bool,
    /// `-z`
    pub tail_lat: Option<Vec<u8>>,
    /// `-f`
    pub full: bool,
    /// `-T`
    pub datatype: Option<String>,
    /// `-s`
    pub sync_option: Option<String>,
    /// `-w`
    pub win_options: Option<String>,
    /// `-no-hints`
    pub no_hints: bool,
    /// `-M`
    pub mem_limit: Option<Bytes>,
    /// `-k`
    pub root_rank: Option<Root>,
    /// `-l`
    pub in_place: bool,
    /// `-D`
    pub ddt: Option<String>,
    /// `-N`
    pub nhbr: Option<String>,
    /// `-V`
    pub vary_window: bool,
    /// `-R`
    pub print_rate: Option<bool>,
    /// `-p`
    pub num_pairs: Option<u32>,
    /// Whether `-G` is given.
    pub has_graph: bool,
    /// `-I`
    pub session: bool,
    /// `-d`
    pub accelerator: Option<String>,
    /// `-P`
    pub papi: Option<String>,
    /// Whether `-a` is given.
    pub array_size: bool,
    /// Whether `-r` is given.
    pub cuda_target: bool,
    /// Whether the first line names ombx.
    pub names_ombx: bool,
    /// Whether differences from OMB are noted at every run.
    pub verbose: bool,
    /// Number of ranks that a launcher or the user has chosen.
    pub ranks: Option<u64>,
    /// Whether the devices of this host are those of the ranks.
    pub sees_devices: bool,
}

/// OMB's `-m [MIN:]MAX`, of which one part may be absent.
#[derive(Debug, Clone, Copy)]
pub struct MessageSize {
    /// Smallest message.
    pub least: Option<Bytes>,
    /// Largest message.
    pub most: Option<Bytes>,
}

impl MessageSize {
    /// Reads `MAX`, `MIN:MAX` or `MIN:`.
    ///
    /// # Errors
    /// Usage error for another text.
    pub fn parse(text: &str) -> Result<MessageSize> {
        let size = |part: &str| if part.is_empty() { Ok(None) } else { part.parse().map(Some) };
        let (least, most) = text.split_once(':').unwrap_or(("", text));
        match (size(least)?, size(most)?) {
            (None, None) => Err(Error::usage("not a size: give MAX, MIN:MAX or MIN:, as in 2:128")),
            (Some(least), Some(most)) if least > most => Err(Error::usage(format!(
                "{least} is larger than {most}: give MIN:MAX, as in {most}:{least}"
            ))),
            (least, most) => Ok(MessageSize { least, most }),
        }
    }
}

/// Returns the plan and the columns of a program, and differences from OMB that the user should know. [`reject`] has seen the options.
///
/// # Errors
/// Usage error for an option or a value that the program or ombx does not have.
pub fn read(options: &OsuOptions, program: &Program) -> Result<(Plan, OsuColumns, Vec<String>)> {
    let types = datatypes(options, program)?;
    let mut reader = Reader { program, notes: Vec::new(), chosen: Chosen::default(), accelerator: None };
    if options.validation_warmup {
        reader.notes.push("-u has no effect: data is verified after each row, not during warm-up".into());
    }
    reader.values(options, &types)?;
    reader.memory(options)?;
    let bench = program.choice.bench;
    let (datatype, messages) = described::datatype(options.ddt.as_deref(), program)?;
    let neighbourhood = described::neighbourhood(options.nhbr.as_deref(), program)?;
    let mut sizes = reader.sizes(options, &types)?;
    let payloads = messages.map(|messages| messages.payloads(&sizes));
    if let Some(payloads) = &payloads {
        reader.sizes_of_derived(&sizes, payloads)?;
        sizes = payloads.iter().map(|(payload, _)| *payload).collect();
    }
    reader.chosen.extend(datatype);
    reader.chosen.extend(neighbourhood);
    let (effort, large) = program.effort(options.iterations, options.warmup);
    let percentiles = options.tail_lat.clone().unwrap_or_default();
    let columns = OsuColumns {
        program: Some(program.osu),
        accelerator: reader.accelerator,
        full: options.full,
        validation: options.validation.is_some(),
        without_rate: options.print_rate == Some(false),
        vary_window: options.vary_window,
        percentiles,
        payloads: payloads
            .map(|payloads| payloads.into_iter().map(|(payload, size)| (payload.0, size.0)).collect()),
        without_ombx: !options.names_ombx,
        counters: options.papi.as_deref().map(counters).transpose()?.unwrap_or_default(),
    };
    if options.vary_window {
        reader.chosen.choose(WINDOWS.map(Depth));
    } else {
        reader.chosen.choose([Depth(options.window_size.unwrap_or(WINDOW))]);
    }
    if options.vary_window
        && (options.window_size.is_some() || options.tail_lat.is_some() || options.validation.is_some())
    {
        reader
            .notes
            .push("-W, -z and -c have no effect beside -V, which has fixed window sizes and columns".into());
    }
    let pairs = reader.pairs(options);
    // An operation on one element has the size of each type.
    let several_types = reader.chosen.texts(ElementType::PARAMETER).len() > 1;
    let chosen = &mut reader.chosen;
    chosen.choose(pairs);
    chosen.choose(if bench.ranks.threading == Threading::Multiple { threads(options)? } else { None });
    chosen.choose(options.session.then_some(Initialization::Session));
    chosen.choose(options.root_rank);
    let shows_iterations = !columns.percentiles.is_empty() || options.has_graph;
    let plan = Plan {
        sizes: (!(bench.messages.one_element && several_types)).then_some(sizes),
        chosen: reader.chosen,
        effort,
        effort_above: Some(large),
        counters: options.papi.is_some().then_some(kernel_meter),
        // Percentiles and graphs need a sample per iteration.
        batch: (shows_iterations && !options.vary_window).then_some(1),
        ..Plan::default()
    };
    Ok((plan, columns, reader.notes))
}

/// Option of OMB that only some programs have: its name in errors, its argument, and which programs have it.
pub type OwnOption = (&'static str, &'static str, fn(&Program) -> bool);

fn is_collective(program: &Program) -> bool {
    program.kind == ProgramKind::Collective
}

fn is_rate(program: &Program) -> bool {
    program.osu.name == "osu_mbw_mr"
}

fn is_forked(program: &Program) -> bool {
    program.osu.name == "osu_latency_mp"
}

fn has_numbers(program: &Program) -> bool {
    let is_threaded = program.choice.bench.ranks.threading == Threading::Multiple;
    is_threaded || is_forked(program) || program.parameter("tests").is_some()
}

/// Options that only some programs have.
pub const OWN: [OwnOption; 16] = [
    ("-W", "window_size", |p| p.choice.bench.own.streams.exists()),
    ("-b multiple", BUFFER_NUM, |p| p.parameter("buffers").is_some()),
    ("-f", "full", is_collective),
    ("-M", "mem_limit", is_collective),
    ("-R", "print_rate", is_rate),
    ("-V", "vary_window", is_rate),
    ("-p", "num_pairs", |p| p.choice.bench.ranks.layout.has_pairs()),
    ("-s", "sync_option", |p| p.parameter("sync").is_some()),
    ("-w", "win_options", |p| p.parameter("win").is_some()),
    ("-no-hints", "no_hints", |p| p.parameter("hints").is_some()),
    ("-G", "graph", |p| !STARTUP.contains(&p.osu.name)),
    ("-k", "root_rank", |p| p.choice.bench.has(Root::PARAMETER)),
    ("-l", "in_place", |p| p.parameter("in-place").is_some()),
    ("-N", "nhbr", |p| p.parameter("topology").is_some()),
    ("-t", "num_test_calls", has_numbers),
    ("H, D or M", "buffers", |p| !is_collective(p)),
];
/// Argument of `-b`, whose value `single` every program accepts.
pub const BUFFER_NUM: &str = "buffer_num";

/// Events of PAPI, and the figures of rows that count the same.
const EVENTS: [(&str, &str); 6] = [
    ("PAPI_TOT_INS", INSTRUCTIONS),
    ("PAPI_TOT_CYC", "cycles_per_op"),
    ("PAPI_L3_TCM", "cache_misses_per_op"),
    ("PAPI_TLB_DM", "tlb_misses_per_op"),
    ("PAPI_BR_INS", "branches_per_op"),
    ("PAPI_BR_MSP", "branch_misses_per_op"),
];

/// Returns the figures of the events that `-P` names.
fn counters(given: &str) -> Result<Vec<(&'static str, &'static str)>> {
    let (events, path) = given.split_once(':').unwrap_or((given, ""));
    if !path.is_empty() {
        return Err(Error::usage(format!(
            "-P {given}: counters follow each size, and -o FILE keeps them: leave out :{path}"
        )));
    }
    let find = |name: &str| {
        let known = EVENTS.into_iter().find(|(event, _)| event.eq_ignore_ascii_case(name.trim()));
        let all = || EVENTS.map(|(event, _)| event).join(", ");
        known.ok_or_else(|| Error::usage(format!("-P {given}: {name:?} is none of {}", all())))
    };
    events.split(',').map(find).collect()
}

/// Rejects options that ombx does not have, and types that the program does not have.
///
/// # Errors
/// Usage error with the first of them.
pub fn reject(options: &OsuOptions, program: &Program) -> Result<()> {
    let directory = options.validation.as_ref().is_some_and(|directory| !directory.is_empty());
    let children =
        is_forked(program) && !matches!(options.num_test_calls.as_deref(), None | Some("1" | "1:1"));
    let why = [
        (options.array_size, "-a: computing on devices is not supported: leave it out"),
        (options.cuda_target, "-r: computing on devices is not supported: leave it out"),
        (options.vary_window && options.has_graph, "-G draws one window size: leave out -V"),
        (options.vary_window && options.papi.is_some(), "-P counts for one window size: leave out -V"),
        (directory, "-c takes no directory: wrong data is reported on standard error"),
        (children, "-t: each rank forks exactly one child"),
    ];
    match why.iter().find(|(given, _)| *given) {
        Some((_, why)) => Err(Error::usage(format!("{}: {why}", program.osu.name))),
        None => datatypes(options, program).map(drop),
    }
}

/// Returns the element types that `-T` chooses; none without `-T`, and for programs that have no choice of types.
fn datatypes(options: &OsuOptions, program: &Program) -> Result<Vec<ElementType>> {
    let Some(given) = &options.datatype else { return Ok(Vec::new()) };
    let known = types_of(program);
    let names = || known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let find = |name: &str| match known.iter().find(|(known, _)| *known == name.trim()) {
        Some((_, element)) => Ok(*element),
        None => Err(Error::usage(format!("-T {given}: {} supports {}", program.osu.name, names()))),
    };
    let lower = given.to_ascii_lowercase();
    let chosen: Result<Vec<_>> = match lower.as_str() {
        "all" => Ok(known.iter().map(|(_, element)| *element).collect()),
        list => list.split(',').map(find).collect(),
    };
    let chosen = each_once(chosen?.into_iter().flatten());
    if options.ddt.is_some() && chosen.iter().any(|element| element.width() > 1) {
        return Err(Error::usage("-D and -T: blocks of -D are of bytes; give -T mpi_char, or leave out -D"));
    }
    Ok(chosen)
}

/// Returns OMB's names of the element types of a program; no element type where the program has no choice.
fn types_of(program: &Program) -> Vec<(&'static str, Option<ElementType>)> {
    // osu_get_acc_latency of OMB has bytes only.
    let parameter = program.parameter(ElementType::PARAMETER.name);
    let parameter = parameter.filter(|_| program.osu.name != "osu_get_acc_latency");
    let Some(parameter) = parameter else { return vec![("mpi_char", None)] };
    let moves = parameter.default == Some(ElementType::Byte.name());
    let char = if moves { ElementType::Byte } else { ElementType::Char };
    let mut known = vec![
        ("mpi_char", Some(char)),
        ("mpi_int", Some(ElementType::Int32)),
        ("mpi_float", Some(ElementType::Float)),
    ];
    // A swap needs integers.
    if program.osu.name == "osu_cas_latency" {
        known.pop();
    }
    known
}

/// Reads OMB's `-t SEND:RECV` or `-t RECV`.
fn threads(options: &OsuOptions) -> Result<Option<Threads>> {
    let Some(text) = &options.num_test_calls else { return Ok(None) };
    let text = if text.contains(':') { text.clone() } else { format!("1:{text}") };
    Threads::parse(&text).map(Some).map_err(|e| Error::usage(format!("-t: {e}")))
}

/// Reader of the options that give more than one field of the plan.
struct Reader<'p> {
    program: &'p Program,
    notes: Vec<String>,
    chosen: Chosen,
    /// Accelerator that the title of the program names.
    accelerator: Option<OsuAccelerator>,
}

impl Reader<'_> {
    /// Chooses the memory of the buffers, and the accelerator of the title. Windows on devices are created on memory of ombx, because MPI
    /// allocates no such memory.
    fn memory(&mut self, options: &OsuOptions) -> Result<()> {
        let is_collective = self.program.kind == ProgramKind::Collective;
        let words = self.words(options);
        let accelerator = options.accelerator.as_ref().map(|name| name.to_ascii_lowercase());
        let (api, named) = match accelerator.as_deref() {
            None => (Api::Cuda, None),
            Some("cuda") => (Api::Cuda, Some(OsuAccelerator::Cuda)),
            Some("rocm") => (Api::Rocm, Some(OsuAccelerator::Rocm)),
            // As in OMB, the words D and MD then choose the memory.
            Some("managed") if !is_collective => (Api::Cuda, None),
            Some("managed") => (Api::Cuda, Some(OsuAccelerator::Managed)),
            Some(other) => {
                return Err(Error::usage(format!(
                    "-d {other}: ombx supports cuda, rocm and managed; without -d, buffers are in host memory"
                )));
            }
        };
        let kind = self.program.kind;
        let memory = match (words, named) {
            (_, Some(OsuAccelerator::Managed)) => BufferMemory::both(Place::Managed(api)),
            (_, Some(_)) if is_collective => BufferMemory::both(Place::Device(api)),
            ([both], _) => BufferMemory::both(place(both, api, kind)),
            ([first, second], _) => BufferMemory::of_sides(place(first, api, kind), place(second, api, kind)),
            _ => BufferMemory::DEFAULT,
        };
        let of_words = match api {
            Api::Cuda => OsuAccelerator::Cuda,
            Api::Rocm => OsuAccelerator::Rocm,
        };
        self.accelerator = named.or((!memory.is_host()).then_some(of_words));
        let known = self.program.parameter(BufferMemory::PARAMETER.name);
        // A barrier has no buffers. OMB takes the option and names the accelerator.
        if is_collective && self.program.osu.name.contains("barrier") {
            return Ok(());
        }
        if known.is_none() && (options.accelerator.is_some() || !memory.is_host()) {
            return Err(Error::usage(format!(
                "{} has its buffers in host memory only: leave out -d, D and M",
                self.program.osu.name
            )));
        }
        if memory.is_host() {
            return Ok(());
        }
        self.chosen.choose([memory]);
        // As in OMB, managed memory has a buffer for each message in flight.
        let is_managed = |place: &Place| matches!(place, Place::Managed(_) | Place::ManagedOnHost(_));
        if options.buffer_num.is_none()
            && self.program.parameter("buffers").is_some()
            && memory.places().iter().any(is_managed)
        {
            self.chosen.set("buffers", ["multiple"]);
            self.notes.retain(|note| !note.contains("-b multiple"));
        }
        if self.program.parameter("win").is_some() && options.win_options.is_none() {
            self.chosen.set("win", ["create"]);
            self.notes.push(
                "the windows are created on memory of the device: MPI_Win_create instead of MPI_Win_allocate"
                    .into(),
            );
        }
        Ok(())
    }

    /// Returns the words for the memory of the buffers. Without `-d` they have no effect on a host that has no devices, as in an OMB that
    /// was built without support for them.
    fn words<'o>(&mut self, options: &'o OsuOptions) -> &'o [String] {
        let words = &options.buffers;
        let names_device = words.iter().any(|word| word != "H");
        if names_device
            && options.accelerator.is_none()
            && options.sees_devices
            && let Some(why) = without_devices()
        {
            let given = words.join(" ");
            self.notes.push(format!(
                "{given} has no effect, as in an OMB without support for devices: buffers are in host memory ({why})"
            ));
            return &[];
        }
        words
    }

    /// Returns the number of pairs: as many as `-p` says and the ranks allow.
    fn pairs(&mut self, options: &OsuOptions) -> Option<PairCount> {
        let wanted = options.num_pairs?;
        let most = options.ranks.map_or(wanted, |ranks| u32::try_from((ranks / 2).max(1)).unwrap_or(wanted));
        if wanted > most {
            self.notes.push(format!(
                "-p {wanted}: the ranks make {}, as many as OMB measures",
                counted(most, "pair")
            ));
        }
        Some(PairCount(wanted.min(most)))
    }

    /// Chooses a value of each parameter: the option's, or OMB's default.
    fn values(&mut self, options: &OsuOptions, types: &[ElementType]) -> Result<()> {
        let program = self.program;
        let of_parameters = [
            ("sync", "-s", options.sync_option.clone()),
            ("win", "-w", options.win_options.clone()),
            ("hints", "-no-hints", options.no_hints.then(|| "off".to_owned())),
            ("buffers", "-b", options.buffer_num.map(|buffers| buffers.text())),
            ("in-place", "-l", options.in_place.then(|| "on".to_owned())),
            ("tests", "-t", options.num_test_calls.clone()),
            ("parts", "-f", options.full.then(|| "on".to_owned())),
        ];
        for (name, option, given) in of_parameters {
            let Some(parameter) = program.parameter(name) else { continue };
            let value = match &given {
                Some(given) => Some(value_of(parameter, option, given)?),
                None => program.default_of(parameter),
            };
            self.chosen.set(name, value);
            if given.is_none() && value == Some("single") && options.verbose {
                self.notes.push(
                    "all messages of a window are received into one buffer, as in OMB. MPI does not allow \
                     this, and it gives higher figures inside a node: use -b multiple for one buffer per \
                     message"
                        .into(),
                );
            }
        }
        match program.parameter(ElementType::PARAMETER.name) {
            Some(parameter) if types.is_empty() => {
                self.chosen.set(parameter.name, program.default_of(parameter));
            }
            Some(_) => self.chosen.choose(types.iter().copied()),
            None => {}
        }
        Ok(())
    }

    /// Checks that a derived datatype has messages, and tells which sizes have none.
    fn sizes_of_derived(&mut self, sizes: &[Bytes], payloads: &[(Bytes, Bytes)]) -> Result<()> {
        match (payloads.first(), payloads.len()) {
            (None, _) => {
                return Err(Error::usage(
                    "-D: no message is as long as the stride: give larger messages with -m",
                ));
            }
            (Some(_), 1) if sizes.len() > 1 => {
                self.notes.push("-D: the message is the same for all sizes: there is one row".into());
            }
            (Some(_), rows) if rows < sizes.len() => {
                self.notes.push("-D: sizes below the stride have no block and are left out".into());
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the message sizes. Notes if `-m` has no effect.
    fn sizes(&mut self, options: &OsuOptions, types: &[ElementType]) -> Result<Vec<Bytes>> {
        let (least, most) = self.program.sizes();
        let asked = options.message_size;
        let most = self.limited(asked.and_then(|m| m.most).unwrap_or(most), options);
        let least = asked.and_then(|m| m.least).unwrap_or(least.min(most));
        // As in OMB, sizes begin with one element. Without any row, the heading alone is printed.
        let widths = types.iter().map(|element| element.width());
        let least = if most == Bytes(0) { least } else { least.max(Bytes(widths.min().unwrap_or(1))) };
        if least > most {
            return Err(Error::usage(format!(
                "the smallest message, {least} bytes, is larger than the largest, {most}: change -m or -M"
            )));
        }
        let sizes = parse_sizes(&format!("{}..{}", least.0, most.0))?;
        // A program with a single size, such as an operation on one element, ignores -m.
        let bench = self.program.choice.bench;
        let own = match self.chosen.chosen::<ElementType>() {
            Some(element) if bench.messages.one_element => vec![Bytes(element.width())],
            _ => parse_sizes(bench.messages.sizes)?,
        };
        if own.len() > 1 {
            return Ok(sizes);
        }
        if asked.is_some() && own[0].0 > 0 && !sizes.contains(&own[0]) {
            self.notes.push(format!("-m has no effect: this program measures {} bytes only", own[0]));
        }
        Ok(own)
    }

    /// Returns the largest message of a collective that OMB's memory limit allows, at most `most`. Notes sizes that are left out.
    fn limited(&mut self, most: Bytes, options: &OsuOptions) -> Bytes {
        if self.program.kind != ProgramKind::Collective {
            return most;
        }
        let given = options.mem_limit.unwrap_or(MEMORY_LIMIT);
        let limit = given.max(LEAST_MEMORY_LIMIT);
        if limit > given {
            self.notes.push(format!("-M {given} is read as {limit}, the least limit of OMB"));
        }
        let wanted = u64::from(self.program.choice.bench.ranks.layout.ranks_wanted(None));
        let blocks = if self.program.has_blocks() { options.ranks.unwrap_or(wanted).max(1) } else { 1 };
        let allowed = Bytes(limit.0 / blocks);
        if allowed < most {
            self.notes.push(format!(
                "sizes above {allowed} are left out, as in OMB: the limit is {limit} of memory; -M raises it"
            ));
        }
        most.min(allowed)
    }
}

/// Returns why this host has no device of CUDA, which words without `-d` mean.
fn without_devices() -> Option<String> {
    #[cfg(feature = "mpi")]
    return ombx_accelerator::count(Api::Cuda).err().map(|why| why.to_string());
    #[cfg(not(feature = "mpi"))]
    return Some("this build has no MPI".to_owned());
}

/// Returns the memory that a word means in a program of this kind.
fn place(word: &str, api: Api, kind: ProgramKind) -> Place {
    match word {
        "D" => Place::Device(api),
        "MD" => Place::Managed(api),
        "M" if kind == ProgramKind::OneSided => Place::Managed(api),
        // As in OMB, M stands for MH.
        "M" | "MH" => Place::ManagedOnHost(api),
        _ => Place::Host,
    }
}

/// Returns a value of a parameter, or an error that lists all values.
fn value_of(parameter: &Parameter, option: &str, given: &str) -> Result<&'static str> {
    let names = parameter.names();
    names
        .iter()
        .find(|name| name.eq_ignore_ascii_case(given))
        .copied()
        .ok_or_else(|| Error::usage(format!("{option} {given:?} is not one of {}", names.join(", "))))
}
