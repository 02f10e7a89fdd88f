//! Books of XML parts (`.xlsx`). A damaged sheet does not affect the others.

mod beside;
mod formula;
mod sheet;
mod strings;
mod styles;

use super::{
    cells::{Cells, Fault},
    number_format::NumberFormat,
};
use crate::{
    context::Context, format::Format, left_out::Kind, package::Package, unreadable::Unreadable,
    xml::Element,
};
use beside::beside;
use sheet::Sheet;
use strings::strings;
use styles::Palette;

/// Data shared by the sheets of a book: the styles of cells by their numbers, and texts.
struct Book {
    /// Whether a style writes in the color of its background, or too small.
    unseen: Vec<bool>,
    /// Whether a style strikes letters out.
    struck: Vec<bool>,
    strings: Vec<Box<str>>,
    formats: Vec<NumberFormat>,
    /// Whether days are counted from 1904.
    is_1904: bool,
}

/// Reads the text of a book.
pub(super) fn read(package: &mut Package<'_>, context: &Context<'_>) -> Result<String, Unreadable> {
    let damaged = |what: &str| Unreadable::damaged(Format::Xlsx, what);
    let main = package.main("xl/workbook.xml")?;
    let tree = package.xml(&main)?.ok_or_else(|| damaged("its main part is missing"))?;
    let relations = package.relations(&main)?;
    let part = |kind: &str| relations.values().find(|it| it.kind == kind).map(|it| &*it.target);
    let is_1904 = tree.all("workbookPr").first().is_some_and(|it| it.is_on("date1904"));
    let strings = match part("sharedStrings").map(|name| package.read(name)).transpose()?.flatten()
    {
        Some(bytes) => strings(&bytes)?,
        None => Vec::new(),
    };
    let styles = match part("styles") {
        Some(name) => package.optional(name)?.unwrap_or_default(),
        None => Element::default(),
    };
    let theme = match part("theme") {
        Some(name) => package.optional(name)?,
        None => None,
    };
    let unseen = styles::unseen(&styles, &Palette::of(theme.as_ref()));
    let struck = styles::struck(&styles);
    let book = Book { unseen, struck, strings, formats: styles::formats(&styles), is_1904 };
    let (mut text, mut fault) = (String::new(), None);
    let sheets = tree.all("sheets").first().map(|sheets| sheets.all("sheet")).unwrap_or_default();
    for (number, sheet) in (1..).zip(sheets) {
        let place = format!("sheet {number}");
        let name = sheet.attribute("name").unwrap_or_default();
        let target = sheet.reference().and_then(|id| relations.get(&id));
        let Some(target) = target.map(|it| &*it.target) else {
            context.tally.in_part(Kind::UnreadParts, 1, &place);
            continue;
        };
        let (mut cells, mut edges) =
            (Cells::new(context.limits, context.deadline, text.len()), Vec::new());
        let read = package.read(target).map_err(Fault::Document).and_then(|bytes| {
            let bytes = bytes.ok_or_else(|| Fault::Sheet(format!("{target} is missing")))?;
            Sheet::new(&book, &mut cells).read(&bytes)
        });
        match read {
            Ok(seen) => {
                context.tally.in_part(Kind::FormulasWithoutValue, seen.formulas, &place);
                let links = package.links(target)?;
                cells.link(|place| links.get(seen.links.get(&place)?));
                edges = seen.edges;
            }
            Err(Fault::Document(unreadable)) => return Err(unreadable),
            Err(Fault::Sheet(reason)) => {
                context.tally.in_part(Kind::UnreadParts, 1, &place);
                fault = Some(reason);
            }
        }
        let is_hidden = sheet.attribute("state").is_some_and(|state| state != "visible");
        let hidden = cells.hidden(is_hidden, &place, context.tally);
        let mut beside = if is_hidden { Vec::new() } else { beside(package, target, context)? };
        if !is_hidden {
            beside.extend(edges);
        }
        beside.extend((!hidden.is_empty()).then_some(hidden));
        cells.write(&name, &beside, &mut text)?;
    }
    match fault {
        Some(fault) if text.is_empty() => Err(damaged(&fault)),
        _ => Ok(text.trim_end().to_owned()),
    }
}
