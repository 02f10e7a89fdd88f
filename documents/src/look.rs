//! How text looks, as far as its meaning hangs on it.

use crate::{
    colors::{Ground, Rgb},
    left_out::in_one_pair_of_marks,
    math,
    symbols::Fonts,
};

/// The color of letters.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Color {
    Plain(Rgb),
    /// Whichever is seen on the ground.
    Automatic,
}

/// Properties of a piece of text itself or of a style. What is not said is `None`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Look {
    pub(crate) hidden: Option<bool>,
    pub(crate) fonts: Option<Fonts>,
    pub(crate) raised: Option<bool>,
    pub(crate) struck: Option<bool>,
    /// All letters are capitals.
    pub(crate) capitals: Option<bool>,
    /// Too small to be read.
    pub(crate) tiny: Option<bool>,
    pub(crate) color: Option<Color>,
    /// What the letters or their paragraph lie on.
    pub(crate) ground: Option<Ground>,
}

/// Around text that is struck out.
pub(crate) const STRUCK: &str = "~~";

/// Stands for [`STRUCK`] in a line that is not whole yet. No text has this code, which is no character.
const OPEN_STRUCK: &str = "\u{fdd0}";

/// What a picture is said to show, by the first of its descriptions that says something.
pub(crate) fn described(descriptions: impl IntoIterator<Item = Option<String>>) -> String {
    let mut words = descriptions.into_iter().flatten().map(|words| words.trim().to_owned());
    let words = words.find(|words| !words.is_empty());
    words.map(|words| format!("[Picture: {words}]")).unwrap_or_default()
}

/// A piece of a line that is struck out.
pub(crate) fn struck(text: &str) -> String {
    format!("{OPEN_STRUCK}{text}{OPEN_STRUCK}")
}

/// A whole line. Neighbours that are struck out, or that nobody sees, are so in one.
pub(crate) fn whole(line: &str) -> String {
    let line = line.replace(&OPEN_STRUCK.repeat(2), "").replace(OPEN_STRUCK, STRUCK);
    in_one_pair_of_marks(&line)
}

impl Look {
    /// With what another one says of all that this one leaves open.
    pub(crate) fn over(self, other: Self) -> Self {
        Self {
            hidden: self.hidden.or(other.hidden),
            fonts: self.fonts.or(other.fonts),
            raised: self.raised.or(other.raised),
            struck: self.struck.or(other.struck),
            capitals: self.capitals.or(other.capitals),
            tiny: self.tiny.or(other.tiny),
            color: self.color.or(other.color),
            ground: self.ground.or(other.ground),
        }
    }

    /// Text that nobody sees in the document is not text of it.
    pub(crate) fn is_hidden(self, around: Ground) -> bool {
        let ground = self.ground.unwrap_or(around);
        let is_on_itself = matches!(self.color, Some(Color::Plain(color)) if ground.hides(color));
        self.hidden == Some(true) || self.tiny == Some(true) || is_on_itself
    }

    /// What a text that looks so means; where its font is one of signs, what these mean.
    pub(crate) fn read(self, text: String) -> String {
        let text = self.fonts.unwrap_or_default().read(text);
        let raised = self.raised.unwrap_or(false).then(|| math::exponent(&text)).flatten();
        let text = raised.unwrap_or(text);
        let text = if self.capitals == Some(true) { text.to_uppercase() } else { text };
        let is_struck = self.struck == Some(true) && !text.trim().is_empty();
        if is_struck { struck(&text) } else { text }
    }
}
