//! The program's version, and the versions of stored layouts that it knows. Workers of one fleet
//! with different layouts do not see each other's data, or stop at each other's work with a message
//! that names the layouts.

use std::sync::LazyLock;

/// The commit, if the build knows it: see `build.rs`.
const COMMIT: &str = env!("TIDEGATE_COMMIT");

/// The version and its commit.
pub fn short() -> &'static str {
    static SHORT: LazyLock<String> = LazyLock::new(|| {
        let commit = if COMMIT.is_empty() { "development build" } else { COMMIT };
        format!("{} ({commit})", env!("CARGO_PKG_VERSION"))
    });
    &SHORT
}

/// The version, its commit, and the layouts: of keys and state in Redis, of the workflows' commands, of
/// prompts in the store of answers.
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
