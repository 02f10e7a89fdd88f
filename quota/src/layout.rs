//! Which versions of what lies in Redis this program reads and writes.

/// The keys': workers with another one do not meet in the same keys.
pub const KEYS: &str = "v1";

/// The state's, in each model's keys: an older program stops at a newer one.
pub const STATE: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_write_this_state() {
        let mut parts = tidegate_lua::PARTS.iter();
        let line = format!("local LAYOUT_VERSION = {STATE}\n");
        assert!(
            parts.any(|(name, text)| *name == "include/state" && text.contains(&line)),
            "{line}"
        );
    }
}
