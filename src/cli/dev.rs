//! `tidegate dev`.

use anyhow::Context;

use crate::{
    config::{Config, show, sources, span::Span},
    devstack::{Stack, simulation, stack::Options},
    signal,
};

use super::{
    exit::{Outcome, usage},
    output, place, style, table,
};

/// What is in flight at the end is lost with the stack, so there is little to wait for.
const GRACE: Span = Span::seconds(2);

/// Temporal with its UI, Redis, a simulated provider and one worker, until Ctrl-C
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Talk to the configured providers
    #[arg(long)]
    no_simulator: bool,
}

pub(super) async fn run(args: Args, mut config: Config) -> anyhow::Result<Outcome> {
    if args.no_simulator && config.models.is_empty() {
        return Err(usage(
            "no model is configured; add a [models.\"provider:model\"] section with your account's limits to tidegate.toml",
        ));
    }
    if config.source_of(&["storage", "roots"]) == sources::DEFAULT {
        let here = std::env::current_dir().context("finding out the current folder")?;
        config.storage.roots = vec![place::folder_url(&here)?];
    }
    config.worker.shutdown_grace = GRACE;
    let simulated = if args.no_simulator { Vec::new() } else { simulation::MODELS.to_vec() };
    output::say("starting …");
    let mut stack =
        Box::pin(Stack::start(Options { config, simulated, roots: Vec::new() })).await?;
    let shown = show_addresses(&stack);
    let ended = match shown {
        Ok(()) => {
            tokio::select! {
                () = signal::stop() => Ok(()),
                fault = stack.broken() => Err(fault),
            }
        }
        Err(error) => Err(error),
    };
    output::say("stopping …");
    let stopped = Box::pin(stack.stop()).await;
    ended.and(stopped).map(|()| Outcome::Done)
}

fn show_addresses(stack: &Stack) -> anyhow::Result<()> {
    let file = stack.folder().join("tidegate.toml");
    std::fs::write(&file, show::toml(stack.config()))
        .with_context(|| format!("writing {}", file.display()))?;
    output::data(&table::pairs(&addresses(stack), style::data()))?;
    let example = stack.config().models.keys().next().map_or("provider:model", String::as_str);
    output::say(&format!(
        "\nIn another terminal:\n\n  export TIDEGATE_CONFIG={}\n  tidegate run DOCUMENTS --output out/ --instructions \"Summarise in three points.\" --model {example}\n  tidegate status\n\nCtrl-C ends everything; nothing is kept.",
        file.display()
    ));
    Ok(())
}

fn addresses(stack: &Stack) -> Vec<(&'static str, String)> {
    let config = stack.config();
    let mut rows = vec![
        ("Temporal UI", stack.temporal().ui()),
        ("Temporal", stack.temporal().address()),
        ("Redis", stack.redis().url()),
    ];
    if let Some(simulator) = stack.simulator() {
        let url = simulator.base_url();
        rows.push(("anthropic", url.clone()));
        rows.push(("openai", format!("{url}/v1")));
        rows.push(("account", format!("{url}/account")));
    }
    rows.extend(stack.metrics().map(|bound| ("metrics", format!("http://{bound}/metrics"))));
    rows.push(("task queue", config.temporal.task_queue.clone()));
    rows.push(("models", config.models.keys().cloned().collect::<Vec<_>>().join(", ")));
    rows.push((
        "documents and results under",
        config.storage.roots.iter().map(|root| place::shown(root)).collect::<Vec<_>>().join(", "),
    ));
    rows
}
