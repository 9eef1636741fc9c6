//! The secret that both ends share, from a flag, a file or the environment, in this order. It is
//! never printed.

use std::io::Read as _;
use std::path::PathBuf;

use crate::cli::args::TokenArgs;
use protocol::token::Token;

/// The environment variable that is read when no flag gives a token.
pub const TOKEN_VARIABLE: &str = "ROCEBENCH_TOKEN";

const MAX_BYTES: usize = 4096;

/// Why there is no usable token although one was given.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum TokenError {
    #[error("the token from {0} is empty: give it a secret, or leave it out")]
    Empty(String),
    #[error("the token from {0} is longer than {MAX_BYTES} bytes")]
    TooLong(String),
    #[error("cannot read the token file {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Unusable(#[from] protocol::token::TokenError),
}

/// The token that flags or environment give, if any.
///
/// # Errors
/// When one is given that cannot be read, is empty or far too long.
pub fn token(args: TokenArgs) -> Result<Option<Token>, TokenError> {
    let secret = secret(args)?;
    Ok(secret.map(Token::new).transpose()?)
}

fn secret(args: TokenArgs) -> Result<Option<Vec<u8>>, TokenError> {
    if let Some(text) = args.token {
        return sound(text.into_bytes(), || "--token".into()).map(Some);
    }
    if let Some(path) = args.token_file {
        let mut bytes = Vec::new();
        // Two more for the line's end, one to notice what is too long.
        let most = u64::try_from(MAX_BYTES + 3).unwrap_or(u64::MAX);
        std::fs::File::open(&path)
            .and_then(|file| file.take(most).read_to_end(&mut bytes))
            .map_err(|source| TokenError::Read { path: path.clone(), source })?;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
            if bytes.last() == Some(&b'\r') {
                bytes.pop();
            }
        }
        return sound(bytes, || format!("the file {}", path.display())).map(Some);
    }
    std::env::var_os(TOKEN_VARIABLE)
        .map(|value| sound(value.into_encoded_bytes(), || TOKEN_VARIABLE.into()))
        .transpose()
}

fn sound(bytes: Vec<u8>, from: impl FnOnce() -> String) -> Result<Vec<u8>, TokenError> {
    match bytes.len() {
        0 => Err(TokenError::Empty(from())),
        1..=MAX_BYTES => Ok(bytes),
        _ => Err(TokenError::TooLong(from())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_file(content: &[u8]) -> Result<Option<Vec<u8>>, TokenError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        secret(TokenArgs { token: None, token_file: Some(file.path().to_owned()) })
    }

    #[test]
    fn a_file_may_end_with_a_line() {
        for content in [&b"a b"[..], b"a b\n", b"a b\r\n"] {
            assert_eq!(from_file(content).unwrap().unwrap(), b"a b");
        }
        assert_eq!(from_file(b"\xff\n\n").unwrap().unwrap(), b"\xff\n");
    }

    #[test]
    fn empty_and_endless_tokens_are_refused() {
        assert!(matches!(from_file(b"\n"), Err(TokenError::Empty(_))));
        assert!(from_file(&[b'x'; MAX_BYTES]).is_ok());
        assert!(matches!(from_file(&[b'x'; MAX_BYTES + 1]), Err(TokenError::TooLong(_))));
        let endless = TokenArgs { token: None, token_file: Some("/dev/zero".into()) };
        assert!(matches!(secret(endless), Err(TokenError::TooLong(_))));
    }
}
