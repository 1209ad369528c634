//! Derived datatypes of messages, and where their payload and gaps are.

use ombx_core::benchmark::{
    Chosen, ParameterValue as _,
    payload::{BLOCK_LENGTH, BLOCKS, Blocks, Datatype, STRIDE},
};
use ombx_record::{error::Result, result::Measurement};

/// Derived datatypes of a job, and its settings of their blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Derived {
    datatypes: &'static [Datatype],
    settings: &'static [(&'static str, &'static str)],
}

/// Small blocks.
pub(super) const SMALL: Derived = Derived {
    datatypes: &[Datatype::Vector, Datatype::Indexed],
    settings: &[(BLOCK_LENGTH.name, "8"), (STRIDE.name, "12")],
};
/// Structs of 32 bytes, with a gap between `int32_t` and `double`.
pub(super) const STRUCTS: Derived =
    Derived { datatypes: &[Datatype::Struct], settings: &[(BLOCK_LENGTH.name, "24"), (STRIDE.name, "40")] };
/// Listed blocks whose payload begins neither at the first byte of memory nor at the lowest block.
pub(super) const LISTED: Derived = Derived {
    datatypes: &[Datatype::Indexed],
    settings: &[(BLOCKS.name, "20:6,4:8,14:2"), (STRIDE.name, "32")],
};

impl Derived {
    /// Returns the options of a job.
    pub(super) fn words(self) -> String {
        let datatypes: Vec<&str> = self.names().collect();
        let settings = self.settings.iter().map(|(name, value)| format!(" --{name} {value}"));
        format!("--datatype {}{}", datatypes.join(","), settings.collect::<String>())
    }

    /// Returns the names of the datatypes.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        self.datatypes.iter().map(|datatype| datatype.name())
    }

    /// Returns the blocks of messages of a datatype.
    fn blocks(self, datatype: Datatype) -> Result<Option<Blocks>> {
        let mut chosen = Chosen::default();
        self.settings.iter().for_each(|(name, value)| chosen.set(name, [*value]));
        Blocks::chosen(datatype, &chosen)
    }

    /// Returns the position in memory of a byte of the payload of a row.
    pub(super) fn position(self, row: &Measurement, bytes: u64, byte: u64) -> Result<u64> {
        let name = row.axes.get(Datatype::PARAMETER.name).map_or(Datatype::DEFAULT.name(), String::as_str);
        let blocks = self.blocks(Datatype::parse(name)?)?;
        Ok(blocks.and_then(|blocks| blocks.places(bytes).flatten().nth(byte as usize)).unwrap_or(byte))
    }

    /// Returns the position of a byte that is in a gap of the first datatype, in the second half of a message.
    pub(super) fn gap(self, bytes: u64) -> u64 {
        let blocks = self.blocks(self.datatypes[0]).ok().flatten().expect("a derived datatype");
        let payload: Vec<u64> = blocks.places(bytes).flatten().collect();
        let mut rest = blocks.span(bytes) / 2..;
        rest.find(|at| !payload.contains(at)).expect("a byte after the payload")
    }
}
