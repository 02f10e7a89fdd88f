//! Limits and remaining quota, as response headers state them.

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
}

impl Window {
    /// From the two headers of a limit, by their texts. `None` without both, so that an absent
    /// header does not look like a limit.
    pub(crate) fn read(limit: Option<&str>, remaining: Option<&str>) -> Option<Self> {
        let number = |text: Option<&str>| text?.parse().ok();
        let window = Self { limit: number(limit), remaining: number(remaining) };
        (window != Self::default()).then_some(window)
    }
}
