//! Omits fields that have their default when they are serialised.

/// Whether a value is its type's default.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
