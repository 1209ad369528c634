//! The codec of messages between processes: postcard, a compact binary form of serde's data model.
//!
//! All ranks of a job are the same build, so that messages need neither names nor versions. Types with fields that files leave out
//! (`skip_serializing_if`) or with untagged values have no such form; `fact` and `benchmark/figure` translate them.

use serde::{Serialize, de::DeserializeOwned};

/// Returns the bytes of a message.
///
/// # Panics
/// The type has no fixed form, which a test of the message shows.
pub fn encode<T: Serialize + ?Sized>(message: &T) -> Vec<u8> {
    postcard::to_allocvec(message).expect("the form of a message is fixed")
}

/// Returns the message of some bytes; `None` if they are not exactly one, as from another build of ombx.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (message, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_message_is_decoded() {
        let message = (7u32, Some("a".to_owned()), vec![1u64, u64::MAX]);
        let bytes = encode(&message);
        assert_eq!(decode(&bytes), Some(message));
        type Message = (u32, Option<String>, Vec<u64>);
        assert!((0..bytes.len()).all(|cut| decode::<Message>(&bytes[..cut]).is_none()));
        assert_eq!(decode::<Message>(&[&bytes[..], &[0]].concat()), None);
        // The length says more elements than there are bytes.
        assert_eq!(decode::<Vec<u64>>(&[0xff, 0xff, 0xff, 0xff, 0x0f]), None);
    }
}
