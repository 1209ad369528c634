//! `ombx doctor`: its arguments.

use std::path::PathBuf;

use clap::Args;
use ombx_check::doctor::{self, Request};
use ombx_core::benchmark::{ParameterValue, memory::BufferMemory};
use ombx_launch::output::destination::Format;
use ombx_record::error::Result;

use crate::arguments::{
    output::{JSON, JUNIT, NAGIOS, some_of},
    start::StartArgs,
};

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    start: StartArgs,
    /// Also send a message from this memory, such as cuda, between two ranks of this host
    #[arg(long, value_name = "PLACE[:PLACE]", value_parser = BufferMemory::parse, help_heading = "What is measured")]
    memory: Option<BufferMemory>,
    /// Format of the findings
    #[arg(long, default_value = "table", value_parser = some_of(&FORMATS), help_heading = "Output")]
    format: Format,
    /// JUnit report to write beside what is printed; a finding that disturbs figures is a failure
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    junit: Option<PathBuf>,
    /// Print nothing if there is no finding
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
    /// Print where this process runs, for the doctor that started it
    #[arg(long, hide = true)]
    probe: bool,
}

/// Formats of the findings.
const FORMATS: [(&str, &str, Format); 4] =
    [("table", "Sentences for people", Format::Table), JSON, NAGIOS, JUNIT];

pub(crate) fn doctor(args: DoctorArgs) -> Result<u8> {
    if args.probe {
        return doctor::probe_this_process();
    }
    let DoctorArgs { start, memory, format, junit, quiet, .. } = args;
    doctor::run(&start.into(), &Request { memory, format, junit, quiet })
}
