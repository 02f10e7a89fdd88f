//! Limits and remaining quota, as told by response headers.

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
    /// Time until the limit is **full** again, which is much longer than the time until the next
    /// call fits.
    pub full_in: Option<Duration>,
}

impl Window {
    /// How long until `amount` fits, supposing a steady refill; `None` when the headers do not say
    /// or it never fits.
    ///
    /// refill per second ≈ (limit − remaining) ÷ time to full, so `amount` fits after (amount −
    /// remaining) ÷ refill.
    #[must_use]
    pub fn wait_for(&self, amount: u64) -> Option<Duration> {
        let (limit, remaining, full_in) = (self.limit?, self.remaining?, self.full_in?);
        if amount > limit {
            return None;
        }
        let missing = amount.saturating_sub(remaining);
        let used = limit.saturating_sub(remaining);
        if missing == 0 || used == 0 {
            return Some(Duration::ZERO);
        }
        Duration::try_from_secs_f64(full_in.as_secs_f64() * missing as f64 / used as f64).ok()
    }

    /// `None` when nothing is known, so that an absent header does not look like a limit.
    pub(crate) fn known(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_a_part_of_the_time_to_full() {
        let window =
            Window { limit: Some(60), remaining: Some(0), full_in: Some(Duration::from_secs(60)) };
        assert_eq!(window.wait_for(1), Some(Duration::from_secs(1)));
        assert_eq!(window.wait_for(60), Some(Duration::from_secs(60)));
        assert_eq!(window.wait_for(61), None, "never fits");
        assert_eq!(Window { remaining: Some(5), ..window }.wait_for(5), Some(Duration::ZERO));
        assert_eq!(Window { full_in: None, ..window }.wait_for(1), None);
        let odd = Window { limit: Some(1), remaining: Some(9), full_in: Some(Duration::MAX) };
        assert_eq!(odd.wait_for(1), Some(Duration::ZERO));
    }
}
