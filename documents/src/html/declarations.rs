//! Style declarations that hide text, strike it out, or set the marks of lists.

use super::{
    color_notation::{FAINT, is_clear, parse_color},
    css::{split_outside, unescape},
};
use crate::colors::{Background, Rgb};

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
    /// `font-size`. Below a font of size 0, an element may have another one.
    FontSize,
    /// `order` of an item among those beside it.
    Order,
    /// `flex-direction`.
    Direction,
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
        "order" => word(Property::Order),
        "flex-direction" | "flex-flow" => word(Property::Direction),
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
        "font-size" => word(Property::FontSize),
        "font" => Some((Property::FontSize, Value::Word(size_of_font(value).to_owned()))),
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

/// Returns the size in a `font` property; weights have no unit.
fn size_of_font(font: &str) -> &str {
    let parts = || font.split([' ', '/']).filter(|it| !it.is_empty());
    match parts().find_map(parse_length) {
        Some(0.0) => "0",
        _ => parts()
            .find(|it| !it.ends_with(|c: char| c.is_ascii_digit()) && parse_length(it).is_some())
            .unwrap_or("medium"),
    }
}

/// Whether letters of this size are seen as nothing. Relative sizes depend on the size around.
pub(super) fn is_size_of_nothing(size: &str, is_nothing_around: bool) -> bool {
    let is_relative = size.ends_with('%')
        || ["em", "ex", "ch"].iter().any(|unit| size.ends_with(unit)) && !size.ends_with("rem")
        || matches!(size, "inherit" | "unset" | "smaller" | "larger");
    let is_nothing = parse_length(size).is_some_and(|length| (0.0..=1.0).contains(&length));
    is_nothing || (is_relative && is_nothing_around)
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

/// Whether a clip path is `inset(50%)` or more, a circle of radius 0, or a polygon of one point.
fn is_path_of_nothing(value: &str) -> bool {
    let corners = value.strip_prefix("polygon(").and_then(|it| it.strip_suffix(')'));
    let mut corners = corners.into_iter().flat_map(|it| it.split(',')).map(str::trim);
    if let Some(first) = corners.next() {
        return corners.all(|corner| corner == first);
    }
    let inside = |name: &str| value.strip_prefix(name)?.strip_prefix('(')?.split([')', ' ']).next();
    let half = |it: &str| it.strip_suffix('%')?.parse().ok().map(|it: f64| it >= 50.0);
    inside("inset").and_then(half).unwrap_or(false)
        || inside("circle").is_some_and(|it| parse_length(it) == Some(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_known_in_their_units() {
        assert_eq!(parse_length("-100em"), Some(-1_600.0));
        assert_eq!(parse_length("50%"), None);
    }
}
