//! Colors of style sheets, in the notations of CSS Color 4.

use color::{AlphaColor, Srgb};

use crate::colors::{Rgb, WHITE};

/// Opacity below which nothing is seen.
pub(super) const FAINT: f64 = 0.05;

/// Returns an opaque color; text is hidden with these. `None` for others: the color of a half
/// transparent letter depends on more.
pub(super) fn parse_color(value: &str) -> Option<Rgb> {
    if value.trim() == "canvas" {
        return Some(WHITE);
    }
    let [rgb @ .., alpha] = read(value)?.components;
    let is_opaque = alpha >= 1.0 && rgb.iter().all(|part| part.is_finite());
    is_opaque.then(|| rgb.map(|part| (part * 255.0).round() as u8))
}

/// Whether a color is so transparent that nothing is seen.
pub(super) fn is_clear(value: &str) -> bool {
    read(value).is_some_and(|color| f64::from(color.components[3]) < FAINT)
}

fn read(value: &str) -> Option<AlphaColor<Srgb>> {
    color::parse_color(value).ok().map(|color| color.to_alpha_color())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_known_in_their_notations() {
        for said in [
            "white",
            "#fff",
            "#FFFF",
            "#ffffff",
            "rgb(255, 255, 255)",
            "rgb(255 255 255)",
            "rgb(300 255 255)",
            "rgb(100% 100% 100% / 1)",
            "rgba(255,255,255,1.0)",
            "hsl(0,0%,100%)",
            "hsl(120deg 40% 100%)",
            "hwb(90 100% 0%)",
            "hwb(0.25turn 200% 0%)",
            "color(srgb 1 100% 1)",
            "color(display-p3 1 1 1)",
            "lab(100% 0 0)",
            "lch(100 0 none)",
            "oklab(1 0 0)",
            "oklch(100% 0 0)",
        ] {
            assert_eq!(parse_color(&said.to_lowercase()), Some(WHITE), "{said}");
        }
        for (said, color) in [
            ("hsl(120, 100%, 50%)", [0, 255, 0]),
            ("hwb(240 0% 0%)", [0, 0, 255]),
            ("lab(46.28% -47.55 48.58)", [0, 128, 0]),
            ("lch(46.28% 67.98 134.38deg)", [0, 128, 0]),
            ("oklab(51.98% -0.1403 0.1077)", [0, 128, 0]),
            ("oklch(51.98% 0.1769 142.5)", [0, 128, 0]),
            ("color(display-p3 0.21604 0.49418 0.13151)", [0, 128, 0]),
            ("color(srgb-linear 0 0.2158605 0)", [0, 128, 0]),
            ("green", [0, 128, 0]),
            ("rebeccapurple", [102, 51, 153]),
        ] {
            let found = parse_color(said).unwrap();
            assert!(found.iter().zip(color).all(|(a, b)| a.abs_diff(b) < 2), "{said}: {found:?}");
        }
        for said in [
            "var(--ink)",
            "inherit",
            "#ff",
            "url(a.png)",
            "rgba(9,9,9,.5)",
            "oklch(1 0 0 / 50%)",
            "hsl(a)",
            "color(unknown 1 1 1)",
            "rgb(inf 1 1)",
        ] {
            assert_eq!(parse_color(said), None, "{said}");
        }
        for (said, right) in [
            ("transparent", true),
            ("rgba(0,0,0,0)", true),
            ("rgb(0 0 0 / 0%)", true),
            ("oklch(0 0 0 / 0)", true),
            ("color(srgb 0 0 0 / 0)", true),
            ("rgba(0,0,0,.01)", true),
            ("#0000", true),
            ("#ffffff00", true),
            ("#fff0f0", false),
            ("rgb(0,0,0)", false),
            ("color(srgb 0 0 0)", false),
            ("rgba(0,0,0,.5)", false),
        ] {
            assert_eq!(is_clear(said), right, "{said}");
        }
    }
}
