//! Limits and remaining quota, from response headers.

use std::time::Duration;

/// The account's limits as one response states them. All of it is optional at every provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// Requests.
    pub requests: Option<Window>,
    /// Input and output tokens counted together; at Anthropic the tightest token limit.
    pub tokens: Option<Window>,
    /// Input tokens.
    pub input_tokens: Option<Window>,
    /// Output tokens.
    pub output_tokens: Option<Window>,
    /// Whether the headers state moments as resets, which the provider may have written when the call
    /// came or when its reply left.
    pub resets_are_moments: bool,
    /// The provider's id of this call, for its support desk.
    pub request_id: Option<String>,
}

/// One limit. Units are those of the field of [`Observed`] that holds it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    /// The limit of the window, which is a minute at most providers.
    pub limit: Option<u64>,
    /// The rest after this call; Anthropic rounds token counts to thousands.
    pub remaining: Option<u64>,
    /// Time after this reply until the limit is full again, if nothing more is used.
    pub reset: Option<Duration>,
}

impl Window {
    /// Reads the two headers of a limit, and its reset. `None` unless both are present, so that an
    /// absent header does not look like a limit; also `None` for a limit of 0, which does not
    /// apply: a provider with such a limit would have refused the call.
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

    /// The reset, with `remaining`, as of the call's start, if the provider wrote both there, `took`
    /// before the reply: then a bucket's used amount takes `took` longer to refill than the moment is
    /// away.
    pub fn reset_before(&self, took: Duration) -> Option<Duration> {
        let reset = self.reset?;
        let (Some(limit), Some(remaining)) = (self.limit, self.remaining) else {
            return Some(reset);
        };
        let refill = 60.0 * limit.saturating_sub(remaining) as f64 / limit.max(1) as f64;
        let longer = refill - reset.as_secs_f64();
        // Twice as near as a moment that was written when the reply left.
        let at_the_start = 2.0 * (longer - took.as_secs_f64()).abs() < longer.abs();
        Some(if at_the_start { reset + took } else { reset })
    }

    /// Whether this is a daily limit: its use comes back after the reset, and its full amount in
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

#[cfg(test)]
mod tests {
    use super::*;

    /// 20,000 of 100,000 a minute are used, which refill in 12 s; the call took 5 s.
    #[test]
    fn a_reset_may_have_been_written_when_the_call_came() {
        let before = |reset| {
            let reset = Some(Duration::from_secs(reset));
            let window = Window { limit: Some(100_000), remaining: Some(80_000), reset };
            window.reset_before(Duration::from_secs(5)).unwrap().as_secs()
        };
        assert_eq!(before(7), 12, "written when the call came");
        assert_eq!(before(12), 12, "when the reply left");
        assert_eq!(before(55), 55, "a window that is full after the last call's minute");
        assert_eq!(before(1), 1, "another time of a minute that began earlier");
    }
}
