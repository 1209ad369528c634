//! Messages of derived datatypes: blocks of bytes with gaps between them.

use std::{
    fmt,
    ops::Range,
    sync::{Mutex, PoisonError},
};

use ombx_record::{
    error::{Error, Result},
    result::Check,
    unit::Bytes,
};

use crate::benchmark::{
    CaseValues, Chosen, Named, Parameter,
    groups::{code, pairs},
    payload::{MessageId, Words},
};

crate::parameter! {
    /// Datatype of messages
    pub enum Datatype: "datatype", IfChosen, default Contiguous, refined by [&BLOCK_LENGTH, &STRIDE, &BLOCKS] {
        /// MPI_BYTE
        Contiguous = "contiguous",
        /// MPI_Type_vector: blocks of --block-length bytes every --stride bytes
        Vector = "vector",
        /// MPI_Type_create_hindexed: irregular blocks, whose mean length and distance are --block-length and --stride
        Indexed = "indexed",
        /// MPI_Type_create_struct: an int32_t, a double and bytes, with the gaps of C
        Struct = "struct",
    }
}

/// Payload of a block.
pub static BLOCK_LENGTH: Parameter = Parameter::free(
    "block-length",
    "BYTES",
    "Bytes of payload in a block of a derived datatype; for a struct, in all its members [default: 64]",
    |text| length("--block-length", text).map(drop),
);

/// Distance between blocks.
pub static STRIDE: Parameter = Parameter::free(
    "stride",
    "BYTES",
    "Distance from one block of a derived datatype to the next [default: twice --block-length; of a \
     struct, its size in C; with --blocks, the end of the last block]",
    |text| length("--stride", text).map(drop),
);

/// Payload of a block if the user gives none.
const DEFAULT_LENGTH: u64 = 64;
/// Largest block and largest distance: both are an `int` in MPI.
const MOST: Bytes = Bytes(1 << 30);
/// Largest payload of a message, whose elements MPI counts by an `int`.
pub const MOST_PAYLOAD: Bytes = Bytes(i32::MAX as u64);

/// Largest word of which lengths and places of indexed blocks are multiples.
pub const MOST_ALIGNED: u64 = 8;

/// Largest memory of a message with its gaps.
const MOST_SPAN: Bytes = Bytes(1 << 40);
/// Memory in bytes that a block needs in the lists of blocks, from which MPI makes the indexed datatype, and in the datatype.
const LISTED: u64 = 32;

/// Position and bytes of the `int32_t` and of the `double` of a struct. Its bytes follow.
const INT32: (u64, u64) = (0, 4);
const DOUBLE: (u64, u64) = (8, 8);
/// Position of the bytes of a struct.
pub const STRUCT_BYTES: u64 = DOUBLE.0 + DOUBLE.1;
/// Payload of a struct before its bytes.
const STRUCT_NUMBERS: u64 = INT32.1 + DOUBLE.1;
/// Alignment of a struct, that of a `double`.
const STRUCT_ALIGNMENT: u64 = 8;

/// Blocks of messages of a derived datatype. A message of S bytes of payload has S / `length` blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// The datatype, which is not contiguous.
    pub datatype: Datatype,
    /// Bytes of payload of a block; the mean if lengths are irregular.
    pub length: u64,
    /// Bytes from the start of one block to the start of the next; the mean if distances are irregular.
    pub stride: u64,
    /// Blocks that the user lists, of which each stride has all. `length` is then their payload.
    pub list: Option<&'static BlockList>,
}

impl Blocks {
    /// Returns the blocks of a case; `None` if messages are contiguous.
    ///
    /// # Errors
    /// Usage error for a length and a stride that the datatype cannot have.
    pub fn from_values(values: &CaseValues) -> Result<Option<Blocks>> {
        Blocks::described(values.get(), |parameter| values.text(parameter))
    }

    /// Returns the blocks of a datatype that a user describes; `None` if messages are contiguous.
    ///
    /// # Errors
    /// As [`Blocks::from_values`].
    pub fn chosen(datatype: Datatype, chosen: &Chosen) -> Result<Option<Blocks>> {
        Blocks::described(datatype, |parameter| chosen.text(parameter))
    }

