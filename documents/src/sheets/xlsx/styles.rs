//! Styles of cells: how they show numbers, and whether their letters are seen.

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
    let all = |list: &str, name: &'static str| {
        let list = styles.all(list).first().copied();
        list.map(|list| list.elements().filter(|it| &*it.name == name).collect::<Vec<_>>())
            .unwrap_or_default()
    };
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
    let fonts: Vec<bool> = all("fonts", "font").iter().map(is_white).collect();
    let fills: Vec<bool> = all("fills", "fill").iter().map(is_bare).collect();
    let of = |style: &&Element| {
        let number = |name: &str| style.attribute(name)?.parse::<usize>().ok();
        let is = |name: &str, all: &[bool]| number(name).and_then(|at| all.get(at).copied());
        is("fontId", &fonts) == Some(true) && is("fillId", &fills).unwrap_or(true)
    };
    all("cellXfs", "xf").iter().map(of).collect()
}
