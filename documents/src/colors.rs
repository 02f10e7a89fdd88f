//! Which letters are not seen: those in the color of their ground, and tiny ones.

/// Red, green and blue.
pub(crate) type Rgb = [u8; 3];

pub(crate) const WHITE: Rgb = [255; 3];

/// Letters of so many points cannot be read.
pub(crate) const TINY: f64 = 1.0;

/// Colors that differ by less than this are the same to the eye.
const SAME: u8 = 24;

/// What text lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// A color.
    Plain(Rgb),
    /// A picture, a pattern, a shape, or what nobody here knows: text on it counts as seen.
    Unknown,
}

impl Ground {
    /// Whether letters of this color are not seen on it.
    pub(crate) fn hides(self, color: Rgb) -> bool {
        match self {
            Self::Plain(ground) => {
                color.into_iter().zip(ground).all(|(one, other)| one.abs_diff(other) < SAME)
            }
            Self::Unknown => false,
        }
    }
}

/// `1F3864`; nothing for other ways to say it.
pub(crate) fn hexadecimal(color: &str) -> Option<Rgb> {
    let [_, red, green, blue] = u32::from_str_radix(color, 16).ok()?.to_be_bytes();
    (color.len() == 6).then_some([red, green, blue])
}
