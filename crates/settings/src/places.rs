//! Where the messages of a flow lie in memory: one place for both ends, or one for each; and how memory of a GPU is
//! registered.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::text::{as_text, nearest};
use super::words::words;

/// A kind of memory, or whose it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MemoryPlace {
    /// What the kernel gives without a request, on pages of 4 KiB on most machines, and of 64 KiB on some of ARM64.
    #[default]
    Ordinary,
    /// Huge pages, which were reserved.
    Huge,
    /// Huge pages, of usually 2 MiB, where the kernel finds some.
    Transparent,
    /// The host's memory behind a dmabuf: of the system heap, else of udmabuf; on the embedded device else a memfd.
    Dmabuf,
    /// A GPU's: the one with this number, or the one nearest to the adapter.
    Gpu(GpuMaker, Option<u32>),
}

words! {
    /// Whose GPU it is.
    GpuMaker {
        /// NVIDIA's, by CUDA's driver.
        Cuda = "cuda",
        /// AMD's, by ROCm's runtime.
        Rocm = "rocm",
    }
}

words! {
    /// How memory of a GPU is registered.
    Register {
        /// By its dmabuf, and where that is not to be had as peer memory.
        Auto = "auto",
        /// By its dmabuf (`ibv_reg_dmabuf_mr`).
        Dmabuf = "dmabuf",
        /// By its address (`ibv_reg_mr`), which a peer-memory module of the kernel knows.
        PeerMemory = "peermem",
    }
}

/// The places of both ends of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MemoryAt {
    /// At the end that the flow goes from.
    pub client: MemoryPlace,
    /// At the end that it goes to.
    pub server: MemoryPlace,
}

impl MemoryAt {
    /// This place for both ends.
    pub const fn both(place: MemoryPlace) -> MemoryAt {
        MemoryAt { client: place, server: place }
    }

    /// Whether an end has its memory on a GPU.
    pub fn has_gpu(self) -> bool {
        [self.client, self.server].iter().any(|place| matches!(place, MemoryPlace::Gpu(..)))
    }
}

/// Why a text is no place of memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum PlaceError {
    #[error(
        "`{word}` is no place of memory: places are {}, cuda:N, rocm:N, cuda:auto and rocm:auto{}", WORDS.join(", "),
        .nearest.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
    )]
    Unknown { word: String, nearest: Option<&'static str> },
    #[error(
        "`{0}` names no GPU: write {0}:0 for the first one, or {0}:auto for the one nearest to the adapter"
    )]
    NoGpu(&'static str),
    #[error(
        "`{0}` names an end twice, or none: write client=PLACE, server=PLACE, or client=PLACE+server=PLACE"
    )]
    Ends(String),
}

/// The host's, by their words.
const OF_HOST: [(&str, MemoryPlace); 4] = [
    ("ordinary", MemoryPlace::Ordinary),
    ("huge", MemoryPlace::Huge),
    ("transparent", MemoryPlace::Transparent),
    ("dmabuf", MemoryPlace::Dmabuf),
];

pub(crate) const WORDS: [&str; 4] = [OF_HOST[0].0, OF_HOST[1].0, OF_HOST[2].0, OF_HOST[3].0];

impl FromStr for MemoryPlace {
    type Err = PlaceError;

    fn from_str(word: &str) -> Result<MemoryPlace, PlaceError> {
        let unknown =
            || PlaceError::Unknown { word: word.to_owned(), nearest: nearest(word, &WORDS) };
        if let Some(maker) = GpuMaker::ALL.iter().find(|maker| maker.name() == word) {
            return Err(PlaceError::NoGpu(maker.name()));
        }
        if let Some((maker, number)) = word.split_once(':') {
            let ordinal = match number {
                "auto" => None,
                _ if number.starts_with('+') => return Err(unknown()),
                _ => Some(number.parse().map_err(|_| unknown())?),
            };
            return Ok(MemoryPlace::Gpu(maker.parse().map_err(|_| unknown())?, ordinal));
        }
        OF_HOST
            .iter()
            .find(|(name, _)| *name == word)
            .map_or_else(|| Err(unknown()), |(_, place)| Ok(*place))
    }
}

impl fmt::Display for MemoryPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryPlace::Gpu(maker, Some(number)) => write!(f, "{maker}:{number}"),
            MemoryPlace::Gpu(maker, None) => write!(f, "{maker}:auto"),
            of_host => {
                let named = OF_HOST.iter().find(|(_, place)| place == of_host);
                f.write_str(named.map_or("", |(name, _)| name))
            }
        }
    }
}

impl FromStr for MemoryAt {
    type Err = PlaceError;

    /// `PLACE`, `client=PLACE`, `server=PLACE` or `client=PLACE+server=PLACE`; an end that is not named has ordinary memory.
    fn from_str(text: &str) -> Result<MemoryAt, PlaceError> {
        if !text.contains('=') {
            return text.parse().map(MemoryAt::both);
        }
        let (mut client, mut server) = (None, None);
        for part in text.split('+') {
            let end = match part.split_once('=') {
                Some(("client", place)) => (&mut client, place),
                Some(("server", place)) => (&mut server, place),
                _ => return Err(PlaceError::Ends(text.to_owned())),
            };
            if end.0.replace(end.1.parse()?).is_some() {
                return Err(PlaceError::Ends(text.to_owned()));
            }
        }
        Ok(MemoryAt { client: client.unwrap_or_default(), server: server.unwrap_or_default() })
    }
}

impl fmt::Display for MemoryAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemoryAt { client, server } = self;
        match (client, server) {
            _ if client == server => write!(f, "{client}"),
            (_, MemoryPlace::Ordinary) => write!(f, "client={client}"),
            (MemoryPlace::Ordinary, _) => write!(f, "server={server}"),
            _ => write!(f, "client={client}+server={server}"),
        }
    }
}

as_text!(MemoryAt, {
    "type": "string",
    "description": "`ordinary`, `huge`, `transparent`, `dmabuf`, `cuda:N`, `rocm:N`, `cuda:auto` or `rocm:auto`; for one end \
        `client=PLACE` or `server=PLACE`, for both `client=PLACE+server=PLACE`",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for text in [
            "ordinary",
            "huge",
            "transparent",
            "dmabuf",
            "cuda:0",
            "rocm:7",
            "cuda:auto",
            "client=cuda:1",
            "server=dmabuf",
            "client=cuda:0+server=rocm:auto",
        ] {
            let places: MemoryAt = text.parse().unwrap();
            assert_eq!(places.to_string(), text);
            assert_eq!(places.has_gpu(), text.contains(':'));
        }
        let both: MemoryAt = "server=huge+client=huge".parse().unwrap();
        assert_eq!(both, MemoryAt::both(MemoryPlace::Huge));
    }

    #[test]
    fn what_is_no_place_says_what_to_write() {
        for (text, words) in [
            ("hugh", "did you mean `huge`?"),
            ("", "places are ordinary"),
            ("cuda", "write cuda:0"),
            ("cuda:", "is no place of memory"),
            ("cuda:+1", "is no place of memory"),
            ("cuda:-1", "is no place of memory"),
            ("metal:0", "is no place of memory"),
            ("client=cuda:0+client=huge", "names an end twice"),
            ("node=cuda:0", "client=PLACE"),
        ] {
            let error = text.parse::<MemoryAt>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
