//! Colour, on a terminal only.

use std::{
    env,
    io::{self, IsTerminal},
};

/// Whether and how to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Style {
    colour: bool,
}

/// For stdout.
pub(super) fn data() -> Style {
    Style { colour: io::stdout().is_terminal() && wanted() }
}

/// For stderr.
pub(super) fn talk() -> Style {
    Style { colour: io::stderr().is_terminal() && wanted() }
}

/// See <https://no-color.org>.
fn wanted() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

impl Style {
    /// None at all.
    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self { colour: false }
    }

    pub(super) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(super) fn doubtful(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(super) fn bad(self, text: &str) -> String {
        self.paint("31;1", text)
    }

    pub(super) fn strong(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(super) fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Style;

    #[test]
    fn colour_is_left_out_where_it_would_show_as_text() {
        assert_eq!(Style::plain().bad("x"), "x");
        assert_eq!(Style { colour: true }.bad("x"), "\x1b[31;1mx\x1b[0m");
    }
}
