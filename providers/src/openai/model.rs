//! Differences between the vendor's models, by name. Other names, which compatible servers may use,
//! are unknown, and nothing is refused for them here.
//!
//! Sources: developers.openai.com/api/docs: guides/reasoning, guides/latest-model (parameter
//! compatibility), and the vendor's SDK 3.52.0; which model takes which effort:
//! community.openai.com/t/1371738, read in November 2026.

use tidegate_types::Effort;

/// The kind of reasoning of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reasoning {
    /// Unknown.
    Unknown,
    /// It does not reason, and refuses an effort.
    Never,
    /// It always reasons, and refuses sampling parameters.
    Always,
    /// It always reasons; its lowest effort is `minimal`. It refuses sampling parameters.
    AtLeastMinimal,
    /// It reasons unless told not to; only then does it take sampling parameters.
    UnlessNone,
}

/// Prefixes of names. The longest match counts.
const MODELS: &[(&str, Reasoning)] = &[
    ("gpt-3.5", Reasoning::Never),
    ("gpt-4", Reasoning::Never),
    ("chatgpt-4o", Reasoning::Never),
    ("o1", Reasoning::Always),
    ("o3", Reasoning::Always),
    ("o4-mini", Reasoning::Always),
    ("gpt-5", Reasoning::AtLeastMinimal),
    ("gpt-5-chat", Reasoning::Never),
    ("gpt-5-codex", Reasoning::Always),
    ("gpt-5-pro", Reasoning::Always),
    // From 5.1 on, with any number after the dot.
    ("gpt-5.", Reasoning::UnlessNone),
    ("gpt-6", Reasoning::UnlessNone),
];

pub(crate) fn reasoning(model: &str) -> Reasoning {
    // Gateways prefix the vendor's name.
    let name = model.rsplit('/').next().unwrap_or(model);
    let known = MODELS.iter().filter(|(beginning, _)| name.starts_with(beginning));
    known.max_by_key(|(beginning, _)| beginning.len()).map_or(Reasoning::Unknown, |(_, it)| *it)
}

/// The vendor's word for an effort; `None` if none is to be sent; an error if the model cannot do
/// it.
pub(crate) fn word(model: &str, effort: Effort) -> Result<Option<&'static str>, String> {
    match (reasoning(model), effort) {
        (Reasoning::Never, Effort::None) => Ok(None),
        (Reasoning::Never, _) => Err("this model does not reason; leave it out".to_owned()),
        (Reasoning::Always, Effort::None) => {
            Err("this model always reasons; \"low\" is the least".to_owned())
        }
        (Reasoning::AtLeastMinimal, Effort::None) => Ok(Some("minimal")),
        _ => Ok(Some(effort.as_str())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_name_says_how_it_reasons() {
        for (model, expected) in [
            ("gpt-4o-mini-2024-07-18", Reasoning::Never),
            ("gpt-5-chat-latest", Reasoning::Never),
            ("gpt-5-mini", Reasoning::AtLeastMinimal),
            ("gpt-5.4-mini", Reasoning::UnlessNone),
            ("openai/gpt-6-luna", Reasoning::UnlessNone),
            ("o3-2025-04-16", Reasoning::Always),
            ("llama-4-70b", Reasoning::Unknown),
        ] {
            assert_eq!(reasoning(model), expected, "{model}");
        }
        assert_eq!(word("gpt-5-mini", Effort::None), Ok(Some("minimal")));
        assert_eq!(word("gpt-4o", Effort::None), Ok(None));
        assert!(word("gpt-4o", Effort::Low).is_err() && word("o3", Effort::None).is_err());
    }
}
