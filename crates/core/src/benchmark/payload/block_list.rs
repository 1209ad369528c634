//! Blocks of indexed datatypes that the user lists.

use std::ops::Range;

use crate::{
    benchmark::{
        Named, Parameter,
        groups::{KnownLists, code, pairs},
        payload::blocks::shown,
    },
    error::{Error, Result},
};

/// Blocks that the user lists. Rows name the blocks of every derived datatype.
pub static BLOCKS: Parameter = Parameter::free(
    "blocks",
    "LIST|@FILE",
    "Displacement and length in bytes of the blocks of an indexed datatype, which a message repeats, as 0:8,24:16; @FILE has a line \
     for each, as 0,8 [default: irregular blocks around --block-length and --stride]",
    |text| BlockList::of(text).map(drop),
)
.named(Named::First(shown));

/// Largest displacement and length.
const MOST: u64 = 1 << 30;

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

static KNOWN: KnownLists<BlockList> = KnownLists::new();

impl BlockList {
    /// Returns the list that a text describes. It lives as long as the process.
    ///
    /// # Errors
    /// Usage error for a text that is no list of blocks, and for blocks that overlap.
    pub(super) fn of(text: &str) -> Result<&'static BlockList> {
        KNOWN.of(text, |text| BlockList::parse(text).map(Box::new))
    }

    fn parse(text: &str) -> Result<BlockList> {
        let places: Vec<Range<u64>> =
            pairs("--blocks", text)?.into_iter().map(|(at, length)| at..at.saturating_add(length)).collect();
        if let Some(place) = places.iter().find(|place| place.is_empty() || place.end > MOST) {
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
mod tests {
    use super::*;

    #[test]
    fn lists_have_places_in_their_order() {
        let list = BlockList::of("24:4,0:8,12:2").unwrap();
        assert_eq!(list.places, [24..28, 0..8, 12..14]);
        assert_eq!((list.length, list.extent, list.divided()), (14, 28, 8 | 24 | 4 | 12 | 2));
        assert!(std::ptr::eq(list, BlockList::of("24:4,0:8,12:2").unwrap()));
        assert_ne!(list.code, BlockList::of("24:4,0:8,12:1").unwrap().code);
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
            let refusal = BlockList::of(text).unwrap_err().to_string();
            assert!(refusal.contains(why), "{text}: {refusal}");
        }
    }
}
