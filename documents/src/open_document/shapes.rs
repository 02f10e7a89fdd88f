//! Order of the shapes of a slide.

use crate::{rows::sort_by_rows, xml::Element};

/// Largest distance between the upper edges of shapes in one row, in points.
const SAME_ROW: f64 = 18.0;

/// Sorts the shapes of a slide by row from above, then from the left. A shape without a position
/// stays with the one before it; notes are last.
pub(super) fn sort_shapes(page: &Element) -> Vec<&Element> {
    let mut last = (f64::MIN, f64::MIN);
    let mut placed: Vec<((f64, f64), &Element)> = Vec::new();
    for element in page.elements() {
        let place = ["y", "x"].map(|name| points(&element.attribute(name)?));
        match (&*element.name, place) {
            ("notes", _) => last = (f64::MAX, 0.0),
            (_, [Some(y), Some(x)]) => last = (y, x),
            _ => {}
        }
        placed.push((last, element));
    }
    sort_by_rows(placed, SAME_ROW)
}

/// Returns a length in points.
fn points(length: &str) -> Option<f64> {
    let end = length.trim().find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = length.trim().split_at(end);
    let unit = match unit {
        "cm" => 72.0 / 2.54,
        "mm" => 72.0 / 25.4,
        "in" => 72.0,
        "pt" => 1.0,
        "pc" => 12.0,
        "px" => 0.75,
        _ => return None,
    };
    number.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number * unit)
}
