//! `tidegate workers`.

use std::time::Duration;

use anyhow::Context;
use tidegate_calls::worker_status::worker_statuses;

use crate::config::Config;

use super::{
    exit::Outcome,
    format::{count, duration},
    keys,
    output::{self, Table},
    snapshot::WorkerView,
};

/// Show live workers: version, age, slots, and recent faults of their calls
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let cards = worker_statuses(&config.quota()?).await;
    let cards = cards.context("the workers could not be read from Redis; run `tidegate doctor`")?;
    let workers = WorkerView::all(&cards);
    if args.json {
        output::print_json(&workers)?;
    } else if workers.is_empty() {
        output::print_message("no worker is alive; start one with `tidegate worker`");
    } else {
        output::print_data(&text(&workers))?;
    }
    Ok(Outcome::Done)
}

fn text(workers: &[WorkerView]) -> String {
    let mut table =
        Table::new(&["WORKER", "VERSION", "QUEUE", "FOR", "SLOTS", "ANSWERED", "FAILED"]);
    for worker in workers {
        table.add_row(vec![
            worker.worker.clone(),
            worker.version.clone(),
            worker.queue.clone(),
            duration(Duration::from_secs(worker.seconds)),
            count(worker.slots),
            count(worker.answered()),
            count(worker.failed()),
        ]);
    }
    let refused = workers.iter().flat_map(|worker| {
        let name = &worker.worker;
        worker.refused_keys.iter().map(move |key| format!("{}\n", keys::sentence(name, key)))
    });
    let refused: String = refused.collect();
    table.text() + &refused
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::SystemTime};

    use tidegate_calls::{
        health::RecentCalls,
        worker_status::{WorkerFacts, WorkerStatus},
    };

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
        let card = WorkerStatus {
            queue: "default/tidegate".to_owned(),
            calls: BTreeMap::from([("a:b".parse().unwrap(), calls)]),
            about: WorkerFacts { version: "1.2.3".to_owned(), started, slots: 200 },
            ..WorkerStatus::default()
        };
        let workers = WorkerView::all(&[("w-1".to_owned(), card)]);
        let text = output::plain(&text(&workers));
        let line: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(line, ["w-1", "1.2.3", "default/tidegate", "2h", "5m", "200", "40", "2"]);
        let value = serde_json::to_value(&workers).unwrap();
        assert_eq!(value[0]["calls"]["a:b"]["answered"], 40);
    }
}
