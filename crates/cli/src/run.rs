//! `ombx run`: starts ranks, or is one.

use ombx_core::{error::Result, registry::Registry};

use crate::{
    args::RunArgs,
    axes::Chosen,
    job::{Extent, Job, Work},
    select,
};

pub(crate) fn run(registry: &Registry, args: &RunArgs, chosen: Chosen) -> Result<u8> {
    let choices = select::benchmarks(registry, &args.patterns)?;
    let plan = select::plan(args, chosen, &choices)?;
    let rows = select::rows(&plan, &choices)?;
    let ranks = select::ranks(args, &choices);
    let extent = Extent { ranks, rows, steps: rows };
    Job { start: &args.start, output: &args.output, plan, work: Work::Benchmarks(choices), extent }.run()
}
