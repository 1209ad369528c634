//! Figures of the samples of each row: characters below the table, and files.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    slice,
};

use ombx_core::benchmark::{ElementType, ParameterValue};
use ombx_draw::{Drawing, FileFormat, Input, Kind, Options, PlotError, terminal::samples};
use ombx_estimate::samples::{CaseSamples, SampleStore};
use ombx_record::{
    error::{Error, Result},
    event::Event,
    unit::Bytes,
};
use rustix::fs::{Access, access};

use crate::output::{
    destination::{GraphForm, GraphRequest},
    renderers,
};

/// Samples of all rows, until they are drawn.
pub(super) struct Graphs {
    request: GraphRequest,
    store: SampleStore,
}

impl Graphs {
    /// Checks that the files can be written. An existing file is replaced as a whole at the end.
    pub(super) fn open(request: GraphRequest) -> Result<Graphs> {
        for file in request.forms.iter().filter_map(|form| request.file(*form)) {
            FileFormat::check().map_err(|why| Error::usage(why.to_string()))?;
            access(".", Access::WRITE_OK).map_err(|why| unwritable(&file, &why.into()))?;
            if file.is_dir() {
                return Err(unwritable(&file, &io::ErrorKind::IsADirectory.into()));
            }
        }
        Ok(Graphs { request, store: SampleStore::default() })
    }

    /// Keeps the samples of a row.
    pub(super) fn event(&mut self, event: &Event<'_>) {
        self.store.event(event);
    }

    /// Ends the measurement.
    pub(super) fn finish(self) -> FinishedGraphs {
        FinishedGraphs { request: self.request, cases: self.store.into_cases() }
    }
}

/// Samples of all rows that were measured.
pub(super) struct FinishedGraphs {
    request: GraphRequest,
    cases: Vec<CaseSamples>,
}

impl FinishedGraphs {
    /// Prints the figures of characters, if they are asked for.
    pub(super) fn print(&self, screen: &mut dyn Write) -> io::Result<()> {
        if !self.request.forms.contains(&GraphForm::Tty) {
            return Ok(());
        }
        let (columns, characters) = (renderers::columns(), renderers::characters());
        self.cases.iter().try_for_each(|case| {
            samples::draw_over_time(screen, case, &self.title(case), columns, characters)
        })
    }

    /// Writes the files by `replace`, each with a figure for every row.
    pub(super) fn write(&self, replace: impl Fn(&Path, &[u8]) -> io::Result<()>) -> Result<()> {
        let wanted = self.request.forms.iter().filter_map(|form| Some((*form, self.request.file(*form)?)));
        let wanted: Vec<(GraphForm, PathBuf)> = wanted.collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let failed = |why: PlotError| Error::storage(format!("cannot draw the samples: {why}"));
        let figures = self.cases.iter().map(|case| {
            let inputs = [Input { label: "", cases: slice::from_ref(case) }];
            let title = self.title(case);
            ombx_draw::draw(Kind::Samples, &inputs, &Options { title: Some(&title), ..Options::default() })
        });
        let figures = figures.collect::<std::result::Result<Vec<_>, _>>().map_err(failed)?;
        let Some(drawing) = Drawing::grid(&figures) else {
            stderr_line!("ombx: {} has no samples to draw: -G writes no file", self.request.program);
            return Ok(());
        };
        for (form, file) in wanted {
            let contents = match form {
                GraphForm::Pdf => drawing.file(FileFormat::Pdf),
                GraphForm::Png | GraphForm::Tty => drawing.file(FileFormat::Png),
            };
            replace(&file, &contents.map_err(failed)?).map_err(|why| unwritable(&file, &why))?;
        }
        Ok(())
    }

    /// Returns the title of a figure: the program, the size, and the data type if there are several.
    fn title(&self, case: &CaseSamples) -> String {
        let program = self.request.program;
        let of_type = |case: &CaseSamples| case.row().axes.get(ElementType::PARAMETER.name).cloned();
        let other = case.other.map_or(String::new(), |other| format!(", {other}"));
        let size = match case.row().bytes {
            // A barrier moves no data, and OMB prints no size.
            None => return program.to_owned(),
            Some(_) if program.contains("barrier") => return program.to_owned(),
            Some(1) => "1 byte".to_owned(),
            Some(bytes) => format!("{} bytes", Bytes(bytes)),
        };
        match of_type(case).filter(|_| self.cases.iter().any(|other| of_type(other) != of_type(case))) {
            Some(element) => format!("{program}, {size} of {element}{other}"),
            None => format!("{program}, {size}{other}"),
        }
    }
}

fn unwritable(file: &Path, why: &io::Error) -> Error {
    Error::storage(format!("cannot write the figure of -G to {}: {why}", file.display()))
}
