//! The first bytes of a datagram.

/// Bytes before the message.
pub(super) const HEAD: usize = 8;

/// What a datagram is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The message of this number.
    Message,
    /// All messages before this number have arrived.
    Receipt,
    /// Messages from this number on are missing: as many as the count says, or all if it is 0. With the most that a count
    /// can be: a receipt is missing.
    Ask,
    /// Both ends are there; the token follows. Counts 0 ask for an answer, counts 1 are one.
    Greeting,
}

/// The first bytes of a datagram: what it is (2 bits), a count (22 bits) and a number (40 bits), little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) what: What,
    pub(super) count: u64,
    pub(super) number: u64,
}

/// In an [`What::Ask`]: for a receipt.
pub(super) const RECEIPT: u64 = (1 << 22) - 1;

impl Word {
    #[inline(always)]
    pub(super) fn new(what: What, number: u64, count: u64) -> Word {
        Word { what, count, number }
    }

    #[inline(always)]
    pub(super) fn encode(self) -> [u8; HEAD] {
        (self.number << 24 | self.count.min(RECEIPT) << 2 | self.what as u64).to_le_bytes()
    }

    #[inline(always)]
    pub(super) fn decode(bytes: [u8; HEAD]) -> Word {
        let word = u64::from_le_bytes(bytes);
        let what = match word & 3 {
            0 => What::Message,
            1 => What::Receipt,
            2 => What::Ask,
            _ => What::Greeting,
        };
        Word { what, count: word >> 2 & RECEIPT, number: word >> 24 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_survive(number in 0u64..1 << 40, count in 0u64..=RECEIPT, what in 0usize..4) {
            let what = [What::Message, What::Receipt, What::Ask, What::Greeting][what];
            let word = Word::new(what, number, count);
            prop_assert_eq!(Word::decode(word.encode()), word);
        }
    }
}
