//! Conditions of style sheets, for a usual screen: a light one with a mouse.

use super::{
    css::{find_outside, split_outside},
    declarations::parse_length,
};

/// Width of the screen in pixels. Rules for narrower screens do not apply.
const WIDTH: f64 = 1_920.0;

/// Height of the screen in pixels.
const HEIGHT: f64 = 1_080.0;

/// Deepest nesting of a condition.
const MAX_DEPTH: usize = 8;

/// Returns whether a list of media queries holds. A query with an unknown feature does not.
pub(super) fn holds(media: &str) -> bool {
    let media = media.trim().to_ascii_lowercase();
    media.is_empty()
        || split_outside(&media, ',').any(|query| evaluate_condition(query, 0) == Some(true))
}

/// Returns whether a browser supports what a condition asks for. A condition with a `not` is meant
/// for older browsers.
pub(super) fn is_supported(condition: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    !condition.split(|c| !is_word(c)).any(|word| word.eq_ignore_ascii_case("not"))
}

/// Evaluates a query; `None` if it is unknown.
fn evaluate_condition(query: &str, depth: usize) -> Option<bool> {
    if depth > MAX_DEPTH {
        return None;
    }
    let (mut all, mut any, mut is_negated, mut is_any) = (Some(true), Some(false), false, false);
    for word in words(query) {
        let value = match word {
            "only" | "and" => continue,
            "or" => {
                is_any = true;
                continue;
            }
            "not" => {
                is_negated = true;
                continue;
            }
            "all" | "screen" => Some(true),
            _ => match word.strip_prefix('(').and_then(|it| it.strip_suffix(')')) {
                Some(inner) => match inner.trim() {
                    inner if inner.starts_with('(') || inner.starts_with("not") => {
                        evaluate_condition(inner, depth + 1)
                    }
                    inner => evaluate_feature(inner),
                },
                // Another medium.
                None if word.chars().all(|c| c.is_ascii_alphabetic()) => Some(false),
                None => None,
            },
        };
        all = match (all, value) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        };
        any = match (any, value) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        };
    }
    let value = if is_any { any } else { all };
    if is_negated { value.map(|value| !value) } else { value }
}

/// Splits a query at spaces outside of brackets.
fn words(query: &str) -> impl Iterator<Item = &str> {
    let mut rest = query.trim();
    std::iter::from_fn(move || {
        let end = find_outside(rest, &[' ', '\n', '\t', '\r']).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind.trim_start();
        (!word.is_empty()).then_some(word)
    })
}

/// Evaluates a feature without its brackets, such as `min-width: 600px`.
fn evaluate_feature(feature: &str) -> Option<bool> {
    if feature.contains(['<', '>', '=']) {
        return evaluate_range(feature);
    }
    let Some((name, value)) = feature.split_once(':') else {
        return match feature {
            "width"
            | "height"
            | "color"
            | "hover"
            | "any-hover"
            | "pointer"
            | "any-pointer"
            | "prefers-color-scheme"
            | "scripting" => Some(true),
            "monochrome"
            | "grid"
            | "prefers-reduced-motion"
            | "prefers-contrast"
            | "forced-colors"
            | "inverted-colors"
            | "prefers-reduced-data"
            | "prefers-reduced-transparency" => Some(false),
            _ => None,
        };
    };
    let value = value.trim();
    let length = || parse_length(value);
    Some(match name.trim() {
        "min-width" | "min-device-width" => length()? <= WIDTH,
        "max-width" | "max-device-width" => length()? >= WIDTH,
        "min-height" | "min-device-height" => length()? <= HEIGHT,
        "max-height" | "max-device-height" => length()? >= HEIGHT,
        "orientation" => value == "landscape",
        "prefers-color-scheme" => value == "light",
        "prefers-reduced-motion"
        | "prefers-contrast"
        | "prefers-reduced-data"
        | "prefers-reduced-transparency" => value == "no-preference",
        "forced-colors" | "inverted-colors" => value == "none",
        "hover" | "any-hover" => value == "hover",
        "pointer" | "any-pointer" => value == "fine",
        "scripting" => value == "enabled",
        "display-mode" => value == "browser",
        _ => return None,
    })
}

/// Evaluates a range, such as `400px <= width < 600px`.
fn evaluate_range(range: &str) -> Option<bool> {
    let number = |text: &str| match text.trim() {
        "width" | "device-width" => Some(WIDTH),
        "height" | "device-height" => Some(HEIGHT),
        text => parse_length(text),
    };
    let is_sign = |c: char| matches!(c, '<' | '>' | '=');
    let mut rest = range;
    let mut holds = true;
    while let Some(at) = rest.find(is_sign) {
        let behind = rest[at..].trim_start_matches(is_sign);
        let sign = &rest[at..rest.len() - behind.len()];
        let end = behind.find(is_sign).unwrap_or(behind.len());
        let (left, right) = (number(&rest[..at])?, number(&behind[..end])?);
        holds &= match sign {
            "<" => left < right,
            "<=" => left <= right,
            ">" => left > right,
            ">=" => left >= right,
            "=" => (left - right).abs() < f64::EPSILON,
            _ => return None,
        };
        rest = behind;
    }
    Some(holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_holds_on_a_usual_screen() {
        for media in [
            "",
            "all",
            "screen",
            "SCREEN",
            "only screen and (min-width: 600px)",
            "not print",
            "print, screen",
            "(width >= 600px)",
            "(400px <= width)",
            "(orientation:landscape)",
            "(prefers-color-scheme: light)",
            "not (prefers-reduced-motion: reduce)",
            "not all and (monochrome)",
            "(max-width:9px) or (hover)",
            "(not (max-width: 9px))",
            "((min-width: 1px) and (hover))",
            "screen and (max-width: 9999px)",
        ] {
            assert!(holds(media), "{media}");
        }
        for media in [
            "print",
            "tv",
            "speech",
            "not screen",
            "(max-width: 600px)",
            "(width < 600px)",
            "(min-width: 5000px)",
            "(prefers-color-scheme: dark)",
            "(forced-colors: active)",
            "(forced-colors)",
            "(unknown: 1)",
            "not (unknown: 1)",
            "(min-width: calc(1px))",
            "(orientation:portrait) and (min-width:5px)",
            "(400px <= width <= 700px)",
            "((((",
        ] {
            assert!(!holds(media), "{media}");
        }
        assert!(!holds(&"(".repeat(100_000)));
        assert!(is_supported("(display: grid)") && !is_supported("not (display: grid)"));
        assert!(!is_supported("(a: b) and (not (c: d))"));
        assert!(is_supported("selector(:not(a, b))"));
    }
}
