//! From OMB's options to a plan: what each means for a program, what is refused, and what is said about the rest.

use std::collections::BTreeMap;

use clap::ValueEnum;
use ombx_core::{
    benchmark::{
        axis::Axis,
        threads::{Threading, Threads},
    },
    error::{Error, Result},
    measure::plan::{Plan, parse_sizes},
    unit::Bytes,
};
use ombx_results::render::OsuColumns;

use super::{
    Buffers, OsuArgs,
    program::{Family, Program},
};
use crate::launch::detect;

/// What the options of a program come to.
pub(super) struct Request {
    pub(super) plan: Plan,
    pub(super) columns: OsuColumns,
    /// What a user should know who takes this for OMB.
    pub(super) notes: Vec<String>,
}

/// OMB's `-m [MIN:]MAX`, either of which may be left out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageSize {
    least: Option<Bytes>,
    most: Option<Bytes>,
}

impl MessageSize {
    pub(crate) fn parse(text: &str) -> Result<MessageSize> {
        let size = |part: &str| if part.is_empty() { Ok(None) } else { part.parse().map(Some) };
        let (least, most) = text.split_once(':').unwrap_or(("", text));
        let (least, most) = (size(least)?, size(most)?);
        match (least, most) {
            (None, None) => Err(Error::usage("is no size; MAX, MIN:MAX or MIN:, as in 2:128")),
            (Some(least), Some(most)) if least > most => {
                Err(Error::usage(format!("runs from {least} down to {most}; MIN:MAX, as in {most}:{least}")))
            }
            _ => Ok(MessageSize { least, most }),
        }
    }
}

/// OMB's `-z`: percentiles, five at the most.
#[derive(Debug, Clone)]
pub(crate) struct Percentiles(pub(crate) Vec<u8>);

impl Percentiles {
    pub(crate) fn parse(text: &str) -> std::result::Result<Percentiles, String> {
        let number = |part: &str| part.trim().parse::<u8>().ok().filter(|percent| *percent <= 100);
        match text.split(',').map(number).collect::<Option<Vec<u8>>>() {
            Some(all) if all.len() <= 5 => Ok(Percentiles(all)),
            _ => Err("at most five percentiles from 0 to 100, as in -z50,99".into()),
        }
    }
}

/// 0 or 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Flag {
    /// No
    #[value(name = "0")]
    Off,
    /// Yes
    #[value(name = "1")]
    On,
}

/// Reads the options of a program.
pub(super) fn read(args: &OsuArgs, program: &Program) -> Result<Request> {
    let mut reader = Reader { program, notes: Vec::new(), axes: BTreeMap::new() };
    refuse(args, program)?;
    reader.memory(args)?;
    reader.axes(args)?;
    let bench = program.choice.bench;
    let sizes = reader.sizes(args)?;
    let (effort, large) = program.effort(args.iterations, args.warmup);
    let percentiles = args.tail_lat.clone().map(|z| z.0).unwrap_or_default();
    let columns = OsuColumns {
        program: Some(program.osu),
        full: args.full,
        validation: args.validation.is_some(),
        rate: args.print_rate != Some(Flag::Off),
        percentiles,
    };
    let plan = Plan {
        sizes: Some(sizes),
        depth: args.window_size.unwrap_or(64),
        pairs: args.num_pairs,
        threads: if bench.threading == Threading::Multiple { threads(args)? } else { None },
        root: args.root_rank.unwrap_or_default(),
        effort,
        effort_above: Some(large),
        // Percentiles are of single iterations.
        batch: (!columns.percentiles.is_empty()).then_some(1),
        axes: reader.axes,
        ..Plan::default()
    };
    Ok(Request { plan, columns, notes: reader.notes })
}

/// Options that mean nothing to this program or to ombx.
fn refuse(args: &OsuArgs, program: &Program) -> Result<()> {
    let bench = program.choice.bench;
    let (collective, rates) = (program.family == Family::Collective, program.osu.name == "osu_mbw_mr");
    let tests = program.axis("tests").is_some();
    let forked = program.osu.name == "osu_latency_mp";
    let foreign = [
        ("-W", args.window_size.is_some() && !bench.streams),
        ("-b multiple", args.buffer_num == Some(Buffers::Multiple) && program.axis("buffers").is_none()),
        ("-f", args.full && !collective),
        ("-M", args.mem_limit.is_some() && !collective),
        ("-R", args.print_rate.is_some() && !rates),
        ("-V", args.vary_window && !rates),
        ("-p", args.num_pairs.is_some() && !bench.layout.has_pairs()),
        ("-s", args.sync_option.is_some() && program.axis("sync").is_none()),
        ("-w", args.win_options.is_some() && program.axis("win").is_none()),
        ("-k", args.root_rank.is_some() && !bench.rooted),
        ("-l", args.in_place && program.axis("in-place").is_none()),
        ("-N", args.nhbr.is_some() && program.axis("topology").is_none()),
        ("-t", args.num_test_calls.is_some() && !(bench.threading == Threading::Multiple || forked || tests)),
        ("H and D", !args.buffers.is_empty() && collective),
    ];
    if let Some((option, _)) = foreign.iter().find(|(_, given)| *given) {
        return Err(Error::usage(format!("{option} means nothing to {}", program.osu.name)));
    }
    let refused = &args.refused;
    let why = [
        (args.vary_window, "-V: one window size a run; choose it with -W"),
        (refused.accelerator.is_some(), "-d: this build has host memory only"),
        (refused.array_size.is_some(), "-a: this build has host memory only"),
        (refused.cuda_target.is_some(), "-r: this build has host memory only"),
        (refused.graph.is_some(), "-G: graphs are made of result files; keep one with -o FILE"),
        (refused.papi.is_some(), "-P: there are no PAPI counters; run it under perf"),
        (refused.ddt.is_some(), "-D: messages are contiguous bytes"),
        (refused.session, "-I: MPI is started by MPI_Init_thread, not as a session"),
        (
            args.validation.as_ref().is_some_and(|dir| !dir.is_empty()),
            "-c has no directory; what differs is told in place",
        ),
        (
            forked && !matches!(args.num_test_calls.as_deref(), None | Some("1" | "1:1")),
            "-t: each rank forks one child",
        ),
    ];
    match why.iter().find(|(given, _)| *given) {
        Some((_, why)) => Err(Error::usage(format!("{}: {why}", program.osu.name))),
        None => datatype(args),
    }
}