    fn described<'t>(
        datatype: Datatype,
        text: impl Fn(&Parameter) -> Option<&'t str>,
    ) -> Result<Option<Blocks>> {
        if datatype == Datatype::Contiguous {
            return Ok(None);
        }
        let given = |parameter: &Parameter| {
            text(parameter).map(|text| length(&format!("--{}", parameter.name), text)).transpose()
        };
        if let Some(list) = text(&BLOCKS).filter(|_| datatype == Datatype::Indexed) {
            return Blocks::listed(BlockList::new(list)?, given(&STRIDE)?).map(Some);
        }
        let (length, stride) = (given(&BLOCK_LENGTH)?.unwrap_or(DEFAULT_LENGTH), given(&STRIDE)?);
        let least = match datatype {
            Datatype::Contiguous | Datatype::Vector | Datatype::Indexed => length,
            Datatype::Struct if length <= STRUCT_NUMBERS => {
                return Err(Error::usage(format!(
                    "--block-length {length}: a struct of an int32_t, a double and bytes has at least {} \
                     bytes of payload; choose --block-length {} or more",
                    STRUCT_NUMBERS + 1,
                    STRUCT_NUMBERS + 1
                )));
            }
            Datatype::Struct => (STRUCT_BYTES + length - STRUCT_NUMBERS).next_multiple_of(STRUCT_ALIGNMENT),
        };
        let default = if datatype == Datatype::Struct { least } else { 2 * length };
        let blocks = Blocks { datatype, length, stride: stride.unwrap_or(default), list: None };
        match blocks.stride {
            stride if stride > MOST.0 => Err(Error::usage(format!(
                "--block-length {}: blocks would begin {} apart, which is at most {MOST}; choose a shorter \
                 --block-length, or --stride",
                Bytes(length),
                Bytes(stride)
            ))),
            stride if stride < least => Err(Error::usage(format!(
                "--stride {stride} is shorter than a block of {least} bytes: choose --stride {least} or more"
            ))),
            stride if datatype == Datatype::Struct && !stride.is_multiple_of(STRUCT_ALIGNMENT) => {
                Err(Error::usage(format!(
                    "--stride {stride}: structs with a double are multiples of {STRUCT_ALIGNMENT} bytes \
                     apart; choose --stride {}",
                    stride.next_multiple_of(STRUCT_ALIGNMENT)
                )))
            }
            _ => Ok(Some(blocks)),
        }
    }

    /// Returns blocks that the user lists.
    fn listed(list: &'static BlockList, stride: Option<u64>) -> Result<Blocks> {
        let blocks = Blocks {
            datatype: Datatype::Indexed,
            length: list.length,
            stride: stride.unwrap_or(list.extent),
            list: Some(list),
        };
        if blocks.stride < list.extent {
            Err(Error::usage(format!(
                "--stride {}: the last of --blocks ends after {} bytes; choose --stride {} or more",
                blocks.stride, list.extent, list.extent
            )))
        } else {
            Ok(blocks)
        }
    }

    /// Returns the bits of all lengths and distances together: a word divides them if it divides this number.
    pub fn divided(self) -> u64 {
        self.length | self.stride | self.list.map_or(0, BlockList::divided)
    }

    /// Returns how many blocks a message has, or repetitions of listed blocks.
    ///
    /// # Errors
    /// [`Error::unsupported`] if the message is not a whole number of blocks, or too long.
    pub fn count(self, bytes: u64) -> Result<u64> {
        let Blocks { length, .. } = self;
        match bytes {
            _ if bytes > MOST_PAYLOAD.0 => Err(Error::unsupported(format!(
                "messages of a derived datatype have less than 2 GiB, not {bytes} bytes: choose smaller --sizes"
            ))),
            _ if self.span(bytes) > MOST_SPAN.0 => Err(Error::unsupported(format!(
                "a message of {bytes} bytes spans more than {MOST_SPAN} of memory: choose a smaller \
                 --stride, or smaller --sizes"
            ))),
            _ if bytes.is_multiple_of(length) => Ok(bytes / length),
            _ => Err(Error::unsupported(format!(
                "a message of {bytes} bytes is not a whole number of blocks of {length} bytes: choose a \
                 multiple of {length} with --sizes, or another --block-length"
            ))),
        }
    }

    /// Returns the bytes of memory from the first block to the end of the last stride.
    pub fn span(self, bytes: u64) -> u64 {
        (bytes / self.length).saturating_mul(self.stride)
    }

    /// Returns the memory in bytes that the datatype and the check of a message need: lists of blocks, and two copies of the message.
    pub fn extra_bytes(self, bytes: u64) -> u64 {
        let of_each = self.list.map_or(1, |list| list.places.len() as u64);
        let lists =
            if self.datatype == Datatype::Indexed { bytes / self.length * of_each * LISTED } else { 0 };
        self.span(bytes).saturating_mul(2).saturating_add(lists)
    }

    /// Returns the places of the payload in a message, in their order: one of each block, or the members of each struct.
    pub fn places(self, bytes: u64) -> impl Iterator<Item = Range<u64>> {
        let blocks = bytes / self.length;
        let parts = match (self.datatype, self.list) {
            (_, Some(list)) => list.places.len(),
            (Datatype::Struct, None) => 3,
            _ => 1,
        };
        (0..blocks).flat_map(move |at| (0..parts).map(move |part| self.place_of(at, part, blocks)))
    }

    /// Returns the place of a part of block `at` of a message.
    fn place_of(self, at: u64, part: usize, blocks: u64) -> Range<u64> {
        let Blocks { datatype, length, stride, list } = self;
        let (offset, bytes) = match (datatype, list) {
            (_, Some(list)) => {
                let place = &list.places[part];
                (place.start, place.end - place.start)
            }
            (Datatype::Contiguous | Datatype::Vector, None) => (0, length),
            (Datatype::Indexed, None) => self.irregular(at, blocks),
            (Datatype::Struct, None) => [INT32, DOUBLE, (STRUCT_BYTES, length - STRUCT_NUMBERS)][part],
        };
        let start = at * stride + offset;
        start..start + bytes
    }

    /// Returns the offset and the length of an indexed block. Each stays inside its stride. One block of two is as much longer as the
    /// other is shorter; both are multiples of the largest word that divides length and stride.
    fn irregular(self, at: u64, blocks: u64) -> (u64, u64) {
        let Blocks { length, stride, .. } = self;
        let word = 1 << (length | stride | MOST_ALIGNED).trailing_zeros();
        let up_to = |most: u64, seed: u64| mixed(seed) % (most / word + 1) * word;
        let pair = at / 2;
        let change =
            if pair * 2 + 1 < blocks { up_to((length - word).min(stride - length), pair) } else { 0 };
        let length = if at.is_multiple_of(2) { length - change } else { length + change };
        (up_to(stride - length, u64::MAX - at), length)
    }

    /// Returns the payload of a message.
    pub(super) fn gathered(self, bytes: u64, message: &[u8]) -> Vec<u8> {
        let place = |place: Range<u64>| &message[place.start as usize..place.end as usize];
        self.places(bytes).map(place).collect::<Vec<_>>().concat()
    }

    /// Writes a payload into its places in a message.
    pub(super) fn scatter(self, mut payload: &[u8], message: &mut [u8]) {
        for place in self.places(payload.len() as u64) {
            let (part, rest) = payload.split_at((place.end - place.start) as usize);
            message[place.start as usize..place.end as usize].copy_from_slice(part);
            payload = rest;
        }
    }

    /// Compares the gaps of a message with what was there before the message arrived.
    pub(super) fn check_gaps(self, before: Words, bytes: u64, message: &[u8], id: MessageId) -> Check {
        let mut whole = vec![0; message.len()];
        before.write(&mut whole);
        self.scatter(&self.gathered(bytes, message), &mut whole);
        compared(&whole, message, id)
    }

    /// Compares a message with its payload, and its gaps with what was there before the message arrived.
    pub fn check(self, payload: Words, before: Words, bytes: u64, message: &[u8], id: MessageId) -> Check {
        let (mut whole, mut arrived) = (vec![0; message.len()], vec![0; message.len()]);
        before.write(&mut whole);
        payload.write(&mut arrived);
        for place in self.places(bytes) {
            let place = place.start as usize..place.end as usize;
            whole[place.clone()].copy_from_slice(&arrived[place]);
        }
        compared(&whole, message, id)
    }
}

