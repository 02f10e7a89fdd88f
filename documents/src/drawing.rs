//! Text of drawings in slides, documents and sheets (`DrawingML`).

mod diagram;
mod paragraphs;

pub(crate) use self::{
    diagram::diagram_text,
    paragraphs::{write_paragraphs, write_paragraphs_with},
};
use crate::xml::Element;

/// Returns whether a shape is hidden by its own properties.
pub(crate) fn is_hidden(shape: &Element) -> bool {
    let names = ["nvSpPr", "nvGrpSpPr", "nvPicPr", "nvGraphicFramePr"];
    let named = names.iter().find_map(|name| shape.child(name)?.child("cNvPr"));
    named.is_some_and(|it| it.is_on("hidden"))
}
