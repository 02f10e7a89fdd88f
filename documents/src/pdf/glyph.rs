//! A letter of a page with its place.

use std::rc::Rc;

/// A letter, or several drawn as one glyph. Lengths are in points, in a frame whose x grows in the
/// direction of reading and whose y grows from line to line.
#[derive(Debug, Clone)]
pub(super) struct Glyph {
    /// Its text; never empty.
    pub(super) text: Rc<str>,
    /// Its start and end.
    pub(super) x: (f64, f64),
    /// Its baseline.
    pub(super) y: f64,
    /// Its em.
    pub(super) size: f64,
    /// Direction of reading in tenths of a degree: 0 from left to right, 900 downwards.
    pub(super) turn: u16,
}
