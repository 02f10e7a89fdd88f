//! The table at the end of a demo, from the simulated provider's account.

use std::{fmt, time::Duration};

use tidegate_simulator::{FaultKind, ModelAccount};

use crate::cli::{
    format::{count, ratio},
    output,
};

/// The outcome of a run. Calls, refusals and tokens come from the simulated provider's account.
#[derive(Debug, Clone)]
pub(super) struct Report {
    /// Documents in all.
    pub(super) documents: u64,
    /// Documents with an answer.
    pub(super) succeeded: u64,
    /// Failed documents.
    pub(super) failed: u64,
    /// From the start of the batch to its end.
    pub(super) elapsed: Duration,
    /// The provider's account of the model.
    pub(super) account: ModelAccount,
    /// The limit in force, in tokens a minute.
    pub(super) limit: u64,
    /// Further rows, such as the location of the results.
    pub(super) places: Vec<(&'static str, String)>,
}

impl Report {
    /// Calls answered with 429.
    fn refused(&self) -> u64 {
        self.account.refused.total() + self.account.faulted(FaultKind::RateLimited)
    }

    fn calls_per_document(&self) -> String {
        format!("{:.2}", ratio(self.account.requests, self.documents))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let admitted = &self.account.admitted;
        let quota = QuotaUse::from_account(&self.account, self.limit);
        let mut rows = vec![
            ("documents", count(self.documents)),
            ("succeeded", count(self.succeeded)),
            ("failed", count(self.failed)),
            ("provider calls", count(self.account.requests)),
            ("calls per document", self.calls_per_document()),
            ("answered 429", count(self.refused())),
            ("tokens in", count(admitted.input)),
            ("tokens out", count(admitted.output)),
            ("limit", format!("{} tokens a minute", count(self.limit))),
            (
                "use of the quota",
                quota.map_or_else(|| "-".to_owned(), |quota| format!("{quota} *")),
            ),
            ("time", format!("{:.1} s", self.elapsed.as_secs_f64())),
        ];
        rows.extend(self.places.iter().cloned());
        f.write_str(&output::pairs(&rows))?;
        if let Some(quota) = quota {
            let (tokens, limit) = (count(quota.tokens), count(quota.limit));
            write!(
                f,
                "\n* by the simulated provider's own account: {tokens} tokens admitted in the {:.1} s from the first admission\n  \
                 to the last, divided by {limit} a minute over that time. A bucket that is full at the start adds to it.\n",
                quota.seconds
            )?;
        }
        Ok(())
    }
}

/// Minimum length of a run for a figure on its use of the quota.
const MIN_SECONDS: f64 = 20.0;

/// Admitted tokens, compared with the limit in that time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct QuotaUse {
    /// Input and output tokens of admitted calls.
    pub(super) tokens: u64,
    /// Tokens a minute.
    pub(super) limit: u64,
    /// From the first admission to the last.
    pub(super) seconds: f64,
}

impl QuotaUse {
    /// Computes the use from a model's account; `None` if the run is too short, because the full
    /// bucket at the start would count too much.
    fn from_account(account: &ModelAccount, limit: u64) -> Option<Self> {
        let seconds = account.last_admission? - account.first_admission?;
        (seconds >= MIN_SECONDS).then_some(Self { tokens: account.admitted.tokens, limit, seconds })
    }

    /// The used fraction of the limit. A full bucket at the start is extra, so a short run can exceed
    /// 1.0.
    fn share(&self) -> f64 {
        ratio(self.tokens, self.limit) * 60.0 / self.seconds
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
    fn the_table_says_it_all() {
        let account = ModelAccount {
            requests: 6,
            refused: Amounts { tokens: 2, ..Amounts::default() },
            admitted: Amounts { requests: 4, tokens: 1_100, input: 1_000, output: 100 },
            first_admission: Some(0.0),
            last_admission: Some(60.0),
            ..ModelAccount::default()
        };
        let report = Report {
            documents: 4,
            succeeded: 3,
            failed: 1,
            elapsed: Duration::from_millis(61_250),
            account,
            limit: 2_000,
            places: vec![("results", "out/".to_owned())],
        };
        let text = output::plain(&report.to_string());
        for line in [
            "calls per document  1.50",
            "answered 429        2",
            "use of the quota    55 % *",
            "time                61.2 s",
            "results             out/",
            "tokens in           1,000",
            "1,100 tokens admitted in the 60.0 s",
        ] {
            assert!(text.contains(line), "{line:?} is missing in\n{text}");
        }
    }

    #[test]
    fn it_is_tokens_over_limit_times_time() {
        let mut account = ModelAccount { first_admission: Some(2.0), ..ModelAccount::default() };
        assert_eq!(QuotaUse::from_account(&account, 60_000), None);
        account.last_admission = Some(32.0);
        account.admitted = Amounts { requests: 9, tokens: 27_000, input: 26_000, output: 1_000 };
        let quota = QuotaUse::from_account(&account, 60_000).unwrap();
        assert!((quota.share() - 0.9).abs() < 1e-9);
        assert_eq!(quota.to_string(), "90 %");
    }
}
