//! Colours for a terminal. The text must be complete without them.

#[derive(Clone, Copy, Debug)]
pub struct Style {
    coloured: bool,
}

impl Style {
    pub fn plain() -> Style {
        Style { coloured: false }
    }

    /// Escape sequences for a terminal.
    pub fn coloured() -> Style {
        Style { coloured: true }
    }

    fn marked(self, code: &str, text: &str) -> String {
        if self.coloured && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub(super) fn heading(self, text: &str) -> String {
        self.marked("1", text)
    }

    pub(super) fn code(self, text: &str) -> String {
        self.marked("36", text)
    }

    pub(super) fn state(self, text: &str) -> String {
        self.marked("32", text)
    }

    pub(super) fn careful(self, text: &str) -> String {
        self.marked("33", text)
    }

    pub(super) fn error(self, text: &str) -> String {
        self.marked("1;31", text)
    }

    pub(super) fn faint(self, text: &str) -> String {
        self.marked("2", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_terminals_get_marks() {
        assert_eq!(Style::plain().error("x"), "x");
        assert_eq!(Style::coloured().heading("x"), "\x1b[1mx\x1b[0m");
        assert_eq!(Style::coloured().code(""), "");
    }
}
