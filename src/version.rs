//! Which build this is, and which versions of what outlives it the program knows: workers of one fleet
//! that differ in these do not meet, or stop at each other's work with a sentence that names them.

use std::sync::LazyLock;

/// The commit, where the build knows it: see `build.rs`.
const COMMIT: &str = env!("TIDEGATE_COMMIT");

/// The version, and the commit that it is made from.
pub fn short() -> &'static str {
    static SHORT: LazyLock<String> = LazyLock::new(|| {
        let commit = if COMMIT.is_empty() { "development build" } else { COMMIT };
        format!("{} ({commit})", env!("CARGO_PKG_VERSION"))
    });
    &SHORT
}

/// The same, and the layouts: of keys and state in Redis, of the workflows' commands, of prompts in
/// the store of answers.
pub fn long() -> &'static str {
    static LONG: LazyLock<String> = LazyLock::new(|| {
        format!(
            "{}\nredis      keys {}, state {}\nworkflows  {}\nanswers    {}",
            short(),
            tidegate_quota::layout::KEYS,
            tidegate_quota::layout::STATE,
            tidegate_workflows::COMMANDS,
            tidegate_activities::output::answers::LAYOUT,
        )
    });
    &LONG
}
