//! Text of drawings in slides, documents and sheets (`DrawingML`).

mod diagram;
mod paragraphs;

pub(crate) use self::{
    diagram::diagram_text,
    paragraphs::{write_paragraphs, write_paragraphs_with},
};
use crate::{look, xml::Element};

/// Returns the description of a picture; empty without one.
pub(crate) fn picture_text(picture: &Element) -> String {
    let names = picture.all("cNvPr");
    look::picture_description([names.first().and_then(|name| name.attribute("descr"))])
}

/// Returns whether the fill of letters paints nothing. `clear` is the value of `alpha` that stands for a
/// transparent color: in slides it is the opacity, in texts the transparency.
pub(crate) fn is_clear_fill(letters: &Element, clear: &[&str]) -> bool {
    let color = letters.child("solidFill").and_then(|fill| fill.elements().next());
    let alpha = color.and_then(|color| color.child("alpha")?.attribute("val"));
    letters.child("noFill").is_some() || alpha.is_some_and(|alpha| clear.contains(&&*alpha))
}

/// Returns whether a shape is hidden by its own properties.
pub(crate) fn is_hidden(shape: &Element) -> bool {
    let names = ["nvSpPr", "nvGrpSpPr", "nvPicPr", "nvGraphicFramePr"];
    let named = names.iter().find_map(|name| shape.child(name)?.child("cNvPr"));
    named.is_some_and(|it| it.is_on("hidden"))
}
