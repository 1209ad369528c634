//! `ombx osu`, and links to ombx named `osu_latency` and so on: replaces the OSU benchmarks with the same names, options and output.

pub(crate) mod arguments;
mod described;
mod options;

use ombx_core::{
    benchmark::{Benchmark, Choice, ElementType, Layout, Osu, Pairs, Parameter, Registry},
    measure::{plan::Effort, runner::Part},
};
use ombx_drop_in::osu::OsuTable;
use ombx_launch::{
    job::{Job, selection},
    launch::{detection, preflight, start::Start},
    output::{
        destination::{Destination, GraphRequest, Screen},
        target, terminal,
    },
    role, stderr_line, this_process,
};
use ombx_record::{
    error::{Error, Exit, Result},
    order::sort_by_number,
    result::Metric,
    unit::Bytes,
};

use self::arguments::OsuArgs;
use crate::{
    arguments::argv,
    commands::{help::page::Page, imb::programs},
    lookup,
};

/// Lists programs, installs links, prints help, or measures.
pub(crate) fn osu(
    registry: &Registry,
    parser: &clap::Command,
    matches: &clap::ArgMatches,
    args: OsuArgs,
) -> Result<u8> {
    if let Some(directory) = &args.install_links {
        let names: Vec<&str> = covered(registry).iter().map(|(osu, _)| osu.name).collect();
        return terminal::print(argv::install_links(directory, &names)?);
    }
    let Some(name) = args.name.clone() else {
        return terminal::print(if args.help { help(parser, None)? } else { list_of_names(registry) });
    };
    let program = Program::find(registry, &name)?;
    let prints = detection::is_first_process();
    if args.help || args.version {
        let text = if args.help {
            help(parser, Some(&program))?
        } else {
            OsuTable::title(&program.osu, args.names_ombx().then_some(env!("CARGO_PKG_VERSION")))
        };
        return if prints { terminal::print(text) } else { Ok(0) };
    }
    let started =
        detection::launcher().and_then(|started| started.ranks).and_then(|ranks| ranks.try_into().ok());
    let ranks = started.or(args.start.ranks);
    if let Some(why) = ranks.and_then(|ranks| program.refusal(ranks, args.num_pairs)) {
        if !prints {
            // Open MPI ends rank 0 as soon as another rank fails. The code of rank 0 is that of the job.
            return Ok(0);
        }
        stderr_line!("ombx: {why}");
        return Ok(Exit::Refused.code());
    }
    let (job, notes) = prepare(matches, args, &program)?;
    if prints {
        notes.iter().for_each(|note| stderr_line!("ombx: {name}: {note}"));
    }
    role::run(&job)
}

/// Validates the options of a program and builds its job. Returns it with notes about differences from OMB. Starts nothing.
pub(crate) fn prepare(
    matches: &clap::ArgMatches,
    args: OsuArgs,
    program: &Program,
) -> Result<(Job, Vec<String>)> {
    let (plan, columns, notes) = options::read(matches, &args, program)?;
    let rooted = args.root_rank.map_or(0, |root| root.first().0.saturating_add(1));
    let wanted = program.choice.bench.ranks.layout.ranks_wanted(args.num_pairs).max(rooted);
    let start = Start::from(args.start.clone());
    let ranks = start.ranks.unwrap_or(wanted);
    if detection::launcher().is_none() {
        // Mistakes are reported before notes.
        preflight::check(&start, ranks, program.choice.bench.ranks.medium)?;
    }
    if let (Some(root), Some(ranks)) = (args.root_rank.map(|root| root.first()), start.ranks)
        && root.0 >= ranks
    {
        let last = ranks - 1;
        return Err(Error::usage(format!("-k {root} is not a rank: -n {ranks} gives ranks 0 to {last}")));
    }
    let parts = vec![Part { choices: vec![program.choice], plan }];
    let graphs = graphs(&args, program)?;
    let (file, existing) = args.file.beside_format()?;
    let screen = Screen::Osu { columns, graphs };
    let output = Destination { screen, file, existing, quiet: true, ..Destination::default() };
    let known = start.ranks;
    Ok((Job::one_launch(start, output, parts, known, ranks)?, notes))
}

