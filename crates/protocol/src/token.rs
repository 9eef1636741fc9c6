//! Proof of a shared token without sending it: each end sends the HMAC-SHA256, keyed with the token,
//! of its role and both nonces. The roles differ, so a proof cannot be sent back to who made it. This
//! keeps strangers from the server; it neither encrypts nor signs what follows, and a short token can be
//! guessed by who records a handshake.

use std::fmt;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use thiserror::Error;

/// Length of a nonce, in bytes.
pub const NONCE_BYTES: usize = 32;

/// Random bytes of one end, used for one handshake.
pub type Nonce = [u8; NONCE_BYTES];

/// The end that sends a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that opened the connection.
    Client,
    /// The end that accepted the connection.
    Server,
}

/// Why a token or a nonce could not be had.
#[derive(Debug, Error)]
pub enum TokenError {
    #[error("the token is empty; give --token at least one character")]
    Empty,
    #[error("the token cannot be used as a key; choose another")]
    Unusable,
}

/// The secret that both ends were started with.
#[derive(Clone)]
pub struct Token {
    keyed: Hmac<Sha256>,
}

impl Token {
    /// The key is the text's UTF-8 bytes.
    pub fn new(text: impl AsRef<[u8]>) -> Result<Self, TokenError> {
        let key = text.as_ref();
        if key.is_empty() {
            return Err(TokenError::Empty);
        }
        let keyed = Hmac::new_from_slice(key).map_err(|_| TokenError::Unusable)?;
        Ok(Token { keyed })
    }

    /// The proof that `role` sends, in hex.
    pub fn prove(&self, role: Role, client: &Nonce, server: &Nonce) -> String {
        to_hex(&self.over(role, client, server).finalize().into_bytes())
    }

    /// Whether `mac` is the proof of `role`; the time taken does not depend on how much of it is right.
    pub fn verify(&self, role: Role, client: &Nonce, server: &Nonce, mac: &str) -> bool {
        from_hex::<32>(mac)
            .is_some_and(|mac| self.over(role, client, server).verify_slice(&mac).is_ok())
    }

    fn over(&self, role: Role, client: &Nonce, server: &Nonce) -> Hmac<Sha256> {
        // Labels of one length and nonces of one length: no two inputs share their bytes.
        let label = match role {
            Role::Client => b"rocebench client proof\0",
            Role::Server => b"rocebench server proof\0",
        };
        self.keyed.clone().chain_update(label).chain_update(client).chain_update(server)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Draws a nonce from the system's random numbers.
pub fn nonce() -> Result<Nonce, std::io::Error> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|error| match error.raw_os_error() {
        Some(code) => std::io::Error::from_raw_os_error(code),
        None => std::io::Error::other(error.to_string()),
    })?;
    Ok(nonce)
}

/// Writes two lower-case hex digits a byte.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Exactly `N` bytes from hex, in either case; `None` if the text is anything else.
pub fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != N * 2 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: Nonce = [1; NONCE_BYTES];
    const SERVER: Nonce = [2; NONCE_BYTES];

    #[test]
    fn only_the_same_token_role_and_nonces_verify() {
        let token = Token::new("secret").unwrap();
        let mac = token.prove(Role::Client, &CLIENT, &SERVER);
        assert!(token.verify(Role::Client, &CLIENT, &SERVER, &mac));
        assert!(token.verify(Role::Client, &CLIENT, &SERVER, &mac.to_uppercase()));
        let reflected = token.verify(Role::Server, &CLIENT, &SERVER, &mac);
        let swapped = token.verify(Role::Client, &SERVER, &CLIENT, &mac);
        let other = Token::new("Secret").unwrap();
        let of_other = other.verify(Role::Client, &CLIENT, &SERVER, &mac);
        assert_eq!([reflected, swapped, of_other], [false; 3]);
    }

    /// Computed with Python's `hmac` module.
    #[test]
    fn the_proof_is_hmac_sha256_of_role_and_nonces() {
        let token = Token::new("secret").unwrap();
        let proof = "74ce20c41fc5e40172287f95fb358093813b567bb82b89eaf81558226364501f";
        assert_eq!(token.prove(Role::Client, &CLIENT, &SERVER), proof);
    }

    #[test]
    fn a_mac_cut_short_or_not_hex_is_refused() {
        let token = Token::new("secret").unwrap();
        let mac = token.prove(Role::Server, &CLIENT, &SERVER);
        let (long, no_hex) = (format!("{mac}00"), mac.replace(&mac[..1], "g"));
        for bad in ["", &mac[..62], &mac[..63], &long, &no_hex] {
            assert!(!token.verify(Role::Server, &CLIENT, &SERVER, bad), "{bad}");
        }
    }

    #[test]
    fn an_empty_token_is_none() {
        assert!(matches!(Token::new(""), Err(TokenError::Empty)));
    }

    #[test]
    fn a_token_is_not_printed() {
        assert!(!format!("{:?}", Token::new("hunter2").unwrap()).contains("hunter2"));
    }

    #[test]
    fn hex_round_trips_and_nonces_differ() {
        let nonce_bytes = nonce().unwrap();
        assert_eq!(from_hex(&to_hex(&nonce_bytes)), Some(nonce_bytes));
        assert_ne!(nonce_bytes, nonce().unwrap());
        assert_eq!(from_hex::<2>("00é"), None);
        assert_eq!(from_hex::<1>("+f"), None);
    }
}
