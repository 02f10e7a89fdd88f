//! Style declarations that hide text, strike it out, or set the marks of lists.

use super::css::{split_outside, unescape};
use crate::colors::{Background, Rgb, WHITE, parse_hexadecimal};

/// A property with its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Declaration {
    pub(super) property: Property,
    pub(super) value: Value,
    pub(super) important: bool,
}

/// Properties that are read here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Property {
    Display,
    /// Sets a box within a line apart from its neighbours: `float`, or a wide margin or padding.
    Apart(&'static str),
    /// Properties that hide by themselves, with or without a condition.
    Other(&'static str),
    /// Width, height and their maxima. If one is near zero, [`Self::Overflow`] hides the content.
    Size(&'static str),
    Overflow,
    /// `position`: `left` and `clip` take effect with some of its values only.
    Position,
    /// Names of animations, and how they end.
    Animation(&'static str),
    /// Text of `::before` and `::after`.
    Content,
    /// Changes of counters: `counter-reset`, `counter-increment`.
    Counter(&'static str),
    /// `white-space`.
    Spaces,
    Color,
    /// `-webkit-text-fill-color`, which precedes the color.
    LetterFill,
    /// `text-transform`.
    Case,
    CaptionSide,
    /// Paint of the letters of a drawing.
    Fill,
    Stroke,
    Background,
    Line,
    Marker,
    /// `visibility`, which descendants may reverse.
    Visibility,
    /// Shows letters without a color: by a shadow, an outline, or a background clipped to them.
    ShowsThrough(&'static str),
}

/// Value of a declaration.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Whether the property takes effect: hides, is near zero, shows through or strikes out.
    Effective(bool),
    /// A color; `None` if it is not known here.
    Color(Option<Rgb>),
    /// Fully transparent.
    Clear,
    Background(Background),
    /// `decimal`, `none`, …
    Word(String),
}

/// Offset in pixels to the left or upwards beyond which nothing is seen.
const FAR: f64 = -999.0;

/// Margin in pixels that sets words apart: half an em, more than the padding around a marked part of a word.
const WIDE: f64 = 8.0;

/// Opacity below which nothing is seen.
const FAINT: f64 = 0.05;

/// Returns the declarations of a style that are read here.
pub(super) fn parse_declarations(style: &str) -> impl Iterator<Item = Declaration> {
    split_outside(style, ';').filter_map(|rule| {
        let (name, raw) = rule.split_once(':')?;
        let name = unescape(name.trim()).to_ascii_lowercase();
        let value = unescape(raw.trim()).to_ascii_lowercase();
        let important = value.ends_with("!important");
        // Texts keep their case and their escapes.
        if matches!(&*name, "content" | "list-style" | "list-style-type") {
            let property = if name == "content" { Property::Content } else { Property::Marker };
            let value =
                Value::Word(raw.trim().trim_end_matches("!important").trim_end().to_owned());
            return Some(Declaration { property, value, important });
        }
        let value = value.trim_end_matches("!important").trim_end();
        let (property, value) = read_declaration(&name, value)?;
        Some(Declaration { property, value, important })
    })
}

fn read_declaration(name: &str, value: &str) -> Option<(Property, Value)> {
    let length = || parse_length(value);
    let is_nothing = || length().is_some_and(|length| (0.0..=1.0).contains(&length));
    let other = |name, hides| Some((Property::Other(name), Value::Effective(hides)));
    let word = |property| Some((property, Value::Word(value.to_owned())));
    let size = |name| Some((Property::Size(name), Value::Effective(is_nothing())));
    let apart = |name, is_wide| Some((Property::Apart(name), Value::Effective(is_wide)));
    let is_far = || length().is_some_and(|it| it <= FAR);
    match name {
        "display" => word(Property::Display),
        "float" => apart("float", value != "none"),
        "margin" | "margin-right" => apart("margin", is_wide(value)),
        "margin-left" | "margin-inline-start" if !is_far() => apart("margin", is_wide(value)),
        "padding" | "padding-left" | "padding-right" => apart("padding", is_wide(value)),
        "visibility" => match value {
            "hidden" | "collapse" => Some((Property::Visibility, Value::Effective(true))),
            "visible" | "initial" => Some((Property::Visibility, Value::Effective(false))),
            _ => None,
        },
        "content-visibility" => other("content-visibility", value == "hidden"),
        "opacity" => other("opacity", opacity(value).is_some_and(|it| it < FAINT)),
        "font-size" => other("font-size", is_nothing()),
        "font" => {
            other("font-size", value.split([' ', '/']).find_map(self::parse_length) == Some(0.0))
        }
        "filter" => other("filter", is_of_nothing(value)),
        "left" | "inset-inline-start" => other("left", is_far()),
        "top" | "inset-block-start" => other("top", is_far()),
        "right" | "inset-inline-end" => other("right", is_far()),
        "text-indent" => match value.strip_suffix('%').and_then(|it| it.parse::<f64>().ok()) {
            // Moves the text out of a box that clips it.
            Some(percent) => {
                Some((Property::Size("text-indent"), Value::Effective(percent >= 100.0)))
            }
            None => other("text-indent", is_far()),
        },
        "margin-top" | "margin-block-start" => other("margin-top", is_far()),
        "mask" | "mask-image" | "-webkit-mask" | "-webkit-mask-image" => {
            other("mask", is_mask_of_nothing(value))
        }
        "margin-left" | "margin-inline-start" => other("margin-left", is_far()),
        "transform" => other("transform", is_shrunk(value)),
        "scale" => other("scale", is_shrunk(&format!("scale({})", value.replace(' ', ",")))),
        "translate" => {
            other("translate", is_shrunk(&format!("translate({})", value.replace(' ', ","))))
        }
        "clip" => other("clip", is_clip_of_nothing(value)),
        "clip-path" => other("clip-path", is_path_of_nothing(value)),
        "width" => size("width"),
        "height" => size("height"),
        "max-width" => size("max-width"),
        "max-height" => size("max-height"),
        "overflow" => {
            let hides = ["hidden", "clip"].iter().any(|word| value.contains(word));
            Some((Property::Overflow, Value::Effective(hides)))
        }
        "position" => word(Property::Position),
        "animation" | "animation-name" | "-webkit-animation" => word(Property::Animation("name")),
        "animation-fill-mode" => word(Property::Animation("end")),
        "counter-reset" => word(Property::Counter("reset")),
        "counter-increment" => word(Property::Counter("increment")),
        "white-space" => word(Property::Spaces),
        "fill" => Some((Property::Fill, Value::Effective(value != "none" && !is_clear(value)))),
        "stroke" => Some((Property::Stroke, Value::Effective(value != "none" && !is_clear(value)))),
        "color" => Some((Property::Color, color_value(value))),
        "-webkit-text-fill-color" if value != "currentcolor" => {
            Some((Property::LetterFill, color_value(value)))
        }
        "background-clip" | "-webkit-background-clip" => {
            Some((Property::ShowsThrough("clip"), Value::Effective(value.contains("text"))))
        }
        "text-shadow" | "-webkit-text-stroke" => {
            Some((Property::ShowsThrough("letters"), Value::Effective(value != "none")))
        }
        "background" | "background-color" => {
            let background = match parse_color(value) {
                Some(color) => Background::Plain(color),
                None if matches!(value, "none" | "transparent" | "inherit") => return None,
                None => Background::Unknown,
            };
            Some((Property::Background, Value::Background(background)))
        }
        "background-image" if value != "none" => {
            Some((Property::Background, Value::Background(Background::Unknown)))
        }
        "text-decoration" | "text-decoration-line" => {
            Some((Property::Line, Value::Effective(value.contains("line-through"))))
        }
        "text-transform" => word(Property::Case),
        "caption-side" => word(Property::CaptionSide),
        _ => None,
    }
}

/// Whether one of up to four lengths sets boxes in a line visibly apart. Of two and more, the first and the
/// third are heights.
fn is_wide(value: &str) -> bool {
    let lengths: Vec<&str> = value.split_whitespace().collect();
    let step = if lengths.len() > 1 { 2 } else { 1 };
    let wide = |it: &&str| parse_length(it).is_some_and(|it| it >= WIDE);
    lengths.iter().skip(step - 1).step_by(step).any(wide)
}

fn color_value(value: &str) -> Value {
    if is_clear(value) { Value::Clear } else { Value::Color(parse_color(value)) }
}

fn opacity(value: &str) -> Option<f64> {
    match value.strip_suffix('%') {
        Some(percent) => percent.parse().ok().map(|it: f64| it / 100.0),
        None => value.parse().ok(),
    }
}

/// Converts a length to pixels, for an em of 16 pixels and a viewport of 1,000.
pub(super) fn parse_length(value: &str) -> Option<f64> {
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

/// Whether a transform scales to zero, moves far away, or turns to the edge.
fn is_shrunk(value: &str) -> bool {
    value.split(')').filter_map(|part| part.split_once('(')).any(|(name, by)| {
        let mut lengths = by.split(',').map(|it| parse_length(it.trim()));
        match name.trim() {
            "scale" | "scalex" | "scaley" => lengths.any(|it| it == Some(0.0)),
            "translate" | "translatex" | "translatey" => {
                lengths.any(|it| it.is_some_and(|it| it <= FAR))
            }
            // The edge of a sheet.
            "rotatex" | "rotatey" => matches!(by.trim(), "90deg" | "-90deg" | "270deg"),
            _ => false,
        }
    })
}

/// Whether a mask is a gradient of transparent colors alone.
fn is_mask_of_nothing(value: &str) -> bool {
    let stops = value.strip_prefix("linear-gradient(").and_then(|it| it.strip_suffix(')'));
    stops.is_some_and(|stops| split_outside(stops, ',').all(|it| is_clear(it.trim())))
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
    let edges: Vec<_> =
        edges.split([',', ' ']).filter(|it| !it.is_empty()).map(parse_length).collect();
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
        || inside("circle").is_some_and(|it| parse_length(it) == Some(0.0))
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
pub(super) fn parse_color(value: &str) -> Option<Rgb> {
    let value = value.trim();
    match value {
        "white" | "canvas" => return Some(WHITE),
        "black" => return Some([0; 3]),
        _ => {}
    }
    if let Some(digits) = value.strip_prefix('#') {
        let long: String = match digits.len() {
            3 | 4 => digits.chars().take(3).flat_map(|c| [c, c]).collect(),
            _ => digits.get(..6)?.to_owned(),
        };
        return parse_hexadecimal(&long);
    }
    let (kind, numbers) = value.strip_suffix(')')?.split_once('(')?;
    let mut numbers = numbers.split([',', ' ', '/']).filter(|it| !it.is_empty());
    let mut next = || numbers.next();
    let [red, green, blue] = match kind {
        "rgb" | "rgba" => {
            let part = |it: &str| match it.strip_suffix('%') {
                Some(percent) => percent.parse().ok().map(|it: f64| it * 2.55),
                None => it.parse().ok(),
            };
            [part(next()?)?, part(next()?)?, part(next()?)?]
        }
        "color" if next()? == "srgb" => {
            let part = |it: &str| opacity(it).map(|it| it * 255.0);
            [part(next()?)?, part(next()?)?, part(next()?)?]
        }
        "hsl" | "hsla" => {
            let hue = next()?.trim_end_matches("deg").parse().ok()?;
            let percent =
                |it: &str| it.trim_end_matches('%').parse().ok().map(|it: f64| it / 100.0);
            from_hsl(hue, percent(next()?)?, percent(next()?)?)
        }
        _ => return None,
    };
    // The color of a half transparent letter depends on more.
    if next().is_some_and(|alpha| opacity(alpha).is_none_or(|it| it < 1.0)) {
        return None;
    }
    let is_color = |part: &f64| (0.0..=255.5).contains(part);
    [red, green, blue].iter().all(is_color).then(|| [red, green, blue].map(|it| it.round() as u8))
}

/// Converts hue (in degrees), saturation and lightness to red, green and blue of up to 255.
fn from_hsl(hue: f64, saturation: f64, lightness: f64) -> [f64; 3] {
    let chroma = saturation * lightness.min(1.0 - lightness);
    [0.0, 8.0, 4.0].map(|offset| {
        let place = (offset + hue / 30.0).rem_euclid(12.0);
        255.0 * (lightness - chroma * (place - 3.0).min(9.0 - place).clamp(-1.0, 1.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_and_lengths_are_known_in_their_spellings() {
        for said in [
            "white",
            "#fff",
            "#FFFF",
            "#ffffff",
            "rgb(255, 255, 255)",
            "rgb(255 255 255)",
            "rgb(100% 100% 100% / 1)",
            "rgba(255,255,255,1.0)",
            "hsl(0,0%,100%)",
            "hsl(120deg 40% 100%)",
        ] {
            assert_eq!(parse_color(&said.to_lowercase()), Some(WHITE), "{said}");
        }
        for said in [
            "var(--ink)",
            "inherit",
            "#ff",
            "rgb(300,0,0)",
            "url(a.png)",
            "rgba(9,9,9,.5)",
            "hsl(a)",
        ] {
            assert_eq!(parse_color(said), None, "{said}");
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
        assert_eq!(parse_color("hsl(120, 100%, 50%)"), Some([0, 255, 0]));
        assert_eq!(parse_length("-100em"), Some(-1_600.0));
        assert_eq!(parse_length("50%"), None);
    }
}