/// Returns the figures that `-G` asks for. None of their files may be the result file.
fn graphs(args: &OsuArgs, program: &Program) -> Result<Option<GraphRequest>> {
    let forms = selection::each_once(args.graph.iter().copied());
    let request = GraphRequest { program: program.osu.name, forms };
    for form in &request.forms {
        if let (Some(file), Some(out)) = (request.file(*form), &args.file.out) {
            target::check(out, "-o", [("the file of -G", file.as_path())])?;
        }
    }
    Ok((!request.forms.is_empty()).then_some(request))
}

/// Options of OMB that no program of ombx has, and where they are said.
const NOTES: &str = "Not supported: -a and -r (computing on devices), a directory after -c (wrong data is \
                     reported on standard error). More: ombx help exit-codes, ombx run BENCHMARK --help \
                     (the same benchmark with intervals and marks)";

/// Returns the help of a program, or of `ombx osu` with the options of all programs.
fn help(parser: &clap::Command, program: Option<&Program>) -> Result<String> {
    let osu = parser.find_subcommand("osu").ok_or_else(|| Error::usage("this build has no ombx osu"))?;
    let page = Page::of_stdout();
    let Some(program) = program else {
        let usage = "ombx osu PROGRAM [OPTIONS] [H|D|MD|MH]..";
        let about = "Replace an OSU benchmark: same name, options, output\nIt starts the ranks, if no \
                     launcher has. ombx osu lists the programs, ombx osu PROGRAM --help has the options of \
                     one.";
        if !this_process::asks_for_all_options() {
            return Ok(page.replacing(about, usage, osu));
        }
        return Ok(page.program((about, usage), osu, &|_| true, NOTES));
    };
    let name = program.osu.name;
    let is_own = |arg: &clap::Arg| {
        let own = options::OWN.iter().find(|(_, id, _)| arg.get_id() == id);
        own.is_none_or(|(.., has)| has(program)) && arg.get_id() != "install_links"
    };
    let has_buffers = osu.get_arguments().any(|arg| arg.get_id() == "buffers" && is_own(arg));
    let buffers = if has_buffers { " [H|D|MD|MH].." } else { "" };
    let about = format!("{}: {} of ombx run", program.osu.title, program.choice.bench.name);
    let usage = format!("{} [OPTIONS]{buffers}", argv::called("osu", name));
    Ok(page.program((&about, &usage), osu, &is_own, NOTES))
}

/// Programs that any number of ranks can start.
const STARTUP: [&str; 2] = ["osu_init", "osu_hello"];
/// Program whose ranks have several threads.
const THREADS: &str = "osu_latency_mt";
/// Program of the broadcast of OMB 3.x.
const ACKNOWLEDGED: &str = "osu_bcast_ack";
/// Larger messages get fewer iterations.
const LARGE: Bytes = Bytes(8192);
/// OMB's largest message by default.
const LARGEST: Bytes = Bytes(4 << 20);
/// OMB's largest message of a collective by default.
const LARGEST_COLLECTIVE: Bytes = Bytes(1 << 20);

/// Beginning of the names of benchmarks whose programs are collective.
const COLLECTIVE: &str = "collective.";

/// Kinds of OSU programs, which accept different options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgramKind {
    TwoSided,
    OneSided,
    Collective,
}

pub(crate) struct Program {
    osu: Osu,
    choice: Choice,
    kind: ProgramKind,
}

impl Program {
    /// Finds a program by its name, with or without `osu_`.
    pub(crate) fn find(registry: &Registry, name: &str) -> Result<Program> {
        let full = if name.starts_with(PREFIX) { name.to_owned() } else { format!("{PREFIX}{name}") };
        let mut all =
            registry.all().iter().flat_map(|bench| bench.osu_names().map(move |osu| (*bench, *osu)));
        let Some((bench, osu)) = all.find(|(_, osu)| osu.name == full) else {
            return Err(unknown(registry, name, &full));
        };
        Ok(Program::new(bench, osu))
    }

    /// Returns the program of a benchmark that has this name.
    fn new(bench: &'static Benchmark, osu: Osu) -> Program {
        let kind = if bench.parameter("sync").is_some() {
            ProgramKind::OneSided
        } else if bench.name.starts_with(COLLECTIVE) {
            ProgramKind::Collective
        } else {
            ProgramKind::TwoSided
        };
        Program { osu, choice: Choice { bench, preset: osu.axes }, kind }
    }

    fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.choice.bench.parameter(name)
    }

    /// Returns OMB 7.4's default of a parameter, if it differs from the benchmark's and the program's name does not choose a value.
    fn default_of(&self, parameter: &Parameter) -> Option<&'static str> {
        let value = match (parameter.name, self.osu.name) {
            _ if self.osu.axes.iter().any(|(name, _)| *name == parameter.name) => return None,
            ("sync", "osu_put_bibw") => "pscw",
            ("sync", "osu_get_acc_latency") => "lock",
            ("win", "osu_get_acc_latency") => "create",
            ("sync", _) => "flush",
            ("buffers", _) => "single",
            // MPI_CHAR is no integer, which a swap needs.
            ("type", "osu_cas_latency") => return None,
            // What is moved are bytes.
            ("type", _) if parameter.default == Some(ElementType::Byte.name()) => return None,
            ("type", _) => "char",
            _ => return None,
        };
        parameter.names().iter().find(|known| **known == value).copied()
    }

    /// Returns OMB's smallest and largest message by default.
    fn sizes(&self) -> (Bytes, Bytes) {
        (Bytes(1), if self.kind == ProgramKind::Collective { LARGEST_COLLECTIVE } else { LARGEST })
    }

    /// Returns why OMB refuses this number of ranks, if it does. `pairs` tells whether the user asks for a number of pairs, which OMB
    /// knows in few programs.
    fn refusal(&self, ranks: u32, pairs: Option<u32>) -> Option<String> {
        let name = self.osu.name;
        let is_one_pair = match self.choice.bench.ranks.layout {
            Layout::Pair | Layout::Pairs(Pairs::One) => pairs.is_none(),
            _ => name == THREADS,
        };
        let (is_refused, needed) = if is_one_pair {
            (ranks != 2, "exactly two processes")
        } else {
            (ranks < 2, "at least two processes")
        };
        (is_refused && !STARTUP.contains(&name)).then(|| {
            format!(
                "This test requires {needed}, but {name} has {ranks}: start it with mpiexec -n 2. If you \
                 did, use the mpiexec of the MPI of this ombx, or its PMI with srun --mpi"
            )
        })
    }

    /// Returns the effort for small messages, and for those above a size.
    fn effort(&self, iterations: Option<u64>, warmup: Option<u64>) -> (Effort, (Bytes, Effort)) {
        let fixed = |(timed, untimed)| Effort::Fixed {
            iterations: iterations.unwrap_or(timed),
            warmup: warmup.unwrap_or(untimed),
        };
        let (small, large) = match (self.kind, self.choice.bench.described.metric) {
            // osu_bcast of OMB 3.x has as many at all sizes.
            _ if self.osu.name == ACKNOWLEDGED => ((1000, 100), (1000, 100)),
            (ProgramKind::Collective, _) => ((1000, 100), (100, 10)),
            (_, Metric::Bandwidth) => ((100, 10), (20, 2)),
            (_, Metric::Latency) => ((10_000, 100), (1000, 10)),
        };
        (fixed(small), (LARGE, fixed(large)))
    }
}

/// Beginning of the names of programs.
const PREFIX: &str = "osu_";

