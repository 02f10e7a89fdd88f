//! A field that cannot be translated or passed on.

/// A refused field of a request, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {why}")]
pub struct RefusedField {
    /// Its name.
    pub field: String,
    /// The fault; quotes nothing of the field's value.
    pub why: String,
}

impl RefusedField {
    /// Refuses `field` for the reason `why`.
    pub fn new(field: &str, why: &str) -> Self {
        Self { field: field.to_owned(), why: why.to_owned() }
    }
}
