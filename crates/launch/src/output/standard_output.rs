//! Standard output of a job: tables, or the lines of the result file, and comparisons below all tables.

use std::{
    borrow::Cow,
    io::{self, Write},
    path::Path,
};

use ombx_estimate::{number::Units, text::plain};
use ombx_record::{
    error::{Error, Result},
    event::Event,
    file,
    result::{Interval, Measurement, RunOutcome, Tally},
};
use ombx_show::{Broadcasts, Overhead, Renderer};

use crate::output::{
    destination::{Format, Screen},
    renderers,
    terminal::is_closed,
};

/// What standard output shows.
#[derive(Default)]
pub(super) struct StandardOutput {
    /// `None` if the lines of the result file are printed.
    renderer: Option<Box<dyn Renderer>>,
    /// Units of figures.
    units: Units,
    /// The reader of standard output has closed it; nothing more is printed.
    is_closed: bool,
    /// Comparisons of rows that are printed below tables: MPI with sockets, and algorithms of a broadcast.
    comparisons: Option<(Overhead, Broadcasts)>,
    /// Rows of the table whose end is not printed yet.
    open_table: Option<Tally>,
    /// Ranks of another kind measure the rest of what is shown as one table.
    pub(super) continues: bool,
    /// New ranks may continue the table of a run that has ended early.
    pub(super) keeps_table: bool,
}

impl StandardOutput {
    pub(super) fn new(screen: &Screen, renderer: Option<Box<dyn Renderer>>) -> StandardOutput {
        let units = screen.units();
        let comparisons = (screen.format() == Some(Format::Table)).then(|| {
            let unit = units.of_times();
            (Overhead::in_unit(unit), Broadcasts::in_unit(unit))
        });
        StandardOutput { renderer, units, comparisons, ..StandardOutput::default() }
    }

    /// Returns whether comparisons are printed below the tables.
    pub(super) fn has_comparisons(&self) -> bool {
        self.comparisons.is_some()
    }

    /// Keeps what is compared below all tables.
    pub(super) fn note(&mut self, row: &Measurement) {
        if let Some((overhead, broadcasts)) = &mut self.comparisons {
            overhead.add(row);
            broadcasts.add(row);
        }
    }

    /// Prints an event. The runs of a launch that have one setup are one table.
    pub(super) fn show(&mut self, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Run(_) if self.open_table.is_some() => Ok(()),
            Event::End { outcome, tally } => {
                let tally = self.open_table.take().map_or(*tally, |earlier| earlier.plus(*tally));
                if self.keeps_table || self.continues && *outcome == RunOutcome::Complete {
                    self.open_table = Some(tally);
                    return Ok(());
                }
                self.render(&Event::End { outcome: *outcome, tally })
            }
            event => self.render(event),
        }
    }

    /// Ends the table, and prints what is below all tables.
    pub(super) fn finish(&mut self) -> Result<()> {
        if let Some(tally) = self.open_table.take() {
            self.render(&Event::End { outcome: RunOutcome::Broken, tally })?;
        }
        let comparisons = self.comparisons.take();
        self.print(|renderer, screen| {
            renderer.finish(screen)?;
            comparisons.map_or(Ok(()), |(overhead, broadcasts)| {
                overhead.write(screen)?;
                broadcasts.write(screen)
            })
        })
    }

    /// Prints the figure of an interval of a row that is still measured: as a line of JSON if lines of the result file are printed, else on
    /// standard error.
    pub(super) fn interval(&self, interval: &Interval) {
        if self.renderer.is_some() {
            note_line!("ombx: {}", plain(&renderers::line(interval, self.units)));
        } else if !self.is_closed {
            let mut screen = io::stdout().lock();
            // The next record finds out that the reader is gone.
            let interval = Event::Interval(Cow::Borrowed(interval));
            let _ = file::write(&mut screen, &interval).and_then(|()| screen.flush());
        }
    }

    /// Prints the line that the result file has of an event, if its lines are printed.
    ///
    /// # Errors
    /// They cannot be printed, or nobody reads them and no file has them either.
    pub(super) fn write_line(&mut self, event: &Event<'_>, in_file: Option<&Path>) -> Result<()> {
        if self.renderer.is_none() && !self.is_closed {
            let mut screen = io::stdout().lock();
            let printed = file::write(&mut screen, event).and_then(|()| screen.flush());
            self.is_closed = is_closed(printed)?;
            if self.is_closed && in_file.is_none() {
                return Err(Error::storage("results are lost: the reader of standard output has closed it"));
            }
        }
        Ok(())
    }

    pub(super) fn render(&mut self, event: &Event<'_>) -> Result<()> {
        self.print(|renderer, screen| renderer.event(screen, event))
    }

    pub(super) fn print(
        &mut self,
        print: impl FnOnce(&mut dyn Renderer, &mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        if let Some(renderer) = self.renderer.as_mut().filter(|_| !self.is_closed) {
            let mut screen = io::stdout().lock();
            let printed = print(&mut **renderer, &mut screen).and_then(|()| screen.flush());
            self.is_closed = is_closed(printed)?;
        }
        Ok(())
    }
}
