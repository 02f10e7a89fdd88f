//! Addresses to listen at.

/// The address in a setting that may be `off` or empty.
pub(super) fn unless_off(listen: &str) -> Option<&str> {
    Some(listen).filter(|listen| !listen.is_empty() && *listen != "off")
}
