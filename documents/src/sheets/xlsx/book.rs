//! What the sheets of a book share.

use crate::sheets::number_format::NumberFormat;

/// Data shared by the sheets of a book: the styles of cells by their numbers, and texts.
pub(super) struct Book {
    /// Whether a style writes in the color of its background, or too small.
    pub(super) invisible: Vec<bool>,
    /// Whether a style strikes letters out.
    pub(super) struck_out: Vec<bool>,
    pub(super) strings: Vec<Box<str>>,
    pub(super) formats: Vec<NumberFormat>,
    /// Whether days are counted from 1904.
    pub(super) is_1904: bool,
}
