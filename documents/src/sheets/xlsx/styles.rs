//! Styles of cells: how they show numbers, and whether their letters are seen.

use super::strings::strikes;
use crate::{sheets::number_format::NumberFormat, xml::Element};

/// How the cells of each style show numbers.
pub(super) fn formats(styles: &Element) -> Vec<NumberFormat> {
    let own: std::collections::HashMap<u32, String> = styles
        .all("numFmt")
        .into_iter()
        .filter_map(|it| {
            Some((it.attribute("numFmtId")?.parse().ok()?, it.attribute("formatCode")?))
        })
        .collect();
    let cells = styles.all("cellXfs").first().map(|it| it.all("xf")).unwrap_or_default();
    let format = |cell: &&Element| {
        let id: u32 = cell.attribute("numFmtId").and_then(|id| id.parse().ok()).unwrap_or(0);
        own.get(&id).map_or_else(|| NumberFormat::built_in(id), |code| NumberFormat::of(code))
    };
    cells.iter().map(format).collect()
}

/// Which styles of cells write in white on no ground.
pub(super) fn white(styles: &Element) -> Vec<bool> {
    let is_white = |font: &&Element| {
        let color = font.child("color");
        let said = |name: &str| color.and_then(|color| color.attribute(name));
        said("rgb").is_some_and(|it| it.ends_with("FFFFFF"))
            || said("indexed").is_some_and(|it| it == "1" || it == "9")
    };
    let is_bare = |fill: &&Element| {
        let kind = fill.child("patternFill").and_then(|it| it.attribute("patternType"));
        fill.child("gradientFill").is_none() && kind.is_none_or(|it| it == "none")
    };
    let fonts: Vec<bool> = all(styles, "fonts", "font").iter().map(is_white).collect();
    let fills: Vec<bool> = all(styles, "fills", "fill").iter().map(is_bare).collect();
    let of = |style: &&Element| {
        said_by(style, "fontId", &fonts) == Some(true)
            && said_by(style, "fillId", &fills).unwrap_or(true)
    };
    all(styles, "cellXfs", "xf").iter().map(of).collect()
}

/// Which styles of cells strike their letters out.
pub(super) fn struck(styles: &Element) -> Vec<bool> {
    let is_struck = |font: &&Element| font.child("strike").is_some_and(strikes);
    let fonts: Vec<bool> = all(styles, "fonts", "font").iter().map(is_struck).collect();
    let of = |style: &&Element| said_by(style, "fontId", &fonts) == Some(true);
    all(styles, "cellXfs", "xf").iter().map(of).collect()
}

/// The elements of a list.
fn all<'e>(styles: &'e Element, list: &str, name: &str) -> Vec<&'e Element> {
    let list = styles.all(list).first().copied();
    list.map(|list| list.elements().filter(|it| &*it.name == name).collect()).unwrap_or_default()
}

/// What is so of a style's font or ground, by its place in their list.
fn said_by(style: &Element, name: &str, list: &[bool]) -> Option<bool> {
    list.get(style.attribute(name)?.parse::<usize>().ok()?).copied()
}
