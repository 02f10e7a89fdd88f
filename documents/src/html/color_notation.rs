//! Colors of style sheets, in the notations of CSS Color 4.

use crate::colors::{Rgb, WHITE, parse_hexadecimal};

/// Opacity below which nothing is seen.
pub(super) const FAINT: f64 = 0.05;

/// A matrix for three components.
type Matrix = [[f64; 3]; 3];

const OKLAB_TO_CONES: Matrix = [
    [1.0, 0.396_337_777_4, 0.215_803_757_3],
    [1.0, -0.105_561_345_8, -0.063_854_172_8],
    [1.0, -0.089_484_177_5, -1.291_485_548],
];

const CONES_TO_RGB: Matrix = [
    [4.076_741_662_1, -3.307_711_591_3, 0.230_969_929_2],
    [-1.268_438_004_6, 2.609_757_401_1, -0.341_319_396_5],
    [-0.004_196_086_3, -0.703_418_614_7, 1.707_614_701],
];

/// From CIE XYZ with the white point D50.
const XYZ_TO_RGB: Matrix = [
    [3.133_856_1, -1.616_866_7, -0.490_614_6],
    [-0.978_768_4, 1.916_141_5, 0.033_454],
    [0.071_945_3, -0.228_991_4, 1.405_242_7],
];

const P3_TO_RGB: Matrix = [
    [1.224_940_1, -0.224_940_2, 0.0],
    [-0.042_056_9, 1.042_057_1, 0.0],
    [-0.019_637_6, -0.078_636_1, 1.098_273_5],
];

/// The white point D50.
const WHITE_XYZ: [f64; 3] = [0.964_22, 1.0, 0.825_21];

/// Returns an opaque color given by numbers, or black or white; text is hidden with these. `None` for
/// others.
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
    let (kind, parts, alpha) = split_notation(value)?;
    // The color of a half transparent letter depends on more.
    if alpha < 1.0 {
        return None;
    }
    let at = |place: usize, whole: f64| read_part(parts.get(place)?, whole);
    let all = |whole: [f64; 3]| Some([at(0, whole[0])?, at(1, whole[1])?, at(2, whole[2])?]);
    let is_polar = kind.ends_with("lch");
    let rgb = match kind {
        "rgb" | "rgba" => all([255.0; 3])?.map(|part| part / 255.0),
        "color" => {
            let rgb = [at(1, 1.0)?, at(2, 1.0)?, at(3, 1.0)?];
            match *parts.first()? {
                "srgb" => rgb,
                "srgb-linear" => rgb.map(encode),
                "display-p3" => multiply(P3_TO_RGB, rgb.map(decode)).map(encode),
                _ => return None,
            }
        }
        "hsl" | "hsla" | "hwb" => {
            let (hue, one, other) =
                (read_hue(parts.first()?)?, at(1, 100.0)? / 100.0, at(2, 100.0)? / 100.0);
            if kind == "hwb" { from_hwb(hue, one, other) } else { from_hsl(hue, one, other) }
        }
        "oklab" | "oklch" => {
            let lab =
                if is_polar { from_polar(&parts, [1.0, 0.4])? } else { all([1.0, 0.4, 0.4])? };
            let cones = multiply(OKLAB_TO_CONES, lab).map(|part| part.powi(3));
            multiply(CONES_TO_RGB, cones).map(encode)
        }
        "lab" | "lch" => {
            let [lightness, a, b] = if is_polar {
                from_polar(&parts, [100.0, 150.0])?
            } else {
                all([100.0, 125.0, 125.0])?
            };
            let y = (lightness + 16.0) / 116.0;
            let [x, y, z] = [y + a / 500.0, y, y - b / 200.0].map(|part| {
                let edge = 6.0 / 29.0;
                if part > edge { part.powi(3) } else { 3.0 * edge * edge * (part - 4.0 / 29.0) }
            });
            let xyz = [x * WHITE_XYZ[0], y * WHITE_XYZ[1], z * WHITE_XYZ[2]];
            multiply(XYZ_TO_RGB, xyz).map(encode)
        }
        _ => return None,
    };
    rgb.iter().all(|part| part.is_finite()).then(|| rgb.map(|it| (it * 255.0).round() as u8))
}

