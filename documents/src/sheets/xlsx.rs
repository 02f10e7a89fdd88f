//! Books of XML parts (`.xlsx`). A damaged sheet does not affect the others.

mod book;
mod edges;
mod floating_texts;
mod formula;
mod sheet;
mod strings;
mod styles;

use std::collections::HashSet;

use super::cells::{Cells, Fault};
use crate::{
    context::Context, format::Format, left_out::Kind, links::with_fragment, package::Package,
    unreadable::Unreadable, xml::Element,
};
use book::Book;
pub(super) use floating_texts::floating_texts;
use sheet::{CellLink, Sheet};
use strings::read_shared_strings;
use styles::Palette;

/// Reads the text of a book.
pub(super) fn read(package: &mut Package<'_>, context: &Context<'_>) -> Result<String, Unreadable> {
    let damaged = |what: &str| Unreadable::damaged(Format::Xlsx, what);
    let main = package.main_part("xl/workbook.xml")?;
    let tree = package.xml(&main)?.ok_or_else(|| damaged("its main part is missing"))?;
    let relations = package.relations(&main)?;
    let part = |kind: &str| relations.values().find(|it| it.kind == kind).map(|it| &*it.target);
    let is_1904 = tree.all("workbookPr").first().is_some_and(|it| it.is_on("date1904"));
    let strings = match part("sharedStrings").map(|name| package.read(name)).transpose()?.flatten()
    {
        Some(bytes) => read_shared_strings(&bytes)?,
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
    let invisible = styles::invisible_styles(&styles, &Palette::read(theme.as_ref()));
    let struck_out = styles::struck_out_styles(&styles);
    let book =
        Book { invisible, struck_out, strings, formats: styles::number_formats(&styles), is_1904 };
    let (mut text, mut fault) = (String::new(), None);
    // Each sheet is a part of its own: a book that names one twice would be read for ever.
    let mut read_parts = HashSet::new();
    let sheets = tree.all("sheets").first().map(|sheets| sheets.all("sheet")).unwrap_or_default();
    for (number, sheet) in (1..).zip(sheets) {
        let place = format!("sheet {number}");
        let name = sheet.attribute("name").unwrap_or_default();
        let target = sheet.reference().and_then(|id| relations.get(&id));
        let target = target.map(|it| &*it.target).filter(|target| read_parts.insert(*target));
        let Some(target) = target else {
            context.tally.add_in_part(Kind::UnreadParts, 1, &place);
            continue;
        };
        let (mut cells, mut headers_and_footers) =
            (Cells::new(context.limits, context.deadline, text.len()), Vec::new());
        let read = package.read(target).map_err(Fault::Document).and_then(|bytes| {
            let bytes = bytes.ok_or_else(|| Fault::Sheet(format!("{target} is missing")))?;
            Sheet::new(&book, &mut cells).read(&bytes)
        });
        match read {
            Ok(extras) => {
                context.tally.add_in_part(
                    Kind::FormulasWithoutValue,
                    extras.formulas_without_value,
                    &place,
                );
                let links = package.links(target)?;
                cells.add_links(|place| match extras.links.get(&place)? {
                    CellLink::Reference(id, place) => {
                        Some(with_fragment(links.get(id)?, place.as_deref()))
                    }
                    CellLink::Formula(address) => Some(address.clone()),
                });
                headers_and_footers = extras.headers_and_footers;
            }
            Err(Fault::Document(unreadable)) => return Err(unreadable),
            Err(Fault::Sheet(reason)) => {
                context.tally.add_in_part(Kind::UnreadParts, 1, &place);
                fault = Some(reason);
            }
        }
        let is_hidden = sheet.attribute("state").is_some_and(|state| state != "visible");
        let hidden = cells.take_hidden(is_hidden, &place, context.tally);
        let mut texts_after_cells =
            if is_hidden { Vec::new() } else { floating_texts(package, target, context)? };
        if !is_hidden {
            texts_after_cells.extend(headers_and_footers);
        }
        texts_after_cells.extend((!hidden.is_empty()).then_some(hidden));
        cells.write(&name, &texts_after_cells, &mut text)?;
    }
    match fault {
        Some(fault) if text.is_empty() => Err(damaged(&fault)),
        _ => Ok(text.trim_end().to_owned()),
    }
}
