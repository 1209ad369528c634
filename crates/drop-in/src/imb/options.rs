//! What the options of IMB say, as plain values.

use std::{path::PathBuf, time::Duration};

use ombx_core::benchmark::{
    ElementType, RankMatrix, Threading,
    memory::{Api, Place},
};
use ombx_record::{
    error::{Error, Result},
    unit::Bytes,
};

use crate::imb::{
    ImbGroups,
    plan::{IterationPolicy, Iterations},
    programs::Program,
};

/// Options of the programs of IMB. An option that is not given is `None`, or an empty list.
#[derive(Debug)]
pub struct ImbOptions {
    /// `-npmin`
    pub npmin: Option<u32>,
    /// `-iter`
    pub iter: Option<Iterations>,
    /// `-time`
    pub time: Option<Duration>,
    /// `-iter_policy`
    pub iter_policy: Option<IterationPolicy>,
    /// `-msglog`
    pub msglog: Option<SizeRange>,
    /// `-msglen`
    pub msglen: Option<PathBuf>,
    /// `-msgsize`
    pub msgsize: Vec<Bytes>,
    /// `-zero_size`
    pub zero_size: Option<bool>,
    /// `-mem`, in bytes
    pub mem: Option<u64>,
    /// `-off_cache`
    pub off_cache: Option<OffCache>,
    /// `-window_size`
    pub window_size: Option<u32>,
    /// `-root_shift`
    pub root_shift: Option<bool>,
    /// `-multi`: how the figures of groups are shown; `None` if one group runs at a time.
    pub multi: Option<ImbGroups>,
    /// `-map`
    pub map: Option<RankMatrix>,
    /// `-thread_level`
    pub thread_level: Option<Threading>,
    /// `-mem_alloc_type`
    pub mem_alloc_type: Option<MemoryKind>,
    /// `-warm_up`
    pub warm_up: Option<bool>,
    /// Types of messages.
    pub types: TypeOptions,
    /// Options that IMB-MT alone has.
    pub threads: ThreadOptions,
    /// Options that ombx rejects or that have no effect.
    pub other: OtherOptions,
    /// Directory of the files of IMB-IO.
    pub directory: Option<PathBuf>,
}

impl ImbOptions {
    /// Gives options that are not given the defaults of a program that has other ones than most.
    pub fn settle(&mut self, program: &Program) {
        let iterations =
            if program.is_peer_to_peer() { Iterations::PEER_TO_PEER } else { Iterations::default() };
        self.iter.get_or_insert(iterations);
        if program.has_accelerators {
            self.mem_alloc_type.get_or_insert(Place::Device);
        }
    }
}

/// IMB's `-mem_alloc_type`: the memory in ombx, through the driver of an interface.
pub type MemoryKind = fn(Api) -> Place;

/// Options of IMB that ombx rejects or that have no effect.
#[derive(Debug)]
pub struct OtherOptions {
    /// `-sync`
    pub sync: Option<bool>,
    /// `-imb_barrier`
    pub imb_barrier: Option<bool>,
    /// `-msg_pause`
    pub msg_pause: Option<String>,
    /// `-pause`, in microseconds
    pub pause: Option<u64>,
    /// `-msgwr`
    pub msgwr: Option<bool>,
    /// `-msgrd`
    pub msgrd: Option<bool>,
}

/// Options that IMB-MT alone has.
#[derive(Debug)]
pub struct ThreadOptions {
    /// `-count`
    pub count: Vec<u64>,
    /// `-datatype`
    pub datatype: Option<ElementType>,
    /// `-repeat`
    pub repeat: Option<u64>,
    /// `-warmup`
    pub warmup: Option<u64>,
    /// `-stride`
    pub stride: Option<u32>,
    /// `-noheader`
    pub noheader: bool,
    /// `-barrier`: whether threads leave a barrier before each sample, as in ombx.
    pub barrier: Option<bool>,
    /// `-malloc_align`
    pub malloc_align: Option<u64>,
    /// `-malloc_algo`
    pub malloc_algo: Option<String>,
    /// `-check`
    pub check: Option<String>,
}

/// Types of messages.
#[derive(Debug)]
pub struct TypeOptions {
    /// `-data_type`: element of messages of benchmarks that move data.
    pub data_type: ElementType,
    /// `-red_data_type`: element of reductions and accumulates.
    pub red_data_type: ElementType,
    /// `-contig_type`: distance of two elements in a derived datatype, in elements; 0 without such a datatype.
    pub contig_type: u64,
}

