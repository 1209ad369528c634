//! Files that a job writes: the result file, and files for Prometheus and for CI systems.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use ombx_estimate::launches::Group;
use ombx_fleet::fitness::{HostList, Listed};
use ombx_record::{error::Result, event::Event, file};
use ombx_show::{LinksForm, LinksSummary, OpenMetrics, Renderer};

use crate::output::{
    destination::{Destination, LinksFiles},
    junit,
    target::{self, FileAtEnd, ResultTarget},
    unwritable,
};

/// Host file that is written at the end.
struct HostFile(HostList);

impl Renderer for HostFile {
    fn event(&mut self, _: &mut dyn Write, event: &Event<'_>) -> io::Result<()> {
        self.0.event(event);
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.0.text().as_bytes())
    }
}

/// Files of a job that are open.
#[derive(Default)]
pub(super) struct OutputFiles {
    result: Option<ResultTarget>,
    /// Files that are written when the job has ended.
    at_end: Vec<FileAtEnd>,
}

impl OutputFiles {
    /// Opens the files that are written at the end.
    pub(super) fn open_at_end(args: &Destination) -> Result<OutputFiles> {
        let mut at_end = Vec::new();
        if let Some(LinksFiles { junit, fit, unfit }) = args.screen.links_files() {
            let mut add = |option, path: &Option<PathBuf>, renderer| -> Result<()> {
                let file = path.clone().map(|path| FileAtEnd::open(option, path, renderer)).transpose()?;
                at_end.extend(file);
                Ok(())
            };
            add("--junit", junit, Box::new(LinksSummary::new(LinksForm::Text(junit::links))))?;
            add("--fit", fit, Box::new(HostFile(HostList::new(Listed::Fit))))?;
            add("--unfit", unfit, Box::new(HostFile(HostList::new(Listed::Unfit))))?;
        }
        if let Some(path) = args.openmetrics.clone() {
            at_end.push(FileAtEnd::open("--openmetrics", path, Box::new(OpenMetrics::default()))?);
        }
        Ok(OutputFiles { result: None, at_end })
    }

    /// Opens the result file, if the user wants one. `limit` is the time limit of the job.
    pub(super) fn open_result(&mut self, args: &Destination, limit: Duration) -> Result<()> {
        let open = |path: &PathBuf| ResultTarget::open(path, args.existing, limit);
        self.result = args.file.as_ref().map(open).transpose()?;
        Ok(())
    }

    /// Returns the path of the result file.
    pub(super) fn result_path(&self) -> Option<&Path> {
        self.result.as_ref().map(ResultTarget::path)
    }

    /// Writes an event to the result file.
    pub(super) fn write(&mut self, event: &Event<'_>) -> Result<()> {
        match &mut self.result {
            Some(result) => result.write(|out| file::write(out, event)),
            None => Ok(()),
        }
    }

    /// Passes an event to the files that are written at the end.
    pub(super) fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.at_end.iter_mut().try_for_each(|file| file.event(event).map_err(|e| unwritable(&file.path, &e)))
    }

    /// Passes the rows over all launches to the files that are written at the end.
    pub(super) fn estimates(&mut self, group: &Group) -> Result<()> {
        let estimates = |file: &mut FileAtEnd| file.estimates(group).map_err(|e| unwritable(&file.path, &e));
        self.at_end.iter_mut().try_for_each(estimates)
    }

    /// Writes the files that are written at the end.
    pub(super) fn finish(&mut self) -> Result<()> {
        for file in &mut self.at_end {
            let text = file.finish();
            let written =
                text.and_then(|text| text.map_or(Ok(()), |text| target::replace(&file.path, &text)));
            written.map_err(|e| unwritable(&file.path, &e))?;
        }
        Ok(())
    }

    /// Fails if another program has written or removed the result file.
    pub(super) fn check_result(&self) -> Result<()> {
        self.result.as_ref().map_or(Ok(()), ResultTarget::check_unchanged)
    }
}
