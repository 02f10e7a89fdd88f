//! Values of a form's fields.

use hayro_interpret::{
    RectExt as _,
    hayro_syntax::{
        Pdf,
        object::{
            Array, Dict, MaybeRef, Name, Object, ObjectIdentifier, Rect as PdfRect,
            String as PdfString,
        },
        page::Page,
        xref::XRef,
    },
    kurbo::Rect,
};

/// Flags of a field or note that is not shown: Hidden and NoView.
pub(super) const HIDDEN: u32 = 0b10_0010;

/// Flag of a field whose value is shown as dots.
const PASSWORD: u32 = 1 << 13;

/// Returns the values of the fields that a page shows, with their places.
pub(super) fn values(page: &Page<'_>, xref: &XRef) -> Vec<(Rect, String)> {
    let Some(notes) = page.raw().get::<Array<'_>>("Annots") else { return Vec::new() };
    let mut values = Vec::new();
    for field in dictionaries(&notes, xref) {
        let is_widget =
            field.get::<Name<'_>>("Subtype").is_some_and(|name| name.as_str() == "Widget");
        let hidden = field.get::<u32>("F").is_some_and(|flags| flags & HIDDEN != 0)
            || field.get::<u32>("Ff").is_some_and(|flags| flags & PASSWORD != 0);
        let Some(place) = field.get::<PdfRect>("Rect").filter(|_| is_widget && !hidden) else {
            continue;
        };
        // A field of several widgets keeps its value in their parent.
        let mut chosen = chosen(&field);
        if chosen.is_empty() {
            chosen =
                field.get::<Dict<'_>>("Parent").map(|it| self::chosen(&it)).unwrap_or_default();
        }
        let shown = chosen.into_iter().map(|value| shown(&field, &value).unwrap_or(value));
        let value = shown.collect::<Vec<_>>().join("\n");
        if !value.is_empty() {
            values.push((place.to_kurbo(), value.replace('\r', "\n")));
        }
    }
    values
}

/// Returns a field's value; a list may have several.
fn chosen(field: &Dict<'_>) -> Vec<String> {
    let of = |text: PdfString<'_>| decoded(text.as_bytes());
    if let Some(several) = field.get::<Array<'_>>("V") {
        return several.iter::<PdfString<'_>>().map(of).collect();
    }
    field.get::<PdfString<'_>>("V").map(of).into_iter().collect()
}

/// Whether the form is dynamic XFA: all that is shown is built from its data when it is opened. Only
/// Adobe's programs do that, and the file's pages say nothing else.
pub(super) fn is_dynamic(file: &Pdf) -> bool {
    let xref = file.xref();
    let Some(root) = xref.get::<Dict<'_>>(xref.root_id()) else { return false };
    root.get::<bool>("NeedsRendering") == Some(true)
        && root.get::<Dict<'_>>("AcroForm").is_some_and(|form| form.contains_key("XFA"))
}

/// Returns the label that a menu shows for a value.
fn shown(field: &Dict<'_>, value: &str) -> Option<String> {
    let choices = field.get::<Array<'_>>("Opt")?;
    choices.iter::<Array<'_>>().find_map(|choice| {
        let mut pair = choice.iter::<PdfString<'_>>().map(|text| decoded(text.as_bytes()));
        (pair.next()? == value).then(|| pair.next())?
    })
}

/// Returns the dictionaries in a list, and skips entries that are lost or something else.
pub(super) fn dictionaries<'a>(
    list: &Array<'a>,
    xref: &'a XRef,
) -> impl Iterator<Item = Dict<'a>> + use<'a> {
    list.raw_iter().filter_map(|entry| match entry {
        MaybeRef::Ref(id) => xref.get::<Dict<'_>>(ObjectIdentifier::from(id)),
        MaybeRef::NotRef(object) => Object::into_dict(object),
    })
}

/// Decodes a text string: UTF-16 or UTF-8 with a byte order mark, otherwise Windows-1252.
pub(super) fn decoded(bytes: &[u8]) -> String {
    match encoding_rs::Encoding::for_bom(bytes) {
        Some((encoding, mark)) => {
            encoding.decode_without_bom_handling(&bytes[mark..]).0.into_owned()
        }
        None => encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned(),
    }
}
