//! Where text is shown: how wide it may be, and whether in colours, without which it must be complete.

/// A terminal, or what takes text in place of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Characters of a line that fit.
    pub columns: usize,
    /// Whether it takes escape sequences for colours.
    pub is_coloured: bool,
}

/// What a reader is to see at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    Plain,
    Good,
    /// Something that makes figures doubtful.
    Doubtful,
    Bad,
}

impl Screen {
    /// A file or a pipe: lines of any width, no colours.
    pub const ENDLESS: Screen = Screen { columns: usize::MAX, is_coloured: false };

    /// The text in the colour of its mark, where there are colours.
    pub fn painted(self, mark: Mark, text: &str) -> String {
        let code = match mark {
            Mark::Good => "32",
            Mark::Doubtful => "33",
            Mark::Bad => "1;31",
            Mark::Plain => "",
        };
        if self.is_coloured && !code.is_empty() && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_those_who_take_them() {
        let coloured = Screen { is_coloured: true, ..Screen::ENDLESS };
        let bad = "\x1b[1;31mfailed\x1b[0m";
        assert_eq!(coloured.painted(Mark::Bad, "failed"), bad);
        assert_eq!(coloured.painted(Mark::Plain, "x"), "x");
        assert_eq!(coloured.painted(Mark::Good, ""), "");
        assert_eq!(Screen::ENDLESS.painted(Mark::Bad, "failed"), "failed");
    }
}
