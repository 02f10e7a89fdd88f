//! `tidegate workers`.

use std::time::{Duration, SystemTime};

use anyhow::Context;
use serde_json::{Value, json};
use tidegate_activities::call::keys::{Card, cards};

use crate::config::Config;

use super::{
    exit::Outcome,
    figures::{count, span},
    keys,
    output::{self, Table},
};

/// Live workers: version, age, slots, and what their calls have come to lately
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let seen = cards(&config.quota()?).await;
    let mut workers = seen.context("the workers cannot be seen; `tidegate doctor` looks closer")?;
    workers.sort_by(|(a, _), (b, _)| a.cmp(b));
    if args.json {
        output::json(&workers.iter().map(|(name, card)| value(name, card)).collect::<Vec<_>>())?;
    } else if workers.is_empty() {
        output::say("no worker is alive; start one with `tidegate worker`");
    } else {
        output::data(&text(&workers))?;
    }
    Ok(Outcome::Done)
}

fn text(workers: &[(String, Card)]) -> String {
    let mut table =
        Table::new(&["WORKER", "VERSION", "QUEUE", "FOR", "SLOTS", "ANSWERED", "FAILED"]);
    for (name, card) in workers {
        let (answered, failed) = calls(card);
        table.row(vec![
            name.clone(),
            card.about.version.clone(),
            card.queue.clone(),
            span(age(card)),
            count(card.about.slots),
            count(answered),
            count(failed),
        ]);
    }
    let refused = workers.iter().flat_map(|(name, card)| {
        card.refused.iter().map(move |key| format!("{}\n", keys::sentence(name, key)))
    });
    let refused: String = refused.collect();
    table.text() + &refused
}

/// Calls of the last minutes that were answered, and that failed.
fn calls(card: &Card) -> (u64, u64) {
    let answered = card.calls.values().map(|calls| calls.answered).sum();
    let failed = card.calls.values().flat_map(|calls| calls.failed.values()).sum();
    (answered, failed)
}

fn age(card: &Card) -> Duration {
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(card.about.started);
    started.elapsed().unwrap_or_default()
}

fn value(name: &str, card: &Card) -> Value {
    json!({
        "worker": name,
        "version": card.about.version,
        "queue": card.queue,
        "seconds": age(card).as_secs(),
        "slots": card.about.slots,
        "providers": card.providers,
        "refused_keys": card.refused,
        "calls": card.calls,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tidegate_activities::call::{keys::About, recent::RecentCalls};

    use super::*;

    #[test]
    fn a_worker_a_line() {
        let calls = RecentCalls {
            answered: 40,
            failed: BTreeMap::from([("Overloaded".to_owned(), 2)]),
            ..RecentCalls::default()
        };
        let started = SystemTime::now() - Duration::from_secs(7_530);
        let started = started.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let card = Card {
            queue: "default/tidegate".to_owned(),
            calls: BTreeMap::from([("a:b".parse().unwrap(), calls)]),
            about: About { version: "1.2.3".to_owned(), started, slots: 200 },
            ..Card::default()
        };
        let text = output::plain(&text(&[("w-1".to_owned(), card.clone())]));
        let line: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(line, ["w-1", "1.2.3", "default/tidegate", "2h", "5m", "200", "40", "2"]);
        assert_eq!(value("w-1", &card)["calls"]["a:b"]["answered"], 40);
    }
}
