//! How text looks, as far as its meaning hangs on it.

use crate::{
    colors::{Ground, Rgb},
    math,
    symbols::Fonts,
};

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
    pub(crate) color: Option<Rgb>,
    /// What the letters or their paragraph lie on.
    pub(crate) ground: Option<Ground>,
}

/// Around text that is struck out.
pub(crate) const STRUCK: &str = "~~";

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
        let is_on_itself = self.color.is_some_and(|color| ground.hides(color));
        self.hidden == Some(true) || self.tiny == Some(true) || is_on_itself
    }

    /// What a text that looks so means; where its font is one of signs, what these mean.
    pub(crate) fn read(self, text: String) -> String {
        let text = self.fonts.unwrap_or_default().read(text);
        let raised = self.raised.unwrap_or(false).then(|| math::exponent(&text)).flatten();
        let text = raised.unwrap_or(text);
        let text = if self.capitals == Some(true) { text.to_uppercase() } else { text };
        // Neighbours of the same look are joined later.
        let is_struck = self.struck == Some(true) && !text.trim().is_empty();
        if is_struck { format!("{STRUCK}{text}{STRUCK}") } else { text }
    }
}
