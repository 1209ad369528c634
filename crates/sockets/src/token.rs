//! The secret that everyone of a session knows, and nobody else.

use std::{fmt, str::FromStr};

use ombx_core::error::{Error, Result};
use rustix::rand::{GetRandomFlags, getrandom};
use subtle::ConstantTimeEq;

/// A random secret of 128 bits. It is never an argument or an environment variable, which others on a host can read: it
/// travels through pipes and standard input.
#[derive(Clone, Copy)]
pub struct Token([u8; Token::BYTES]);

impl Token {
    /// Its length.
    pub const BYTES: usize = 16;

    /// A new one, from the kernel.
    pub fn random() -> Result<Token> {
        let mut bytes = [0u8; Token::BYTES];
        let mut filled = 0;
        while filled < bytes.len() {
            filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())
                .map_err(|e| Error::fabric(format!("the kernel gives no random numbers: {e}")))?;
        }
        Ok(Token(bytes))
    }

    /// What is sent to whoever knows it too.
    pub fn bytes(&self) -> &[u8; Token::BYTES] {
        &self.0
    }

    /// Whether these bytes are the token; takes the same time wherever they differ.
    pub fn is(&self, shown: &[u8]) -> bool {
        self.0.ct_eq(shown).into()
    }
}

impl From<[u8; Token::BYTES]> for Token {
    fn from(bytes: [u8; Token::BYTES]) -> Token {
        Token(bytes)
    }
}

/// Does not show it.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// In hexadecimal digits, for a pipe or a file that nobody else can read.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Token {
    type Err = Error;

    fn from_str(text: &str) -> Result<Token> {
        let bad = || Error::fabric("a session token is 32 hexadecimal digits; what came is something else");
        let digits = text.as_bytes();
        if digits.len() != 2 * Token::BYTES || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(bad());
        }
        let mut bytes = [0; Token::BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| bad())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| bad())?;
        }
        Ok(Token(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_like_no_other_and_survives_text() {
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
    fn what_is_no_token_is_refused() {
        for text in ["", "0", "zz", &"0".repeat(31), &"0".repeat(33), &"+".repeat(32), &"é".repeat(16)] {
            assert!(text.parse::<Token>().is_err(), "{text}");
        }
    }
}
