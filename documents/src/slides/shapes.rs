//! Properties of a slide's parts and shapes.

use crate::{package::Package, xml::Element};

/// Returns the parts of a kind that a part refers to.
pub(super) fn related_parts(package: &mut Package<'_>, part: &str, kind: &str) -> Vec<String> {
    let relations = package.relations(part).unwrap_or_default();
    relations.into_values().filter(|it| it.kind == kind).map(|it| it.target).collect()
}

/// Returns the frame of a shape; of `AlternateContent`, that of its first choice.
pub(super) fn shape_frame(shape: &Element) -> Option<&Element> {
    let inner = match &*shape.name {
        "AlternateContent" => shape.child("Choice")?.elements().next()?,
        _ => shape,
    };
    let properties = ["spPr", "grpSpPr"].iter().find_map(|name| inner.child(name));
    properties.unwrap_or(inner).child("xfrm")
}

/// Returns two numeric attributes of an element.
pub(super) fn read_pair(element: &Element, names: [&str; 2]) -> Option<(i64, i64)> {
    let [one, other] = names.map(|name| element.attribute(name)?.parse().ok());
    Some((one?, other?))
}

/// Returns the kind of a placeholder.
pub(super) fn placeholder_kind(shape: &Element) -> Option<String> {
    let place = *shape.all("ph").first()?;
    Some(place.attribute("type").unwrap_or_default())
}