fn datatype(args: &OsuArgs) -> Result<()> {
    match args.datatype.as_deref() {
        Some(other) if !other.eq_ignore_ascii_case("mpi_char") => {
            Err(Error::usage(format!("-T {other}: messages are bytes; only mpi_char is covered")))
        }
        _ => Ok(()),
    }
}

/// OMB's `-t SEND:RECV`, or `-t RECV`.
fn threads(args: &OsuArgs) -> Result<Option<Threads>> {
    let Some(text) = &args.num_test_calls else { return Ok(None) };
    let text = if text.contains(':') { text.clone() } else { format!("1:{text}") };
    text.parse().map(Some)
}

/// Options that become more than one field, and what is said about them.
struct Reader<'p> {
    program: &'p Program,
    notes: Vec<String>,
    axes: BTreeMap<String, Vec<&'static str>>,
}

impl Reader<'_> {
    /// Where buffers are: in host memory.
    fn memory(&mut self, args: &OsuArgs) -> Result<()> {
        let places = |word: &str| matches!(word.len(), 1 | 2) && word.chars().all(|c| "HDM".contains(c));
        if let Some(word) = args.buffers.iter().find(|word| !places(word)) {
            return Err(Error::usage(format!("{word:?} is neither H, D nor M, where buffers are")));
        }
        if args.buffers.len() > 2 {
            return Err(Error::usage("there are two places of buffers, one for each rank, as in H H"));
        }
        if args.buffers.iter().any(|word| word != "H") {
            self.notes.push(format!(
                "{}: this build has no device memory; all buffers are in host memory",
                args.buffers.join(" ")
            ));
        }
        if args.validation_warmup.is_some() {
            self.notes
                .push("-u: data is checked after each row, not while it warms up; nothing changes".into());
        }
        Ok(())
    }

    /// A value for each axis that an option chooses, or OMB's default.
    fn axes(&mut self, args: &OsuArgs) -> Result<()> {
        let program = self.program;
        let buffers = args.buffer_num.map(|buffers| match buffers {
            Buffers::Single => "single".to_owned(),
            Buffers::Multiple => "multiple".to_owned(),
        });
        let wishes = [
            ("sync", "-s", args.sync_option.clone()),
            ("win", "-w", args.win_options.clone()),
            ("buffers", "-b", buffers),
            ("in-place", "-l", args.in_place.then(|| "on".to_owned())),
            (
                "topology",
                "-N",
                args.nhbr.as_deref().map(|shape| match shape {
                    "cart" | "cart:1:1" => "cartesian".to_owned(),
                    other => other.to_owned(),
                }),
            ),
            ("tests", "-t", args.num_test_calls.clone()),
        ];
        for (name, option, wish) in wishes {
            let Some(axis) = program.axis(name) else { continue };
            let value = match &wish {
                Some(wish) => Some(known(axis, option, wish)?),
                None => program.usual(axis),
            };
            if let Some(value) = value {
                self.axes.insert(name.into(), vec![value]);
            }
            if wish.is_none() && value == Some("single") {
                self.notes.push(
                    "as OMB does, every message of a window arrives in one buffer, which is not legal MPI and reads higher \
                     inside a node; -b multiple gives each its own"
                        .into(),
                );
            }
        }
        Ok(())
    }

    fn sizes(&mut self, args: &OsuArgs) -> Result<Vec<Bytes>> {
        let (least, most) = self.program.sizes();
        let asked = args.message_size;
        let most = asked.and_then(|m| m.most).unwrap_or(most).min(self.limit(args));
        let least = asked.and_then(|m| m.least).unwrap_or(least.min(most));
        if least > most {
            return Err(Error::usage(format!(
                "messages from {least} bytes are larger than the largest, {most}"
            )));
        }
        let sizes = parse_sizes(&format!("{}..{}", least.0, most.0))?;
        // A program of few sizes, such as an operation on one element, has no others whatever is asked for.
        let own = parse_sizes(self.program.choice.bench.sizes)?;
        if own.len() > 1 {
            return Ok(sizes);
        }
        if asked.is_some() && own[0].0 > 0 && !sizes.contains(&own[0]) {
            self.notes.push(format!("-m: it measures {} bytes alone", own[0]));
        }
        Ok(own)
    }

    /// OMB's limit of memory, divided among the ranks, is the largest message.
    fn limit(&mut self, args: &OsuArgs) -> Bytes {
        let ranks = detect::launcher().and_then(|s| s.of).or(args.start.ranks.map(u64::from));
        let wanted = u64::from(self.program.choice.bench.layout.ranks_wanted(None));
        args.mem_limit.map_or(Bytes(u64::MAX), |limit| Bytes(limit.0 / ranks.unwrap_or(wanted).max(1)))
    }
}

/// A value of an axis, or an error that lists them.
fn known(axis: &Axis, option: &str, wish: &str) -> Result<&'static str> {
    axis.values
        .iter()
        .find(|value| **value == wish)
        .copied()
        .ok_or_else(|| Error::usage(format!("{option} {wish:?} is none of {}", axis.values.join(", "))))
}
