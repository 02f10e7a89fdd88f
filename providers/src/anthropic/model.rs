//! Differences between the vendor's models, by name.
//!
//! Sources: platform.claude.com/docs/en/build-with-claude: thinking, extended-thinking,
//! adaptive-thinking, effort; read in November 2026, with docs.memberjunction.org
//! (`RejectsSamplingParams`, `UsesAdaptiveThinking`), which quotes the list of models that always
//! refuse sampling parameters. A name without a version counts as the newest.

/// Major and minor version: `claude-sonnet-4-5-20250929`, `claude-3-7-sonnet`,
/// `eu.anthropic.claude-opus-5-v1:0`.
fn version(model: &str) -> (u32, u32) {
    let name = model.rsplit_once("claude").map_or(model, |(_, name)| name);
    // The API's version follows.
    let name = name.split("-v").next().unwrap_or(name);
    let mut parts = name.split(['-', '@', ':', '.']).skip_while(|part| number(part).is_none());
    let major = parts.next().and_then(number);
    let minor = parts.next().and_then(number);
    major.map_or((u32::MAX, 0), |major| (major, minor.unwrap_or(0)))
}

/// Parses a part of a version; `None` for a date.
fn number(part: &str) -> Option<u32> {
    (part.len() <= 2).then(|| part.parse().ok()).flatten()
}

/// The way in which a model's thinking is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thinking {
    /// It cannot think.
    Never,
    /// It thinks only with a budget of tokens.
    Budget,
    /// It decides the amount of thinking itself, guided by the effort.
    Adaptive,
    /// Like `Adaptive`, but thinking cannot be switched off.
    Always,
}

pub(crate) fn thinking(model: &str) -> Thinking {
    match version(model) {
        _ if ["fable", "mythos"].iter().any(|name| model.contains(name)) => Thinking::Always,
        at if at < (3, 7) => Thinking::Never,
        at if at < (4, 6) => Thinking::Budget,
        _ => Thinking::Adaptive,
    }
}

/// Whether the model follows a schema
/// (platform.claude.com/docs/en/build-with-claude/structured-outputs).
pub(crate) fn keeps_schemas(model: &str) -> bool {
    version(model) >= (4, 5)
}

/// Whether the model calls tools, and can be forced to.
pub(crate) fn takes_tools(model: &str) -> bool {
    version(model) >= (3, 0)
}

/// Whether the model refuses a budget of thinking tokens.
pub(crate) fn refuses_budgets(model: &str) -> bool {
    version(model) >= (4, 7) || !matches!(thinking(model), Thinking::Budget | Thinking::Adaptive)
}

/// Whether the model refuses `temperature`, `top_p` and `top_k` even without thinking.
pub(crate) fn refuses_sampling(model: &str) -> bool {
    version(model) >= (4, 7) || thinking(model) == Thinking::Always
}

/// Whether the model refuses `temperature` and `top_p` together: "`temperature` and `top_p` cannot
/// both be specified for this model".
pub(crate) fn takes_one_sampler(model: &str) -> bool {
    version(model) >= (4, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_version_is_read_from_its_name() {
        for (model, thinks, sampling) in [
            ("claude-3-5-haiku-20241022", Thinking::Never, false),
            ("claude-3-7-sonnet-20250219", Thinking::Budget, false),
            ("claude-sonnet-4-20250514", Thinking::Budget, false),
            ("claude-haiku-4-5-20251001", Thinking::Budget, false),
            ("claude-opus-4-6", Thinking::Adaptive, false),
            ("claude-opus-4-7", Thinking::Adaptive, true),
            ("eu.anthropic.claude-sonnet-5-5-v1:0", Thinking::Adaptive, true),
            ("claude-fable-5", Thinking::Always, true),
            ("claude-mythos-preview", Thinking::Always, true),
            ("anthropic.claude-v1:0", Thinking::Adaptive, true),
            ("claude-of-the-future", Thinking::Adaptive, true),
        ] {
            assert_eq!((thinking(model), refuses_sampling(model)), (thinks, sampling), "{model}");
        }
    }
}
