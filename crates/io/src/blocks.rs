//! Blocks of a file that a rank writes or reads, filled before the accesses and checked after them.

use ombx_core::{
    benchmark::{
        Case, Context,
        payload::{Check, Fill, Slots},
    },
    error::Result,
    unit::Rank,
};
use ombx_mpi::file::{File, Order};

use crate::{options, unordered};

/// A file, and the blocks of this rank in it.
pub(crate) struct Blocks {
    pub(crate) file: File,
    pub(crate) slots: Slots,
    rank: Rank,
    /// Rank whose blocks this rank reads back.
    writer: Rank,
    order: Order,
}

impl Blocks {
    /// Opens the file of a case for calls with this order. Collective.
    pub(crate) fn open(cx: &Context<'_>, case: &Case, order: Order) -> Result<Blocks> {
        let (file, slots) = options::open(cx, case)?;
        Ok(Blocks { rank: cx.rank(), writer: file.neighbour(cx.team), file, slots, order })
    }

    /// Prepares blocks that are written.
    pub(crate) fn fill_writes(&mut self, fill: Fill) {
        fill.write(self.rank, self.slots, self.file.outgoing());
    }

    /// Checks blocks that were written.
    pub(crate) fn check_writes(&mut self, fill: Fill) -> Result<Check> {
        fill.poison(self.writer, self.slots, self.file.incoming());
        if self.order == Order::Known {
            self.file.read_back()?;
            return Ok(fill.check(self.writer, self.slots, self.file.incoming(), self.rank));
        }
        self.file.read_places()?;
        unordered::check_written(&mut self.file, self.slots, fill)
    }

    /// Writes blocks that are read.
    pub(crate) fn fill_reads(&mut self, fill: Fill) -> Result<()> {
        fill.write(self.rank, self.slots, self.file.outgoing());
        self.file.write_all()?;
        fill.poison(self.rank, self.slots, self.file.incoming());
        Ok(())
    }

    /// Checks blocks that were read.
    pub(crate) fn check_reads(&mut self, fill: Fill) -> Result<Check> {
        if self.order == Order::Known {
            return Ok(fill.check(self.rank, self.slots, self.file.incoming(), self.rank));
        }
        unordered::check_read(&mut self.file, self.slots, fill)
    }
}
