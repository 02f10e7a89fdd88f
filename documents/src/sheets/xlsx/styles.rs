//! Styles of cells: number formats, and invisible or struck letters.

use crate::{
    colors::{Background, Rgb, TINY, WHITE, parse_hexadecimal},
    sheets::number_format::NumberFormat,
    xml::Element,
};

/// Returns the number format of each style.
pub(super) fn number_formats(styles: &Element) -> Vec<NumberFormat> {
    // Formats for some cells only (`dxfs`) may use the same numbers.
    let own: std::collections::HashMap<u32, String> = styles
        .all("numFmts")
        .into_iter()
        .flat_map(Element::elements)
        .filter_map(|it| {
            Some((it.attribute("numFmtId")?.parse().ok()?, it.attribute("formatCode")?))
        })
        .collect();
    let cells = styles.all("cellXfs").first().map(|it| it.all("xf")).unwrap_or_default();
    let format = |cell: &&Element| {
        let id: u32 = cell.attribute("numFmtId").and_then(|id| id.parse().ok()).unwrap_or(0);
        own.get(&id).map_or_else(|| NumberFormat::built_in(id), |code| NumberFormat::parse(code))
    };
    cells.iter().map(format).collect()
}

/// The colors of a book's theme, in the order of their numbers.
pub(super) struct Palette(Vec<Option<Rgb>>);

impl Palette {
    pub(super) fn read(theme: Option<&Element>) -> Self {
        let scheme = theme.and_then(|theme| theme.all("clrScheme").first().copied());
        let color = |named: &Element| {
            let color = named.elements().next()?;
            parse_hexadecimal(&color.attribute("lastClr").or_else(|| color.attribute("val"))?)
        };
        let mut colors: Vec<Option<Rgb>> =
            scheme.into_iter().flat_map(Element::elements).map(color).collect();
        // Theme numbers have light before dark; the file has dark before light.
        colors.chunks_exact_mut(2).take(2).for_each(<[_]>::reverse);
        Self(colors)
    }

    /// Returns the color of an element; `None` if unknown.
    fn color(&self, color: &Element) -> Option<Rgb> {
        let number = |name: &str| color.attribute(name)?.parse::<usize>().ok();
        let written = color.attribute("rgb");
        // The opacity before the color has no effect.
        let written = written.and_then(|it| parse_hexadecimal(it.get(it.len().checked_sub(6)?..)?));
        let plain =
            written.or_else(|| INDEXED.get(number("indexed")?).copied()).or_else(|| {
                match (number("theme")?, self.0.is_empty()) {
                    (0, true) => Some(WHITE),
                    (1, true) => Some([0; 3]),
                    (at, _) => self.0.get(at).copied().flatten(),
                }
            })?;
        let tint = color.attribute("tint").and_then(|tint| tint.parse().ok()).unwrap_or(0.0_f64);
        Some(plain.map(|part| {
            let part = f64::from(part);
            let tinted =
                if tint < 0.0 { part * (1.0 + tint) } else { part + (255.0 - part) * tint };
            // Within the range of a byte.
            tinted.clamp(0.0, 255.0).round() as u8
        }))
    }

    /// Returns the background of a cell with this fill.
    fn background_of(&self, fill: &Element) -> Background {
        let pattern = fill.child("patternFill");
        match pattern.and_then(|it| it.attribute("patternType")).as_deref() {
            None | Some("none") if fill.child("gradientFill").is_none() => Background::Plain(WHITE),
            Some("solid") => {
                let color = pattern.and_then(|it| self.color(it.child("fgColor")?));
                color.map_or(Background::Unknown, Background::Plain)
            }
            _ => Background::Unknown,
        }
    }
}

/// The first colors of the indexed palette (ECMA-376 part 1, 18.8.27).
const INDEXED: [Rgb; 16] = {
    let (black, white, red, green) = ([0; 3], WHITE, [255, 0, 0], [0, 255, 0]);
    let (blue, yellow, magenta, cyan) = ([0, 0, 255], [255, 255, 0], [255, 0, 255], [0, 255, 255]);
    [
        black, white, red, green, blue, yellow, magenta, cyan, black, white, red, green, blue,
        yellow, magenta, cyan,
    ]
};

/// Returns for each style whether its letters are tiny or in the color of their background.
pub(super) fn invisible_styles(styles: &Element, palette: &Palette) -> Vec<bool> {
    let color = |font: &&Element| font.child("color").and_then(|color| palette.color(color));
    let is_tiny = |font: &&Element| {
        let size = font.child("sz").and_then(|size| size.attribute("val")?.parse::<f64>().ok());
        size.is_some_and(|size| size <= TINY)
    };
    let tiny: Vec<bool> = list_elements(styles, "fonts", "font").iter().map(is_tiny).collect();
    let background = |fill: &&Element| palette.background_of(fill);
    let colors: Vec<Option<Rgb>> =
        list_elements(styles, "fonts", "font").iter().map(color).collect();
    let backgrounds: Vec<Background> =
        list_elements(styles, "fills", "fill").iter().map(background).collect();
    let of = |style: &&Element| {
        let background =
            indexed_property(style, "fillId", &backgrounds).unwrap_or(Background::Plain(WHITE));
        let color = indexed_property(style, "fontId", &colors).flatten();
        color.is_some_and(|color| background.hides(color))
            || indexed_property(style, "fontId", &tiny) == Some(true)
    };
    list_elements(styles, "cellXfs", "xf").iter().map(of).collect()
}

/// Returns for each style whether it strikes letters out.
pub(super) fn struck_out_styles(styles: &Element) -> Vec<bool> {
    let is_struck = |font: &&Element| font.child("strike").is_some_and(|it| !it.is_off("val"));
    let fonts: Vec<bool> = list_elements(styles, "fonts", "font").iter().map(is_struck).collect();
    let of = |style: &&Element| indexed_property(style, "fontId", &fonts) == Some(true);
    list_elements(styles, "cellXfs", "xf").iter().map(of).collect()
}

/// Returns the elements of a list.
fn list_elements<'e>(styles: &'e Element, list: &str, name: &str) -> Vec<&'e Element> {
    let list = styles.all(list).first().copied();
    list.map(|list| list.elements().filter(|it| &*it.name == name).collect()).unwrap_or_default()
}

/// Returns the property of a style's font or fill, by its index in the list.
fn indexed_property<T: Copy>(style: &Element, name: &str, list: &[T]) -> Option<T> {
    list.get(style.attribute(name)?.parse::<usize>().ok()?).copied()
}
