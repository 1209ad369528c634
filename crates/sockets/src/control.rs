//! The control layer that sessions and the pipeline share.
//!
//! A [`process::ProcessGroup`] starts processes of this binary in another role, watches them and ends them. Processes exchange
//! messages over a channel: a socket or a pair of pipes. A [`listener::Listener`] admits only peers
//! that show the session's [`Token`].

pub mod channel;
pub mod listener;
pub mod process;

use std::{fmt, str::FromStr};

use ombx_core::error::{Error, Result};
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

pub(crate) use self::{
    channel::{Channel, FrameError, MAX_BODY, MAX_PIPELINE_MESSAGE, MessageReader, MessageWriter},
    listener::{Attempt, Peer},
    process::Execution,
};
pub use self::{
    listener::Listener,
    process::{ProcessGroup, Started},
};

/// A random secret of 128 bits. It travels through pipes and standard input only: other users of a host can read arguments
/// and environment variables.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Token([u8; Token::BYTES]);

impl Token {
    /// Length in bytes.
    pub const BYTES: usize = 16;

    /// Returns a new token from the kernel's random numbers.
    pub fn random() -> Result<Token> {
        let mut bytes = [0u8; Token::BYTES];
        let mut filled = 0;
        while filled < bytes.len() {
            filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())
                .map_err(|e| Error::fabric(format!("cannot read random numbers from the kernel: {e}")))?;
        }
        Ok(Token(bytes))
    }

    /// Returns the bytes that a peer has to show.
    pub fn bytes(&self) -> &[u8; Token::BYTES] {
        &self.0
    }

    /// Returns whether `shown` is the token, in a time that does not depend on where they differ.
    pub fn is(&self, shown: &[u8]) -> bool {
        self.0.ct_eq(shown).into()
    }
}

impl From<[u8; Token::BYTES]> for Token {
    fn from(bytes: [u8; Token::BYTES]) -> Token {
        Token(bytes)
    }
}

impl From<Token> for String {
    fn from(token: Token) -> String {
        token.to_string()
    }
}

impl TryFrom<String> for Token {
    type Error = Error;

    fn try_from(text: String) -> Result<Token> {
        text.parse()
    }
}

/// Hides the token, so that no log contains it.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Writes hexadecimal digits, for a pipe or a file that only this user can read.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl FromStr for Token {
    type Err = Error;

    fn from_str(text: &str) -> Result<Token> {
        let is_token = text.len() == 2 * Token::BYTES && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_token);
        number
            .map(|number| Token(number.to_be_bytes()))
            .ok_or_else(|| Error::fabric("this is no session token: it must have 32 hexadecimal digits"))
    }
}

#[cfg(test)]
mod token_tests {
    use super::*;

    #[test]
    fn tokens_differ_and_are_parsed_as_printed() {
        let (a, b) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(a.is(a.bytes()) && !a.is(b.bytes()) && !a.is(&a.bytes()[..8]) && !a.is(&[]));
        assert!(a.to_string().parse::<Token>().unwrap().is(a.bytes()));
    }

    #[test]
    fn a_token_is_not_shown_by_accident() {
        let token = Token::random().unwrap();
        assert_eq!(format!("{token:?}"), "Token(..)");
    }

    #[test]
    fn other_text_is_rejected() {
        for text in ["", "0", "zz", &"0".repeat(31), &"0".repeat(33), &"+".repeat(32), &"é".repeat(16)] {
            assert!(text.parse::<Token>().is_err(), "{text}");
        }
    }
}
