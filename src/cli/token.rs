//! The secret that both ends share, from a flag, a file or the environment, in this order. It is
//! never printed.

use std::fmt;
use std::io::Read as _;
use std::path::PathBuf;

use super::args::TokenArgs;

/// The environment variable that is read when no flag gives a token.
pub const TOKEN_VARIABLE: &str = "ROCEBENCH_TOKEN";

const MAX_BYTES: usize = 4096;

/// A secret; its `Debug` text hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Vec<u8>);

/// Why there is no usable token although one was given.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It would protect nothing.
    #[error("the token from {0} is empty: give it a secret, or leave it out")]
    Empty(String),
    /// Longer than a secret that a person or a generator makes.
    #[error("the token from {0} is longer than {MAX_BYTES} bytes")]
    TooLong(String),
    /// The file is not there, or not readable.
    #[error("cannot read the token file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

impl Token {
    /// The secret.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn new(bytes: Vec<u8>, from: impl FnOnce() -> String) -> Result<Token, TokenError> {
        match bytes.len() {
            0 => Err(TokenError::Empty(from())),
            1..=MAX_BYTES => Ok(Token(bytes)),
            _ => Err(TokenError::TooLong(from())),
        }
    }

    /// The token that flags or environment give, if any.
    ///
    /// # Errors
    /// When one is given that cannot be read, is empty or far too long.
    pub fn find(args: TokenArgs) -> Result<Option<Token>, TokenError> {
        if let Some(text) = args.token {
            return Token::new(text.into_bytes(), || "--token".into()).map(Some);
        }
        if let Some(path) = args.token_file {
            let mut bytes = Vec::new();
            // Two more for the line's end, one to notice what is too long.
            let most = u64::try_from(MAX_BYTES + 3).unwrap_or(u64::MAX);
            std::fs::File::open(&path)
                .and_then(|file| file.take(most).read_to_end(&mut bytes))
                .map_err(|source| TokenError::Read {
                    path: path.clone(),
                    source,
                })?;
            if bytes.last() == Some(&b'\n') {
                bytes.pop();
                if bytes.last() == Some(&b'\r') {
                    bytes.pop();
                }
            }
            return Token::new(bytes, || format!("the file {}", path.display())).map(Some);
        }
        std::env::var_os(TOKEN_VARIABLE)
            .map(|value| Token::new(value.into_encoded_bytes(), || TOKEN_VARIABLE.into()))
            .transpose()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_file(content: &[u8]) -> Result<Option<Token>, TokenError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        Token::find(TokenArgs {
            token: None,
            token_file: Some(file.path().to_owned()),
        })
    }

    #[test]
    fn a_file_may_end_with_a_line() {
        for content in [&b"a b"[..], b"a b\n", b"a b\r\n"] {
            assert_eq!(from_file(content).unwrap().unwrap().as_bytes(), b"a b");
        }
        assert_eq!(
            from_file(b"\xff\n\n").unwrap().unwrap().as_bytes(),
            b"\xff\n"
        );
    }

    #[test]
    fn empty_and_endless_tokens_are_refused() {
        assert!(matches!(from_file(b"\n"), Err(TokenError::Empty(_))));
        assert!(from_file(&[b'x'; MAX_BYTES]).is_ok());
        assert!(matches!(
            from_file(&[b'x'; MAX_BYTES + 1]),
            Err(TokenError::TooLong(_))
        ));
        let endless = TokenArgs {
            token: None,
            token_file: Some("/dev/zero".into()),
        };
        assert!(matches!(Token::find(endless), Err(TokenError::TooLong(_))));
    }

    #[test]
    fn it_is_not_printed() {
        let token = Token::find(TokenArgs {
            token: Some("s3cret".into()),
            token_file: None,
        })
        .unwrap();
        assert_eq!(format!("{token:?}"), "Some(Token(hidden))");
    }
}
