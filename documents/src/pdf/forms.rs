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

use super::layers::Layers;

/// Flags of a field or note that is not shown: Hidden and NoView.
pub(super) const HIDDEN: u32 = 0b10_0010;

/// Flag of a field whose value is shown as dots.
const PASSWORD: u32 = 1 << 13;

/// Flag of a text field of several lines.
const MULTILINE: u32 = 1 << 12;

/// Flag of a text field with a box for each letter.
const COMB: u32 = 1 << 24;

/// Flag of a button that is one of several choices.
const RADIO: u32 = 1 << 15;

/// Flag of a button without a state.
const PUSH_BUTTON: u32 = 1 << 16;

/// Most ancestors of a field.
const MAX_PARENTS: usize = 32;

/// The shape of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldShape {
    /// Text, or a box that is checked.
    Text,
    /// Text with a box for each letter.
    Comb,
    /// A box that is not checked.
    OffBox,
}

/// The value of a field.
#[derive(Debug)]
pub(super) struct FieldValue {
    pub(super) place: Rect,
    pub(super) text: String,
    /// Whether it begins at the top of its place.
    pub(super) is_from_top: bool,
    pub(super) shape: FieldShape,
    /// Whether it is not shown.
    pub(super) is_hidden: bool,
}

/// Returns the values of the fields of a page.
pub(super) fn field_values(page: &Page<'_>, layers: &Layers<'_>) -> Vec<FieldValue> {
    let Some(notes) = page.raw().get::<Array<'_>>("Annots") else { return Vec::new() };
    let fields = dictionaries(&notes, layers.xref);
    fields.filter_map(|field| read_value(&field, layers)).collect()
}

fn read_value(field: &Dict<'_>, layers: &Layers<'_>) -> Option<FieldValue> {
    let is_widget = field.get::<Name<'_>>("Subtype").is_some_and(|name| name.as_str() == "Widget");
    let flags = match inherited_entry(field, "Ff") {
        Some(Object::Number(flags)) => flags.as_i64() as u32,
        _ => 0,
    };
    let is_hidden = field.get::<u32>("F").is_some_and(|flags| flags & HIDDEN != 0)
        || layers.hides_annotation(field);
    let place = field.get::<PdfRect>("Rect").filter(|_| is_widget)?.to_kurbo();
    if matches!(inherited_entry(field, "FT"), Some(Object::Name(kind)) if kind.as_str() == "Btn") {
        let is_off = !is_checked(field, flags);
        let text = if is_off { "[ ]" } else { "[x]" }.to_owned();
        let is_button = flags & PUSH_BUTTON != 0;
        let shape = if is_off { FieldShape::OffBox } else { FieldShape::Text };
        let value = FieldValue { place, text, is_from_top: false, shape, is_hidden };
        return (!is_button && !is_hidden).then_some(value);
    }
    if flags & PASSWORD != 0 {
        return None;
    }
    let values = chosen_values(field).into_iter();
    let shown = values.map(|value| shown_value(field, &value).unwrap_or(value));
    let text = shown.collect::<Vec<_>>().join("\n").replace("\r\n", "\n").replace('\r', "\n");
    let is_from_top = flags & MULTILINE != 0 || text.contains('\n');
    let shape = if flags & COMB != 0 { FieldShape::Comb } else { FieldShape::Text };
    let value = FieldValue { place, text, is_from_top, shape, is_hidden };
    (!value.text.is_empty()).then_some(value)
}

/// Whether a check box or a radio button is on.
fn is_checked(field: &Dict<'_>, flags: u32) -> bool {
    let state = field.get::<Name<'_>>("AS").or_else(|| match inherited_entry(field, "V") {
        // The value of radio buttons does not tell which one is on.
        Some(Object::Name(state)) if flags & RADIO == 0 => Some(state),
        _ => None,
    });
    state.is_some_and(|state| state.as_str() != "Off")
}

/// Returns an entry of a field, or of the closest ancestor that has it.
fn inherited_entry<'a>(field: &Dict<'a>, key: &str) -> Option<Object<'a>> {
    let mut next = Some(field.clone());
    let mut chain = std::iter::from_fn(|| {
        let field = next.take()?;
        next = field.get::<Dict<'_>>("Parent");
        Some(field)
    });
    chain.by_ref().take(MAX_PARENTS).find_map(|field| field.get::<Object<'_>>(key))
}

/// Returns a field's value; a list may have several.
fn chosen_values(field: &Dict<'_>) -> Vec<String> {
    let of = |text: PdfString<'_>| decode_text(text.as_bytes());
    match inherited_entry(field, "V") {
        Some(Object::Array(several)) => several.iter::<PdfString<'_>>().map(of).collect(),
        Some(Object::String(text)) => vec![of(text)],
        Some(Object::Name(name)) => vec![name.as_str().to_owned()],
        Some(Object::Stream(text)) => {
            text.decoded_data().iter().map(|text| decode_text(text)).collect()
        }
        _ => Vec::new(),
    }
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
fn shown_value(field: &Dict<'_>, value: &str) -> Option<String> {
    let Some(Object::Array(choices)) = inherited_entry(field, "Opt") else { return None };
    choices.iter::<Array<'_>>().find_map(|choice| {
        let mut pair = choice.iter::<PdfString<'_>>().map(|text| decode_text(text.as_bytes()));
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
pub(super) fn decode_text(bytes: &[u8]) -> String {
    match encoding_rs::Encoding::for_bom(bytes) {
        Some((encoding, mark)) => {
            encoding.decode_without_bom_handling(&bytes[mark..]).0.into_owned()
        }
        None => encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned(),
    }
}
