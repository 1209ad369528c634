//! The header of a datagram.

/// Length of a header in bytes.
pub(super) const LENGTH: usize = 8;

/// The kind of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The message with this number.
    Message,
    /// All messages before this number have arrived.
    Acknowledgement,
    /// Asks for `count` messages from this number on; 0 asks for all, [`ACKNOWLEDGEMENT`] for an acknowledgement.
    Request,
    /// Carries the token when a link is opened. Count 0 asks for an answer; count 1 is the answer.
    Hello,
}

/// Kind (2 bits), count (22 bits) and number (40 bits), little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) count: u64,
    pub(super) number: u64,
}

/// Count of a [`Kind::Request`] that asks for an acknowledgement.
pub(super) const ACKNOWLEDGEMENT: u64 = (1 << 22) - 1;

impl Header {
    #[inline(always)]
    pub(super) fn new(kind: Kind, number: u64, count: u64) -> Header {
        Header { kind, count, number }
    }

    #[inline(always)]
    pub(super) fn encode(self) -> [u8; LENGTH] {
        (self.number << 24 | self.count.min(ACKNOWLEDGEMENT) << 2 | self.kind as u64).to_le_bytes()
    }

    #[inline(always)]
    pub(super) fn decode(bytes: [u8; LENGTH]) -> Header {
        let header = u64::from_le_bytes(bytes);
        let kind = match header & 3 {
            0 => Kind::Message,
            1 => Kind::Acknowledgement,
            2 => Kind::Request,
            _ => Kind::Hello,
        };
        Header { kind, count: header >> 2 & ACKNOWLEDGEMENT, number: header >> 24 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ombx_core::testkit::seeded())]
        #[test]
        fn headers_are_decoded_as_encoded(number in 0u64..1 << 40, count in 0u64..=ACKNOWLEDGEMENT, kind in 0usize..4) {
            let kind = [Kind::Message, Kind::Acknowledgement, Kind::Request, Kind::Hello][kind];
            let header = Header::new(kind, number, count);
            prop_assert_eq!(Header::decode(header.encode()), header);
        }
    }
}
