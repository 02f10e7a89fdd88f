//! How much of its quota a run used, by the simulator's own account.

use std::fmt;

use tidegate_simulator::ModelAccount;

/// In seconds.
const MIN_SECONDS: f64 = 20.0;

/// Tokens let in, against what the limit allowed in the same time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuotaUse {
    /// Input and output tokens of the calls that were let in.
    pub tokens: u64,
    /// Tokens a minute.
    pub limit: u64,
    /// From the first admission to the last.
    pub seconds: f64,
}

impl QuotaUse {
    /// From a model's account; `None` when it is too short to say: what a full bucket let in at the
    /// start would count too much.
    #[must_use]
    pub fn of(account: &ModelAccount, limit: u64) -> Option<Self> {
        let seconds = account.last_admission? - account.first_admission?;
        (seconds >= MIN_SECONDS).then_some(Self { tokens: account.admitted.tokens, limit, seconds })
    }

    /// 1.0 is the limit, kept to the token. What a full bucket held at the start comes on top, so a
    /// short run can reach more.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "token counts lie far below 2^53")]
    pub fn share(&self) -> f64 {
        self.tokens as f64 / (self.limit as f64 / 60.0 * self.seconds)
    }
}

impl fmt::Display for QuotaUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} %", self.share() * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use tidegate_simulator::Amounts;

    use super::*;

    #[test]
    fn it_is_tokens_over_limit_times_time() {
        let mut account = ModelAccount { first_admission: Some(2.0), ..ModelAccount::default() };
        assert_eq!(QuotaUse::of(&account, 60_000), None);
        account.last_admission = Some(32.0);
        account.admitted = Amounts { requests: 9, tokens: 27_000, input: 26_000, output: 1_000 };
        let quota = QuotaUse::of(&account, 60_000).unwrap();
        assert!((quota.share() - 0.9).abs() < 1e-9);
        assert_eq!(quota.to_string(), "90 %");
    }
}
