//! Shows a comparison to people.

use tidegate_activities::output::agreement::Agreement;

use crate::cli::{
    agreement,
    format::{count, dollars, plural, price},
    output::{self, Table},
    paths,
};

use super::comparison::{Comparison, Judged, ModelResult, Pair};

/// Prints a comparison whose objects are in `output`.
pub(super) fn show(comparison: &Comparison, output: &str) -> anyhow::Result<()> {
    let with_truth = comparison.models.iter().any(|seen| seen.agreement.is_some());
    let head = [
        "MODEL",
        "ANSWERED",
        "FAILED",
        "TIME",
        "COST A DOCUMENT",
        "COST OF ALL",
        "AGREES WITH THE TRUTH",
    ];
    let mut table = Table::new(if with_truth { &head } else { &head[..6] });
    let time =
        |each: Option<f64>| each.map_or_else(|| "unknown".to_owned(), |it| format!("{it:.1} s"));
    let usd = |usd: Option<f64>| usd.map_or_else(|| "unknown".to_owned(), dollars);
    for seen in &comparison.models {
        let truth = seen.agreement.as_ref().map(|it| agreement::with_interval(it.documents));
        let row = [
            seen.model.to_string(),
            count(seen.answered),
            count(seen.failed),
            time(seen.seconds_each),
            usd(seen.cost_usd_each),
            usd(seen.cost_usd_of_all),
        ];
        let truth = with_truth.then(|| truth.unwrap_or_default());
        table.add_row(row.into_iter().chain(truth).collect());
    }
    output::print_data(&table.text())?;
    for ModelResult { model, agreement, .. } in &comparison.models {
        let notes = agreement.as_ref().map(Agreement::notes).unwrap_or_default();
        notes.iter().for_each(|note| output::print_message(&format!("{model}: {note}")));
    }
    if let Some(Judged { model, verdicts, cost_usd, .. }) = &comparison.judge {
        let (verdicts, cost) = (plural(*verdicts, "verdict"), dollars(*cost_usd));
        output::print_message(&format!("{verdicts} of the judge {model}: {cost}"));
    }
    for Pair { models: [one, other], agreement, .. } in &comparison.pairs {
        output::print_data(&format!("\n{other}, where {one} is taken to be right:"))?;
        output::print_data(&agreement::table(agreement))?;
        agreement.notes().iter().for_each(|note| output::print_message(note));
    }
    let mut routes = comparison.pairs.iter().map(|pair| cost_sentence(pair, &comparison.models));
    routes.try_for_each(|sentence| output::print_data(&sentence))?;
    output::print_message(&format!(
        "what differs, document by document: disagreements.jsonl in {}",
        paths::display_url(output)
    ));
    Ok(())
}

/// What all documents would cost on a route of two models, in a sentence.
fn cost_sentence(pair: &Pair, models: &[ModelResult]) -> String {
    let [one, other] = &pair.models;
    let cost = price(pair.cost_usd_of_route);
    let first = models.iter().find(|seen| seen.model == *one);
    let share = first.and_then(|seen| seen.failed_checks).map(agreement::with_interval);
    match share {
        Some(share) => {
            format!("a route from {one} on to {other} for what fails its checks, {share}: {cost}")
        }
        None => format!("a route from {one} to {other}, whichever answers: {cost}"),
    }
}
