//! Fields that are not written where they say nothing.

/// Whether a value is the one that stands for its absence.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