/// Returns what the row of a case names of its blocks.
pub(super) fn shown(values: &CaseValues, _: Bytes) -> Option<String> {
    Blocks::from_values(values).ok().flatten().map(|blocks| blocks.to_string())
}

impl fmt::Display for Blocks {
    /// Writes the length and the stride in bytes, as `64/128`. Listed blocks have their number and a code of their own, as `3:28/64:a1b2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.list {
            Some(list) => {
                write!(f, "{}:{}/{}:{:04x}", list.places.len(), self.length, self.stride, list.code)
            }
            None => write!(f, "{}/{}", self.length, self.stride),
        }
    }
}

/// Compares a message with what it should contain.
fn compared(whole: &[u8], message: &[u8], id: MessageId) -> Check {
    let differs = whole.iter().zip(message).position(|(expected, actual)| expected != actual);
    differs.map_or(Check::Passed, |at| Check::Failed(id.mismatch(at as u64, whole[at], message[at])))
}

/// Reads a number of bytes.
fn length(option: &str, text: &str) -> Result<u64> {
    let bytes: Bytes = text.parse()?;
    if (Bytes(1)..=MOST).contains(&bytes) {
        Ok(bytes.0)
    } else {
        Err(Error::usage(format!("{option} is at least 1 and at most {MOST} bytes")))
    }
}

