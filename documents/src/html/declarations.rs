//! Style declarations that hide text, strike it out, or set the marks of lists.

use crate::colors::{Ground, Rgb, WHITE, hexadecimal};

/// A property with its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Declaration {
    pub(super) property: Property,
    pub(super) said: Said,
    pub(super) important: bool,
}

/// Properties that are read here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Property {
    /// `display` and others, each of which hides by itself.
    Other(&'static str),
    /// Width, height and their maxima. If one is near zero, [`Self::Overflow`] hides the content.
    Size(&'static str),
    Overflow,
    Color,
    Ground,
    Line,
    Marker,
    /// `visibility`, which descendants may reverse.
    Visibility,
    /// Shows letters without a color: by a shadow, an outline, or a background clipped to them.
    Through(&'static str),
}

/// Value of a declaration.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Said {
    /// Whether the property takes effect: hides, is near zero, shows through or strikes out.
    Is(bool),
    /// A color; `None` if it is not known here.
    Color(Option<Rgb>),
    /// Fully transparent.
    Clear,
    Ground(Ground),
    /// `decimal`, `none`, …
    Word(String),
}

/// Offset in pixels to the left or upwards beyond which nothing is seen.
const FAR: f64 = -999.0;

/// Returns the declarations of a style that are read here.
pub(super) fn declarations(style: &str) -> impl Iterator<Item = Declaration> {
    style.split(';').filter_map(|rule| {
        let (name, value) = rule.split_once(':')?;
        let name = name.trim().to_ascii_lowercase();
        let value = value.trim().to_ascii_lowercase();
        let important = value.ends_with("!important");
        let value = value.trim_end_matches("!important").trim_end();
        let (property, said) = said(&name, value)?;
        Some(Declaration { property, said, important })
    })
}

fn said(name: &str, value: &str) -> Option<(Property, Said)> {
    let length = || length(value);
    let is_nothing = || length().is_some_and(|length| (0.0..=1.0).contains(&length));
    let other = |name, hides| Some((Property::Other(name), Said::Is(hides)));
    let size = |name| Some((Property::Size(name), Said::Is(is_nothing())));
    match name {
        "display" => other("display", value == "none"),
        "visibility" => match value {
            "hidden" | "collapse" => Some((Property::Visibility, Said::Is(true))),
            "visible" | "initial" => Some((Property::Visibility, Said::Is(false))),
            _ => None,
        },
        "content-visibility" => other("content-visibility", value == "hidden"),
        "opacity" => other("opacity", value.trim_end_matches('%').parse() == Ok(0.0)),
        "font-size" => other("font-size", is_nothing()),
        "font" => other("font-size", value.split([' ', '/']).find_map(self::length) == Some(0.0)),
        "filter" => other("filter", is_of_nothing(value)),
        "left" => other("left", length().is_some_and(|it| it <= FAR)),
        "top" => other("top", length().is_some_and(|it| it <= FAR)),
        "right" => other("right", length().is_some_and(|it| it <= FAR)),
        "text-indent" => other("text-indent", length().is_some_and(|it| it <= FAR)),
        "margin-left" => other("margin-left", length().is_some_and(|it| it <= FAR)),
        "transform" => other("transform", is_shrunk(value)),
        "clip" => other("clip", is_clip_of_nothing(value)),
        "clip-path" => other("clip-path", is_path_of_nothing(value)),
        "width" => size("width"),
        "height" => size("height"),
        "max-width" => size("max-width"),
        "max-height" => size("max-height"),
        "overflow" => {
            let hides = ["hidden", "clip"].iter().any(|word| value.contains(word));
            Some((Property::Overflow, Said::Is(hides)))
        }
        "color" if is_clear(value) => Some((Property::Color, Said::Clear)),
        "color" => Some((Property::Color, Said::Color(color(value)))),
        "background-clip" | "-webkit-background-clip" => {
            Some((Property::Through("clip"), Said::Is(value.contains("text"))))
        }
        "text-shadow" | "-webkit-text-stroke" => {
            Some((Property::Through("letters"), Said::Is(value != "none")))
        }
        "background" | "background-color" => {
            let ground = match color(value) {
                Some(color) => Ground::Plain(color),
                None if matches!(value, "none" | "transparent" | "inherit") => return None,
                None => Ground::Unknown,
            };
            Some((Property::Ground, Said::Ground(ground)))
        }
        "background-image" if value != "none" => {
            Some((Property::Ground, Said::Ground(Ground::Unknown)))
        }
        "text-decoration" | "text-decoration-line" => {
            Some((Property::Line, Said::Is(value.contains("line-through"))))
        }
        "list-style" | "list-style-type" => Some((Property::Marker, Said::Word(value.to_owned()))),
        _ => None,
    }
}

/// Converts a length to pixels, for an em of 16 pixels and a viewport of 1,000.
fn length(value: &str) -> Option<f64> {
    let end = value.find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+'));
    let (number, unit) = value.split_at(end.unwrap_or(value.len()));
    let number: f64 = number.parse().ok()?;
    let pixels = match unit.trim() {
        "" | "px" => 1.0,
        "pt" => 4.0 / 3.0,
        "em" | "rem" | "ch" | "ex" => 16.0,
        "vw" | "vh" | "vmin" | "vmax" => 10.0,
        "cm" => 37.8,
        "mm" => 3.78,
        "in" => 96.0,
        "%" if number == 0.0 => 1.0,
        _ => return None,
    };
    Some(number * pixels)
}

/// Whether a transform scales to zero or moves far away.
fn is_shrunk(value: &str) -> bool {
    value.split(')').filter_map(|part| part.split_once('(')).any(|(name, by)| {
        let mut lengths = by.split(',').map(|it| length(it.trim()));
        match name.trim() {
            "scale" | "scalex" | "scaley" => lengths.any(|it| it == Some(0.0)),
            "translate" | "translatex" | "translatey" => {
                lengths.any(|it| it.is_some_and(|it| it <= FAR))
            }
            _ => false,
        }
    })
}

/// Whether a filter makes its element transparent.
fn is_of_nothing(filter: &str) -> bool {
    let opacity = filter.split_once("opacity(").and_then(|(_, rest)| rest.split(')').next());
    opacity.is_some_and(|it| it.trim().trim_end_matches('%').parse() == Ok(0.0))
}

/// Whether a clip is at most a pixel wide or high, such as `rect(0, 0, 0, 0)`.
fn is_clip_of_nothing(value: &str) -> bool {
    let Some(edges) = value.strip_prefix("rect(").and_then(|it| it.strip_suffix(')')) else {
        return false;
    };
    let edges: Vec<_> = edges.split([',', ' ']).filter(|it| !it.is_empty()).map(length).collect();
    match edges[..] {
        [Some(top), Some(right), Some(bottom), Some(left)] => {
            right - left <= 1.0 || bottom - top <= 1.0
        }
        _ => false,
    }
}

/// Whether a clip path is `inset(50%)` or more, or a circle of radius 0.
fn is_path_of_nothing(value: &str) -> bool {
    let inside = |name: &str| value.strip_prefix(name)?.strip_prefix('(')?.split([')', ' ']).next();
    let half = |it: &str| it.strip_suffix('%')?.parse().ok().map(|it: f64| it >= 50.0);
    inside("inset").and_then(half).unwrap_or(false)
        || inside("circle").is_some_and(|it| length(it) == Some(0.0))
}

/// Whether a color is fully transparent.
fn is_clear(value: &str) -> bool {
    let alpha = || {
        let numbers = value.strip_suffix(')')?;
        let numbers =
            ["rgba(", "hsla(", "rgb(", "hsl("].iter().find_map(|it| numbers.strip_prefix(it))?;
        let mut numbers = numbers.split([',', ' ', '/']).filter(|it| !it.is_empty()).skip(3);
        numbers.next()?.trim_end_matches('%').parse::<f64>().ok()
    };
    let digits = value.strip_prefix('#').filter(|it| it.chars().all(|c| c.is_ascii_hexdigit()));
    let has_no_alpha = digits.is_some_and(|it| {
        (it.len() == 4 && it.ends_with('0')) || (it.len() == 8 && it.ends_with("00"))
    });
    value == "transparent" || has_no_alpha || alpha() == Some(0.0)
}

/// Returns a color given by numbers, or black or white; text is hidden with these. `None` for others.
pub(super) fn color(value: &str) -> Option<Rgb> {
    let value = value.trim();
    match value {
        "white" => return Some(WHITE),
        "black" => return Some([0; 3]),
        _ => {}
    }
    if let Some(digits) = value.strip_prefix('#') {
        let long: String = match digits.len() {
            3 | 4 => digits.chars().take(3).flat_map(|c| [c, c]).collect(),
            _ => digits.get(..6)?.to_owned(),
        };
        return hexadecimal(&long);
    }
    let numbers = value.strip_prefix("rgb(")?.strip_suffix(')')?;
    let mut numbers = numbers.split([',', ' ']).filter(|it| !it.is_empty()).map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some([next()?, next()?, next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_and_lengths_are_known_in_their_spellings() {
        for said in ["white", "#fff", "#FFFF", "#ffffff", "rgb(255, 255, 255)", "rgb(255 255 255)"]
        {
            assert_eq!(color(&said.to_lowercase()), Some(WHITE), "{said}");
        }
        for said in ["var(--ink)", "inherit", "#ff", "rgb(300,0,0)", "url(a.png)"] {
            assert_eq!(color(said), None, "{said}");
        }
        for (said, right) in [
            ("transparent", true),
            ("rgba(0,0,0,0)", true),
            ("rgb(0 0 0 / 0%)", true),
            ("#0000", true),
            ("#ffffff00", true),
            ("#fff0f0", false),
            ("rgb(0,0,0)", false),
            ("rgba(0,0,0,.5)", false),
        ] {
            assert_eq!(is_clear(said), right, "{said}");
        }
        assert_eq!(length("-100em"), Some(-1_600.0));
        assert_eq!(length("50%"), None);
    }
}
