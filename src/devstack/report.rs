//! The table at the end of a demo.

use std::{fmt, time::Duration};

use tidegate_simulator::{FaultKind, ModelAccount};

use super::account::QuotaUse;

/// What a run came to. Calls, refusals and tokens are the simulated provider's own account.
#[derive(Debug, Clone)]
pub struct Report {
    /// What ran: the table's heading.
    pub title: String,
    /// Documents in all.
    pub documents: u64,
    /// Documents with an answer.
    pub succeeded: u64,
    /// Documents given up.
    pub failed: u64,
    /// From the start of the batch to its end.
    pub elapsed: Duration,
    /// The provider's account of the model.
    pub account: ModelAccount,
    /// The limit in force, in tokens a minute.
    pub limit: u64,
    /// What else to know, such as where the results lie.
    pub places: Vec<(&'static str, String)>,
}

impl Report {
    /// Calls answered with 429.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.account.refused.total() + self.account.faulted(FaultKind::RateLimited)
    }

    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    fn calls_per_document(&self) -> String {
        format!("{:.2}", self.account.requests as f64 / self.documents.max(1) as f64)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let admitted = &self.account.admitted;
        let quota = QuotaUse::of(&self.account, self.limit);
        let mut rows = vec![
            ("documents", number(self.documents)),
            ("succeeded", number(self.succeeded)),
            ("failed", number(self.failed)),
            ("provider calls", number(self.account.requests)),
            ("calls per document", self.calls_per_document()),
            ("answered 429", number(self.refused())),
            ("tokens in", number(admitted.input)),
            ("tokens out", number(admitted.output)),
            ("limit", format!("{} tokens a minute", number(self.limit))),
            (
                "use of the quota",
                quota.map_or_else(|| "-".to_owned(), |quota| format!("{quota} *")),
            ),
            ("time", format!("{:.1} s", self.elapsed.as_secs_f64())),
        ];
        rows.extend(self.places.iter().cloned());
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        writeln!(f, "{}\n{}", self.title, "-".repeat(self.title.len()))?;
        for (name, value) in rows {
            writeln!(f, "{name:<width$}  {value}")?;
        }
        if let Some(quota) = quota {
            let (tokens, limit) = (number(quota.tokens), number(quota.limit));
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

/// `1,234,567`.
#[must_use]
pub fn number(value: u64) -> String {
    let digits = value.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
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
            title: "With tidegate".to_owned(),
            documents: 4,
            succeeded: 3,
            failed: 1,
            elapsed: Duration::from_millis(61_250),
            account,
            limit: 2_000,
            places: vec![("results", "out/".to_owned())],
        };
        let text = report.to_string();
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
}
