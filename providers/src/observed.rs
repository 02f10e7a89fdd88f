//! Limits and remaining quota, as response headers state them.

use std::time::Duration;

/// What one response said about the account's limits. All of it is optional at every provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// Requests.
    pub requests: Option<Window>,
    /// Input and output tokens counted together; at Anthropic the tightest token limit in force.
    pub tokens: Option<Window>,
    /// Input tokens.
    pub input_tokens: Option<Window>,
    /// Output tokens.
    pub output_tokens: Option<Window>,
    /// The provider's name for this call, for its support desk.
    pub request_id: Option<String>,
}

/// One limit. Units are those of the field of [`Observed`] that holds it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    /// How much fits into the window, which is a minute at most providers.
    pub limit: Option<u64>,
    /// How much was left after this call; Anthropic rounds token counts to thousands.
    pub remaining: Option<u64>,
    /// How long after this answer all of it is there again, if nothing more is used.
    pub reset: Option<Duration>,
}

impl Window {
    /// From the two headers of a limit, by their texts, and its reset. `None` without both, so that
    /// an absent header does not look like a limit, and for a limit of 0, which is one that does not
    /// apply: a provider that gave nothing would have refused the call.
    pub(crate) fn read(
        limit: Option<&str>,
        remaining: Option<&str>,
        reset: Option<Duration>,
    ) -> Option<Self> {
        let number = |text: Option<&str>| text?.parse().ok();
        let window = Self { limit: number(limit), remaining: number(remaining), reset };
        let told = window.limit.is_some() || window.remaining.is_some();
        (told && window.limit != Some(0)).then_some(window)
    }

    /// Whether this is a limit of a day: what is used comes back in its reset, and all of it then in
    /// about a day.
    pub(crate) fn is_of_a_day(&self) -> bool {
        let (Some(limit), Some(remaining), Some(reset)) = (self.limit, self.remaining, self.reset)
        else {
            return false;
        };
        let used = limit.saturating_sub(remaining);
        let whole = reset.as_secs_f64() * limit as f64 / used.max(1) as f64;
        used > 0 && (0.8..1.25).contains(&(whole / 86_400.0))
    }
}
