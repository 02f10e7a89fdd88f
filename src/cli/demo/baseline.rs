//! Runs the samples without tidegate: as many concurrent callers, each with its own retries.

use std::{fs, path::Path, time::Instant};

use anyhow::Context;
use serde_json::json;
use tidegate_simulator::Simulator;

use super::{
    report::Report,
    samples::{CALLERS, INSTRUCTIONS, MAX_OUTPUT_TOKENS, Samples},
};
use crate::{
    cli::{exit::Outcome, follow::Bar, output},
    devstack::{
        baseline::{self, Load},
        simulation::{self, DEMO},
    },
};

pub(super) async fn run(samples: &Samples, folder: &Path) -> anyhow::Result<Outcome> {
    let simulator = Simulator::start(simulation::provider(&[DEMO]))
        .await
        .context("the simulated provider does not start")?;
    let documents = samples.documents.clone();
    let total = documents.len() as u64;
    output::print_message(&format!(
        "{total} documents, {} at {} tokens a minute; {CALLERS} callers that retry on their own",
        DEMO.id(),
        DEMO.tpm
    ));
    let load = Load {
        base_url: simulator.base_url(),
        model: DEMO.model.to_owned(),
        instructions: INSTRUCTIONS.to_owned(),
        max_output_tokens: MAX_OUTPUT_TOKENS,
    };
    let mut bar = Bar::new();
    let (mut succeeded, mut failed, mut lines) = (0, 0, Vec::new());
    let began = Instant::now();
    let work = baseline::run(load, documents, CALLERS, |path, answer| {
        match answer {
            Some(answer) => {
                succeeded += 1;
                lines.push(json!({ "document": path, "answer": answer }).to_string());
            }
            None => failed += 1,
        }
        let refused = simulator.account().refused().total();
        bar.set(succeeded + failed, total, &format!("429s {refused}"));
    });
    Box::pin(work).await?;
    let elapsed = began.elapsed();
    bar.end();
    let account = simulator.account().model(DEMO.model);
    simulator.shutdown().await;
    lines.sort();
    let results = folder.join("results.jsonl");
    fs::write(&results, lines.iter().map(|line| format!("{line}\n")).collect::<String>())
        .with_context(|| format!("{} cannot be written", results.display()))?;
    let report = Report {
        title: "without tidegate".to_owned(),
        documents: total,
        succeeded,
        failed,
        elapsed,
        account,
        limit: DEMO.tpm,
        places: vec![("answers", results.display().to_string())],
    };
    output::print_data(&report.to_string())?;
    Ok(if failed == 0 { Outcome::Done } else { Outcome::SomeFailed })
}
