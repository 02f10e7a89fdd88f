//! A field that cannot be translated or passed on.

/// Which field of a request is refused, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {why}")]
pub struct Refused {
    /// Its name.
    pub field: String,
    /// What is wrong with it; quotes nothing of its value.
    pub why: String,
}

impl Refused {
    /// Refuses `field` for the reason `why`.
    pub fn new(field: &str, why: &str) -> Self {
        Self { field: field.to_owned(), why: why.to_owned() }
    }
}