/// Every MPI program of OMB 3.x and 7.4.
const OMB: &str = "
    osu_latency osu_latency_mt osu_latency_mp osu_multi_lat osu_latency_persistent
    osu_bw osu_bibw osu_mbw_mr osu_bw_persistent osu_bibw_persistent osu_bw_fan_in osu_bw_fan_out
    osu_put_latency osu_get_latency osu_acc_latency osu_get_acc_latency osu_cas_latency osu_fop_latency
    osu_put_bw osu_get_bw osu_put_bibw osu_get_mbw osu_get_multi_lat
    osu_passive_put_latency osu_passive_get_latency osu_passive_acc_latency osu_passive_put_bw osu_passive_get_bw
    osu_allgather osu_allgatherv osu_allreduce osu_alltoall osu_alltoallv osu_alltoallw osu_barrier osu_bcast
    osu_gather osu_gatherv osu_reduce osu_reduce_scatter osu_reduce_scatter_block osu_scatter osu_scatterv
    osu_iallgather osu_iallgatherv osu_iallreduce osu_ialltoall osu_ialltoallv osu_ialltoallw osu_ibarrier osu_ibcast
    osu_igather osu_igatherv osu_ireduce osu_ireduce_scatter osu_ireduce_scatter_block osu_iscatter osu_iscatterv
    osu_allgather_persistent osu_allgatherv_persistent osu_allreduce_persistent osu_alltoall_persistent
    osu_alltoallv_persistent osu_alltoallw_persistent osu_barrier_persistent osu_bcast_persistent
    osu_gather_persistent osu_gatherv_persistent osu_reduce_persistent osu_reduce_scatter_persistent
    osu_scatter_persistent osu_scatterv_persistent
    osu_neighbor_allgather osu_neighbor_allgatherv osu_neighbor_alltoall osu_neighbor_alltoallv osu_neighbor_alltoallw
    osu_ineighbor_allgather osu_ineighbor_allgatherv osu_ineighbor_alltoall osu_ineighbor_alltoallv
    osu_ineighbor_alltoallw
    osu_init osu_hello";

fn all() -> impl Iterator<Item = &'static str> {
    OMB.split_whitespace()
}

/// Returns the programs of this build in OMB's order, then those that OMB does not have.
fn covered(registry: &Registry) -> Vec<(&'static Osu, &'static Benchmark)> {
    let mut names: Vec<(&Osu, &Benchmark)> =
        registry.all().iter().flat_map(|bench| bench.osu_names().map(move |osu| (osu, *bench))).collect();
    sort_by_number(&mut names, |(osu, _)| {
        all().position(|name| name == osu.name).map_or(i64::MAX, |at| at as i64)
    });
    names
}

/// Returns why this build has no such OSU program; `None` if OMB has no such program either.
fn uncovered(name: &str) -> Option<&'static str> {
    match name {
        "osu_get_mbw" => Some("use osu_get_bw -p with the number of pairs"),
        "osu_get_multi_lat" => Some("use osu_get_latency -s pscw -p with the number of pairs"),
        _ if name.starts_with("osu_nccl_") || name.starts_with("osu_xccl_") => Some(
            "NCCL and RCCL are not measured; ombx osu osu_allreduce -d cuda measures MPI with memory of devices",
        ),
        _ if ["osu_oshm_", "osu_upc_", "osu_upcxx_"].iter().any(|start| name.starts_with(start)) => {
            Some("OpenSHMEM, UPC and UPC++ are not measured; ombx osu osu_put_latency measures one-sided MPI")
        }
        _ => all().any(|known| known == name).then_some("this build has no such benchmark"),
    }
}

/// Returns the error about a name that is no program. `full` begins with [`PREFIX`].
fn unknown(registry: &Registry, name: &str, full: &str) -> Error {
    if let Some(why) = uncovered(full) {
        return Error::usage(format!("{full} is not supported: {why}"));
    }
    let instead = if programs::find(name).is_ok() {
        format!("it is a program of IMB: ombx imb {name}")
    } else if lookup::find(registry, name).is_ok() {
        format!("ombx run {name} measures it")
    } else if let Some(known) = lookup::similar(full, covered(registry).into_iter().map(|(osu, _)| osu.name))
    {
        format!("did you mean {known}?")
    } else {
        "ombx osu lists them".to_owned()
    };
    Error::usage(format!("{name:?} is no OSU program; {instead}"))
}

/// Returns the text that `ombx osu` without a name prints.
fn list_of_names(registry: &Registry) -> String {
    let mut text = String::new();
    let covered = covered(registry);
    let width = covered.iter().map(|(osu, _)| osu.name.len()).max().unwrap_or_default();
    for (osu, bench) in &covered {
        let options: String = osu.axes.iter().map(|(axis, value)| format!(" --{axis} {value}")).collect();
        text += &format!("{:<width$}  {}{options}\n", osu.name, bench.name);
    }
    let missing: Vec<&str> = all().filter(|name| covered.iter().all(|(osu, _)| osu.name != *name)).collect();
    if !missing.is_empty() {
        text += &format!("\nnot supported: {}\n", missing.join(" "));
    }
    text
}