/// Whether a color is so transparent that nothing is seen.
pub(super) fn is_clear(value: &str) -> bool {
    let digits = value.strip_prefix('#').filter(|it| it.chars().all(|c| c.is_ascii_hexdigit()));
    let has_no_alpha = digits.is_some_and(|it| {
        (it.len() == 4 && it.ends_with('0')) || (it.len() == 8 && it.ends_with("00"))
    });
    let is_faint = || split_notation(value).is_some_and(|(_, _, alpha)| alpha < FAINT);
    value == "transparent" || has_no_alpha || is_faint()
}

/// Splits `name(1 2 3 / 0.5)` or `name(1, 2, 3, 0.5)` into its name, its parts, and its opacity. `None` if it
/// is no color, or of unknown opacity.
fn split_notation(value: &str) -> Option<(&str, Vec<&str>, f64)> {
    let (kind, inside) = value.strip_suffix(')')?.split_once('(')?;
    let has_space = kind == "color";
    let known = ["rgb", "rgba", "hsl", "hsla", "hwb", "lab", "lch", "oklab", "oklch"];
    if !has_space && !known.contains(&kind) {
        return None;
    }
    let parts: Vec<&str> = inside.split([',', ' ', '/']).filter(|it| !it.is_empty()).collect();
    let alpha = parts.get(3 + usize::from(has_space));
    let alpha = alpha.map_or(Some(1.0), |alpha| read_part(alpha, 1.0))?;
    Some((kind, parts, alpha))
}

/// Reads a number, or a percentage of `whole`.
fn read_part(part: &str, whole: f64) -> Option<f64> {
    match part.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok().map(|it| it / 100.0 * whole),
        None if part == "none" => Some(0.0),
        None => part.parse().ok(),
    }
}

/// Reads an angle in degrees.
fn read_hue(angle: &str) -> Option<f64> {
    let units =
        [("deg", 1.0), ("grad", 0.9), ("rad", 180.0 / std::f64::consts::PI), ("turn", 360.0)];
    let unit = units.into_iter().find_map(|(name, unit)| Some((angle.strip_suffix(name)?, unit)));
    let (number, unit) = unit.unwrap_or((angle, 1.0));
    read_part(number, 360.0).map(|it| it * unit)
}

/// Converts lightness, chroma and hue to lightness and two axes. `whole` is what 100% of the first two means.
fn from_polar(parts: &[&str], whole: [f64; 2]) -> Option<[f64; 3]> {
    let chroma = read_part(parts.get(1)?, whole[1])?;
    let (sin, cos) = read_hue(parts.get(2)?)?.to_radians().sin_cos();
    Some([read_part(parts.first()?, whole[0])?, chroma * cos, chroma * sin])
}

fn from_hsl(hue: f64, saturation: f64, lightness: f64) -> [f64; 3] {
    let chroma = saturation * lightness.min(1.0 - lightness);
    [0.0, 8.0, 4.0].map(|offset| {
        let place = (offset + hue / 30.0).rem_euclid(12.0);
        lightness - chroma * (place - 3.0).min(9.0 - place).clamp(-1.0, 1.0)
    })
}

fn from_hwb(hue: f64, white: f64, black: f64) -> [f64; 3] {
    let sum = (white + black).max(1.0);
    let (white, black) = (white / sum, black / sum);
    from_hsl(hue, 1.0, 0.5).map(|part| part * (1.0 - white - black) + white)
}

fn multiply(matrix: Matrix, parts: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row.iter().zip(parts).map(|(one, other)| one * other).sum())
}

/// Converts a linear component to that of sRGB.
fn encode(part: f64) -> f64 {
    if part <= 0.003_130_8 { part * 12.92 } else { 1.055 * part.powf(1.0 / 2.4) - 0.055 }
}

/// Converts a component of sRGB to a linear one.
fn decode(part: f64) -> f64 {
    if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
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
