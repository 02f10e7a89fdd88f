//! The versions of the data in Redis that this program reads and writes.

/// The version of the keys. Workers with another one use other keys.
pub const KEYS: &str = "v1";

/// The version of the state in each model's keys. An older program stops at a newer state.
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
