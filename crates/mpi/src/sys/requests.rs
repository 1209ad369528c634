//! The number of persistent requests that a rank can have.

use ombx_core::{
    benchmark::{Context, cold::Copies},
    error::{Error, Result},
};

/// Most requests of a rank. MPICH 4.0 has at most 262,144.
const MOST: u64 = 1 << 17;
/// Estimate of the memory in bytes of a request.
const BYTES: u64 = 1024;

/// Checks that there is memory for `each` requests for each copy of the buffers, and for `bytes` bytes of other data. Collective.
///
/// # Errors
/// There are too many requests, or there is not enough memory.
pub(crate) fn afford(cx: &Context<'_>, copies: Copies, each: u64, bytes: u64) -> Result<()> {
    let (count, requests) = (copies.count(), copies.count().saturating_mul(each));
    if count > 1 && requests > MOST {
        return Err(Error::unsupported(format!(
            "each of {count} copies of the buffers needs {each} persistent requests, together more than {MOST}: choose larger --sizes, or \
             a smaller --cache-size"
        )));
    }
    cx.afford(bytes.saturating_add(requests.saturating_mul(BYTES)))
}