/// Returns a number whose bits are well mixed.
fn mixed(number: u64) -> u64 {
    let product = number.wrapping_add(1).wrapping_mul(super::STEP);
    (product ^ (product >> 29)).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 33
}

/// Blocks that the user lists. Rows name the blocks of every derived datatype.
pub static BLOCKS: Parameter = Parameter::free(
    "blocks",
    "LIST|@FILE",
    "Displacement and length in bytes of the blocks of an indexed datatype, which a message repeats, as \
     0:8,24:16; @FILE has a line for each, as 0,8 [default: irregular blocks around --block-length and \
     --stride]",
    |text| BlockList::new(text).map(drop),
)
.named(Named::First(shown));

/// Largest displacement and length.
const MOST_BLOCKS: u64 = 1 << 30;

/// The blocks of one repetition.
#[derive(Debug, PartialEq, Eq)]
pub struct BlockList {
    /// Places in the order of the list, which is that of the payload.
    pub(super) places: Vec<Range<u64>>,
    /// Bytes of payload.
    pub(super) length: u64,
    /// Bytes from the start to the end of the last block.
    pub(super) extent: u64,
    /// Number that differs between lists.
    pub(super) code: u16,
}

/// Lists of this process by their text. Descriptions of messages, which are copied freely, refer to them.
static KNOWN: Mutex<Vec<(String, &BlockList)>> = Mutex::new(Vec::new());

impl BlockList {
    /// Returns the list that a text describes. It lives as long as the process.
    ///
    /// # Errors
    /// Usage error for a text that is no list of blocks, and for blocks that overlap.
    pub(super) fn new(text: &str) -> Result<&'static BlockList> {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, list)) = known.iter().find(|(of, _)| of == text) {
            return Ok(list);
        }
        let list: &'static BlockList = Box::leak(Box::new(BlockList::parse(text)?));
        known.push((text.to_owned(), list));
        Ok(list)
    }

    fn parse(text: &str) -> Result<BlockList> {
        let places: Vec<Range<u64>> =
            pairs("--blocks", text)?.into_iter().map(|(at, length)| at..at.saturating_add(length)).collect();
        if let Some(place) = places.iter().find(|place| place.is_empty() || place.end > MOST_BLOCKS) {
            return Err(Error::usage(format!(
                "--blocks {}:{}: a block has at least 1 byte and ends at 1 GiB at the latest",
                place.start,
                place.end - place.start
            )));
        }
        let mut ordered: Vec<&Range<u64>> = places.iter().collect();
        ordered.sort_by_key(|place| place.start);
        if let Some(pair) = ordered.windows(2).find(|pair| pair[1].start < pair[0].end) {
            return Err(Error::usage(format!(
                "--blocks: the block at {} overlaps the one at {}, and MPI allows no overlap where data arrives",
                pair[1].start, pair[0].start
            )));
        }
        let length = places.iter().map(|place| place.end - place.start).sum();
        let extent = ordered.last().map_or(0, |place| place.end);
        let code = code(places.iter().flat_map(|place| [place.start, place.end]));
        Ok(BlockList { places, length, extent, code })
    }

    /// Returns the bits of all displacements and lengths together: a word divides them if it divides this number.
    pub(super) fn divided(&self) -> u64 {
        self.places.iter().fold(0, |bits, place| bits | place.start | (place.end - place.start))
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod block_list_tests {
    use super::*;

    #[test]
    fn lists_have_places_in_their_order() {
        let list = BlockList::new("24:4,0:8,12:2").unwrap();
        assert_eq!(list.places, [24..28, 0..8, 12..14]);
        assert_eq!((list.length, list.extent, list.divided()), (14, 28, 8 | 24 | 4 | 12 | 2));
        assert!(std::ptr::eq(list, BlockList::new("24:4,0:8,12:2").unwrap()));
        assert_ne!(list.code, BlockList::new("24:4,0:8,12:1").unwrap().code);
    }

    #[test]
    fn mistakes_are_refused() {
        for (text, why) in [
            ("", "--blocks"),
            ("0:0", "at least 1 byte"),
            ("0:8,4:8", "overlaps"),
            ("8,16", "8"),
            ("0:2000000000", "1 GiB"),
        ] {
            let refusal = BlockList::new(text).unwrap_err().to_string();
            assert!(refusal.contains(why), "{text}: {refusal}");
        }
    }
}
