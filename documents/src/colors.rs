//! Colors and sizes that make letters invisible.

/// Red, green and blue.
pub(crate) type Rgb = [u8; 3];

pub(crate) const WHITE: Rgb = [255; 3];

/// Size in points up to which letters cannot be read.
pub(crate) const TINY: f64 = 1.0;

/// Difference of each color component below which two colors look the same.
const SAME: u8 = 24;

/// The background of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Background {
    /// A color.
    Plain(Rgb),
    /// A picture, a pattern, a shape, or an unknown background. Text on it counts as visible.
    Unknown,
}

impl Background {
    /// Returns whether letters of this color are invisible on it.
    pub(crate) fn hides(self, color: Rgb) -> bool {
        match self {
            Self::Plain(background) => {
                color.into_iter().zip(background).all(|(one, other)| one.abs_diff(other) < SAME)
            }
            Self::Unknown => false,
        }
    }
}

/// Parses six hexadecimal digits, such as `1F3864`. Returns `None` for other notations.
pub(crate) fn parse_hexadecimal(color: &str) -> Option<Rgb> {
    let [_, red, green, blue] = u32::from_str_radix(color, 16).ok()?.to_be_bytes();
    (color.len() == 6).then_some([red, green, blue])
}