impl TypeOptions {
    /// Returns the bytes from one element of this width to the next, if elements are in a derived datatype.
    pub(crate) fn stride(&self, width: u64) -> Option<u64> {
        (self.contig_type > 0).then_some(self.contig_type * width)
    }
}

/// IMB's `-off_cache`: buffers that are not in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffCache {
    /// Buffers that stay in the cache, as without the option.
    No,
    /// Buffers that are larger than the cache of the system.
    LastLevel,
    /// Buffers that are larger than a cache of this many bytes.
    Bytes(u64),
}

/// Largest cache line whose length ombx respects: copies of buffers are this far apart.
const LONGEST_LINE: u64 = 128;

impl OffCache {
    /// Reads `MIB` or `MIB,LINE`.
    ///
    /// # Errors
    /// Usage error for another text, and for longer lines of a cache than ombx respects.
    pub fn parse(text: &str) -> Result<OffCache> {
        let (size, line) = text.split_once(',').unwrap_or((text, "64"));
        let mib = size.parse::<f64>().ok().filter(|mib| *mib == -1.0 || (0.0..=1e6).contains(mib));
        let line = line.parse::<f64>().ok().filter(|line| *line >= 0.0);
        match (mib, line) {
            (Some(_), Some(line)) if line > LONGEST_LINE as f64 => Err(Error::usage(format!(
                "cache lines of more than {LONGEST_LINE} bytes are not supported: give a shorter LINE, or none"
            ))),
            (Some(0.0), Some(_)) => Ok(OffCache::No),
            (Some(-1.0), Some(_)) => Ok(OffCache::LastLevel),
            (Some(mib), Some(_)) => Ok(OffCache::Bytes(((mib * (1u64 << 20) as f64) as u64).max(1))),
            _ => Err(Error::usage(
                "not a size in MiB: give -1, or 32, or 32,64 with the length of a cache line in bytes",
            )),
        }
    }

    /// Returns the size of the cache that is given; `None` for that of the system.
    pub(crate) fn bytes(self) -> Option<u64> {
        match self {
            OffCache::Bytes(bytes) => Some(bytes),
            OffCache::No | OffCache::LastLevel => None,
        }
    }
}

/// IMB's `-msglog`: exponents of the smallest and the largest message.
#[derive(Debug, Clone, Copy)]
pub struct SizeRange {
    /// Smallest exponent; `None` if only the largest is given.
    pub least: Option<u32>,
    /// Largest exponent.
    pub most: u32,
}

/// Largest exponent of IMB.
const MOST: u32 = 30;

impl SizeRange {
    /// Reads `MAX` or `MIN:MAX`.
    ///
    /// # Errors
    /// Usage error for another text.
    pub fn parse(text: &str) -> Result<SizeRange> {
        let (least, most) = text.split_once(':').map_or((None, text), |(least, most)| (Some(least), most));
        let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n <= MOST);
        match (least.map(number), number(most)) {
            (None, Some(most)) => Ok(SizeRange { least: None, most }),
            (Some(Some(least)), Some(most)) if least <= most => Ok(SizeRange { least: Some(least), most }),
            _ => Err(Error::usage(format!(
                "not exponents from 0 to {MOST}: give MIN:MAX or MAX, as in 3:4 for 8 and 16 bytes"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_mebibytes() {
        let found =
            ["-1", "0", "2.5", "16,128", "-1,64", "-1.0,0.0"].map(|text| OffCache::parse(text).unwrap());
        let bytes = [5 << 19, 16 << 20].map(OffCache::Bytes);
        assert_eq!(
            found,
            [OffCache::LastLevel, OffCache::No, bytes[0], bytes[1], OffCache::LastLevel, OffCache::LastLevel]
        );
        for text in ["", "-2", "x", "16,", "16,x", "16,256", "16,64,1", "inf", "nan"] {
            assert!(OffCache::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_exponents() {
        let SizeRange { least, most } = SizeRange::parse("3:4").unwrap();
        assert_eq!((least, most), (Some(3), 4));
        assert_eq!(SizeRange::parse("22").unwrap().least, None);
        for text in ["4:3", "31", "a", ":", "1:2:3"] {
            assert!(SizeRange::parse(text).is_err(), "{text}");
        }
    }
}
