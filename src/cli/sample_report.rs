//! Shows a sample's answers with their use, and the estimate for the whole.

use anyhow::Context;
use serde::Deserialize;
use tidegate_activities::{batch::plan, output::forecast::Range};
use tidegate_workflows::contract::Job;

use crate::{config::Config, worker};

use super::{
    format::{between, count, dollars, percent, price},
    output::{self, Table},
};

/// The number of characters of an answer in its row.
const SHOWN: usize = 72;

/// A document's line of `results.jsonl`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Answered {
    pub(super) id: String,
    pub(super) answer: String,
    #[serde(default)]
    embedding: Option<Vec<f32>>,
    finish: String,
    input_tokens: u64,
    output_tokens: u64,
    /// Seconds of the call that gave the answer.
    #[serde(default)]
    pub(super) seconds: Option<f64>,
    #[serde(default)]
    cost_usd: Option<f64>,
    /// The price that reusing the answer has saved.
    #[serde(default)]
    saved_usd: Option<f64>,
}

/// A document's line of `failures.jsonl`.
#[derive(Debug, Deserialize)]
struct Failed {
    id: String,
    error_type: String,
    message: String,
}

impl Answered {
    pub(super) fn usd(&self) -> Option<f64> {
        self.saved_usd.or(self.cost_usd)
    }
}

/// Shows a sample that has ended, and the estimate for all documents of its source.
pub(super) async fn show(config: &Config, job: &Job) -> anyhow::Result<()> {
    let services = worker::services_without_providers(config)?;
    let place = services.storage.resolve(&job.output).context("output")?;
    let read = async |name: &str| {
        let bytes = place.child(name).read_if_there().await;
        bytes.with_context(|| format!("reading {name} of the sample"))
    };
    let Some(results) = read("results.jsonl").await? else {
        output::print_message("the sample's answers lie in the parts under results/");
        return Ok(());
    };
    let results: Vec<Answered> = lines(&results)?;
    let failures: Vec<Failed> = match read("failures.jsonl").await? {
        Some(bytes) => lines(&bytes)?,
        None => Vec::new(),
    };
    output::print_data(&table(&results, &failures))?;
    let whole = plan::forecast(&services, &Job { sample: None, ..job.clone() }).await;
    match whole {
        Ok(whole) if whole.documents <= (results.len() + failures.len()) as u64 => {
            output::print_message("the sample holds every document of the source");
            Ok(())
        }
        Ok(whole) => {
            output::print_data(&output::pairs(&of_all(&results, &failures, whole.documents)))
        }
        Err(failure) => {
            output::print_message(&format!("the whole batch cannot be estimated here: {failure}"));
            Ok(())
        }
    }
}

/// Parses the lines of a JSONL object.
pub(super) fn lines<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> anyhow::Result<Vec<T>> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).context("a line of the results")).collect()
}

fn table(results: &[Answered], failures: &[Failed]) -> String {
    let mut table = Table::new(&["DOCUMENT", "ANSWER", "TOKENS IN", "OUT", "COST"]);
    for result in results {
        let mark = if result.finish == "complete" { "" } else { "(cut) " };
        table.add_row(vec![
            result.id.clone(),
            result.embedding.as_ref().map_or_else(
                || format!("{mark}{}", short(&result.answer)),
                |vector| format!("a vector of {} numbers", vector.len()),
            ),
            count(result.input_tokens),
            count(result.output_tokens),
            result.usd().map_or_else(|| "unknown".to_owned(), dollars),
        ]);
    }
    for failure in failures {
        let what = format!("{}: {}", failure.error_type, short(&failure.message));
        table.add_row(vec![failure.id.clone(), what, String::new(), String::new(), String::new()]);
    }
    table.text()
}

/// The text on one line, shortened.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The estimate for this many documents, if the sample is representative.
fn of_all(
    results: &[Answered],
    failures: &[Failed],
    documents: u64,
) -> Vec<(&'static str, String)> {
    let ended = (results.len() + failures.len()) as f64;
    let answered = if ended > 0.0 { results.len() as f64 / ended } else { 0.0 };
    let calls = documents as f64 * answered;
    let range = |each: fn(&Answered) -> f64| {
        let (from, to) = spread(&results.iter().map(each).collect::<Vec<_>>());
        Range { from: from * calls, to: to * calls }
    };
    let is_priced = results.iter().all(|result| result.usd().is_some());
    let cost = is_priced.then(|| range(|result| result.usd().unwrap_or_default()));
    vec![
        ("of the whole", format!("{} documents", count(documents))),
        ("input tokens", between(range(|result| result.input_tokens as f64))),
        ("output tokens", between(range(|result| result.output_tokens as f64))),
        ("cost", price(cost)),
        ("failures", format!("{} of the sample", percent(1.0 - answered))),
    ]
}

/// The mean, plus and minus two standard errors; the lower end is at least the smallest value.
fn spread(each: &[f64]) -> (f64, f64) {
    if each.is_empty() {
        return (0.0, 0.0);
    }
    let count = each.len() as f64;
    let mean = each.iter().sum::<f64>() / count;
    let variance = each.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count;
    let error = 2.0 * (variance / count).sqrt();
    let least = each.iter().copied().fold(f64::INFINITY, f64::min);
    ((mean - error).max(least), mean + error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(output_tokens: u64, cost_usd: Option<f64>) -> Answered {
        let (id, answer) = ("a.md".to_owned(), "Ebb\nand  flood. ".repeat(9));
        Answered { id, answer, input_tokens: 1_000, output_tokens, cost_usd, ..Answered::default() }
    }

    #[test]
    fn the_whole_is_told_by_the_sample_with_its_spread_and_its_failures() {
        let results =
            [answered(100, Some(0.01)), answered(300, Some(0.03)), answered(200, Some(0.02))];
        let failure = Failed {
            id: "b.md".to_owned(),
            error_type: "UnreadableDocument".to_owned(),
            message: "damaged".to_owned(),
        };
        let rows = of_all(&results, std::slice::from_ref(&failure), 400);
        let row = |name| rows.iter().find(|(known, _)| *known == name).unwrap().1.clone();
        // Three of four are answered: 300 of 400, each with 1,000 tokens.
        assert_eq!(row("input tokens"), "300,000 to 300,000");
        // 200 ± 2 × 81.65 / √3, times 300.
        assert_eq!(row("output tokens"), "31,716 to 88,284");
        assert!(row("failures").starts_with("25"), "{}", row("failures"));
        let table = table(&results, &[failure]);
        assert!(table.contains("Ebb and flood. Ebb") && table.contains('…'), "{table}");
        assert!(table.contains("UnreadableDocument: damaged"), "{table}");
    }

    #[test]
    fn the_whole_takes_no_less_than_the_least_of_the_sample_each_time() {
        let (from, to) = spread(&[400.0, 400.0, 400.0, 6_400.0]);
        assert!((from - 400.0).abs() < 1e-9 && to > 4_000.0, "{from} to {to}");
    }

    #[test]
    fn without_a_price_nothing_is_guessed() {
        let rows = of_all(&[answered(1, None)], &[], 9);
        assert!(rows.iter().any(|(name, what)| *name == "cost" && what.starts_with("unknown")));
        assert_eq!(of_all(&[], &[], 9)[1].1, "0 to 0");
    }
}
