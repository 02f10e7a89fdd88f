//! Shows how many answers agree with the truth, and decides whether that is enough.

use tidegate_activities::output::agreement::{Agreement, Rate};

use super::{
    exit::Outcome,
    format::{count, percent, plural},
    output::{self, Table},
};

/// Parses a fraction from 0 to 1.
pub(super) fn part(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|part: &f64| (0.0..=1.0).contains(part))
        .ok_or_else(|| "write a part between 0 and 1, such as 0.97".to_owned())
}

/// `91.8 % (84.3 % to 95.9 %)`.
pub(super) fn with_interval(rate: Rate) -> String {
    let [from, to] = rate.interval();
    format!("{} ({} to {})", percent(rate.part()), percent(from), percent(to))
}

/// A table with a row for each field.
pub(super) fn table(agreement: &Agreement) -> String {
    let mut table =
        Table::new(&["FIELD", "COMPARED", "AGREE (IN 95 OF 100 SAMPLES)", "MOST FREQUENT MISTAKE"]);
    for (name, field) in &agreement.fields {
        let most = field.confusion.first().map(ToString::to_string);
        let Rate { compared, .. } = field.rate;
        table.add_row(vec![
            name.clone(),
            count(compared),
            with_interval(field.rate),
            most.unwrap_or_default(),
        ]);
    }
    let all = agreement.documents;
    table.add_row(vec![
        "all fields".to_owned(),
        count(all.compared),
        with_interval(all),
        String::new(),
    ]);
    table.text()
}

/// Whether at least this fraction of the answers agrees, by the lower end of the interval. `whose` names
/// the answers in messages.
pub(super) fn enough(agreement: Option<&Agreement>, at_least: f64, whose: &str) -> Outcome {
    let Some(agreement) = agreement else {
        output::print_message(&format!(
            "{whose}: nothing was compared, so --at-least {at_least} cannot be decided"
        ));
        return Outcome::Faulty;
    };
    let rate = agreement.at_worst();
    let [from, _] = rate.interval();
    if from >= at_least {
        return Outcome::Done;
    }
    output::print_message(&format!(
        "{whose}: {} agree, of {}; of all documents perhaps no more than {}, and --at-least asks for {}",
        percent(rate.part()),
        plural(rate.compared, "document"),
        percent(from),
        percent(at_least),
    ));
    Outcome::Faulty
}
