//! Rejects a provider's reported usage that is impossible.

use tidegate_quota::Request;
use tidegate_types::Usage;

/// Factor below which estimates of tokens are wrong: a script with two tokens a character has eight
/// for each estimated token.
const FAR_OFF: u64 = 10;

/// Tokens that vendors add around a short prompt, such as those of a schema or a tool.
const AROUND: u64 = 500;

/// Whether a call can have this usage. Its input is above zero and at most a few times the
/// estimate. Its output is above zero if there is an answer, and at most a few times the bound,
/// which not all servers keep.
pub(crate) fn is_plausible(usage: &Usage, request: &Request, has_answer: bool) -> bool {
    let bound = |tokens: u64| tokens.saturating_add(AROUND).saturating_mul(FAR_OFF);
    let input = usage.input();
    input > 0
        && input <= bound(request.input_tokens)
        && usage.output <= bound(request.max_output_tokens)
        && (usage.output > 0 || !has_answer)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use super::*;

    #[test]
    fn nothing_and_far_too_much_cannot_be() {
        let request = Request::new("a:b".parse().unwrap(), "r").tokens(1_000, 100);
        let can = |uncached_input, output, has_answer| {
            is_plausible(
                &Usage { uncached_input, output, ..Usage::default() },
                &request,
                has_answer,
            )
        };
        assert!(can(900, 80, true) && can(8_000, 400, true) && can(900, 0, false));
        assert!(!can(0, 80, true) && !can(900, 0, true));
        assert!(!can(1_000_000, 80, true) && !can(900, 1_000_000, true));
        let cached = Usage { cache_read: 900, output: 5, ..Usage::default() };
        assert!(is_plausible(&cached, &request, true));
    }
}
