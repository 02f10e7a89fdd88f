//! Values of a form's fields.

use hayro_interpret::{
    RectExt as _,
    hayro_syntax::{
        object::{Array, Dict, Name, Rect as PdfRect, String as PdfString},
        page::Page,
    },
    kurbo::Rect,
};

/// Flags of a field that nobody sees: hidden, and not to be viewed.
const HIDDEN: u32 = 0b10_0010;

/// The values of the fields that a page shows, and where.
pub(super) fn values(page: &Page<'_>) -> Vec<(Rect, String)> {
    let Some(notes) = page.raw().get::<Array<'_>>("Annots") else { return Vec::new() };
    let mut values = Vec::new();
    for field in notes.iter::<Dict<'_>>() {
        let is_widget =
            field.get::<Name<'_>>("Subtype").is_some_and(|name| name.as_str() == "Widget");
        let hidden = field.get::<u32>("F").is_some_and(|flags| flags & HIDDEN != 0);
        let Some(place) = field.get::<PdfRect>("Rect").filter(|_| is_widget && !hidden) else {
            continue;
        };
        // A field of several widgets keeps its value with their parent.
        let value = field.get::<PdfString<'_>>("V").or_else(|| {
            field.get::<Dict<'_>>("Parent").and_then(|parent| parent.get::<PdfString<'_>>("V"))
        });
        if let Some(value) = value {
            values.push((place.to_kurbo(), decoded(value.as_bytes()).replace('\r', "\n")));
        }
    }
    values
}

/// A text string: UTF-16 or UTF-8 with a mark, else close to Latin-1.
pub(super) fn decoded(bytes: &[u8]) -> String {
    match encoding_rs::Encoding::for_bom(bytes) {
        Some((encoding, mark)) => {
            encoding.decode_without_bom_handling(&bytes[mark..]).0.into_owned()
        }
        None => encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned(),
    }
}
