//! The appearance of text, as far as it affects the meaning.

use crate::{
    colors::{Background, Rgb},
    left_out::replace_placeholders,
    math,
    symbols::Fonts,
};

/// The color of letters.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Color {
    Plain(Rgb),
    /// A color that is visible on any background.
    Automatic,
    /// No color: the letters are not drawn.
    Clear,
}

/// Properties of a piece of text or of a style. `None` stands for an unstated property.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Look {
    pub(crate) hidden: Option<bool>,
    pub(crate) fonts: Option<Fonts>,
    pub(crate) raised: Option<bool>,
    pub(crate) lowered: Option<bool>,
    pub(crate) struck: Option<bool>,
    /// All letters are shown as capitals.
    pub(crate) capitals: Option<bool>,
    /// The text is too small to read.
    pub(crate) tiny: Option<bool>,
    pub(crate) color: Option<Color>,
    /// The background of the letters or their paragraph.
    pub(crate) background: Option<Background>,
}

/// Mark around text that is struck out.
pub(crate) const STRUCK: &str = "~~";

/// Placeholder for [`STRUCK`] in an unfinished line: a noncharacter of Unicode, which no text has.
const OPEN_STRUCK: &str = "\u{fdd0}";

/// Returns `[Picture: …]` with the first nonempty description; else an empty text.
pub(crate) fn picture_description(
    descriptions: impl IntoIterator<Item = Option<String>>,
) -> String {
    let mut words = descriptions.into_iter().flatten().map(|words| words.trim().to_owned());
    let words = words.find(|words| !words.is_empty());
    words.map(|words| format!("[Picture: {words}]")).unwrap_or_default()
}

/// Puts placeholders around a struck piece of a line.
pub(crate) fn strike_out(text: &str) -> String {
    format!("{OPEN_STRUCK}{text}{OPEN_STRUCK}")
}

/// Finishes a line: replaces the placeholders. Adjacent struck or hidden pieces get one pair of
/// marks.
pub(crate) fn finish_line(line: &str) -> String {
    let line = line.replace(&OPEN_STRUCK.repeat(2), "").replace(OPEN_STRUCK, STRUCK);
    replace_placeholders(&line)
}

impl Look {
    /// Fills unstated properties from `other`.
    pub(crate) fn or_from(self, other: Self) -> Self {
        Self {
            hidden: self.hidden.or(other.hidden),
            fonts: self.fonts.or(other.fonts),
            raised: self.raised.or(other.raised),
            lowered: self.lowered.or(other.lowered),
            struck: self.struck.or(other.struck),
            capitals: self.capitals.or(other.capitals),
            tiny: self.tiny.or(other.tiny),
            color: self.color.or(other.color),
            background: self.background.or(other.background),
        }
    }

    /// Returns whether text is hidden: stated as hidden, tiny, transparent, or in the color of its background.
    pub(crate) fn is_hidden(self, around: Background) -> bool {
        let background = self.background.unwrap_or(around);
        let is_unseen = match self.color {
            Some(Color::Plain(color)) => background.hides(color),
            Some(Color::Clear) => true,
            Some(Color::Automatic) | None => false,
        };
        self.hidden == Some(true) || self.tiny == Some(true) || is_unseen
    }

    /// Returns the text as shown: decodes symbol fonts, writes exponents, capitals and marks of
    /// struck text.
    pub(crate) fn apply_to(self, text: String) -> String {
        let text = self.fonts.unwrap_or_default().decode(text);
        let raised = self.raised.unwrap_or(false).then(|| math::exponent(&text)).flatten();
        let lowered = self.lowered.unwrap_or(false).then(|| math::index(&text)).flatten();
        let text = raised.or(lowered).unwrap_or(text);
        let text = if self.capitals == Some(true) { text.to_uppercase() } else { text };
        let is_struck = self.struck == Some(true) && !text.trim().is_empty();
        if is_struck { strike_out(&text) } else { text }
    }
}
