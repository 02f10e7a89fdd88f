//! The commands that run until they are stopped: `tidegate worker`, `tidegate serve`, `tidegate dev` and
//! `tidegate simulator`.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use anyhow::Context;
use futures::FutureExt as _;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use crate::{
    config::{Config, serve::ServeKey, show, sources},
    devstack::{Stack, simulation, stack::Options},
    serve::Serve,
    signal, telemetry, worker,
};

use super::{
    env_file::EnvFile,
    exit::{Outcome, usage},
    output,
    page::{self, Page},
    paths,
    servers::Fetch,
};

/// Signals within this time are one: `timeout` and others signal a process, and then its group.
const ONE_SIGNAL: Duration = Duration::from_millis(250);

pub(super) async fn worker(config: &Config) -> anyhow::Result<Outcome> {
    let telemetry = telemetry::start(config.worker.metrics_address()).await;
    // Without a page, the process still works.
    let _page = page::start(config).await.unwrap_or_else(|error| {
        tracing::warn!("no page: {error:#}");
        None
    });
    let (told, stop) = oneshot::channel();
    let signals = async {
        signal::stop().await;
        let _ = told.send(());
        tokio::time::sleep(ONE_SIGNAL).await;
        signal::stop().await;
    };
    tokio::select! {
        ended = Box::pin(worker::run(config, &telemetry, stop.map(drop))) => ended.map(|()| Outcome::Done),
        () = signals => {
            output::print_message("ended by a second signal; provider calls under way are cut off, and other workers repeat them");
            // Returning would wait for reads and writes that may hang.
            std::process::exit(1);
        }
    }
}

pub(super) async fn door(config: &Config) -> anyhow::Result<Outcome> {
    let telemetry = telemetry::start(config.worker.metrics_address()).await;
    worker::keep_private(config);
    let door = Serve::bind(config).await?;
    Box::pin(door.run(&telemetry, signal::stop())).await?;
    Ok(Outcome::Done)
}

/// Run Temporal with its UI, Redis, a simulated provider and one worker until Ctrl-C
#[derive(Debug, clap::Args)]
pub(super) struct DevArgs {
    /// Call the configured providers instead of a simulated one
    #[arg(long)]
    no_simulator: bool,
    /// When all is ready, write the addresses to a file that a shell reads with `. FILE`
    ///
    /// TIDEGATE_CONFIG, TEMPORAL_ADDRESS, TIDEGATE_REDIS__URL, and of the HTTP door DOOR_URL and DOOR_KEY. The file is
    /// removed when the stack ends.
    #[arg(long, value_name = "FILE")]
    env: Option<PathBuf>,
    #[command(flatten)]
    fetch: Fetch,
}

pub(super) async fn dev(args: DevArgs, mut config: Config) -> anyhow::Result<Outcome> {
    if args.no_simulator && config.models.is_empty() {
        return Err(usage(
            "no model is configured; add a [models.\"provider:model\"] section with your account's limits to tidegate.toml",
        ));
    }
    if config.source_of(&["storage", "roots"]) == sources::DEFAULT {
        let here = std::env::current_dir().context("finding out the current folder")?;
        config.storage.roots = vec![paths::folder_url(&here)?];
    }
    let env = args.env.map(EnvFile::cleared).transpose()?;
    args.fetch.provide().await?;
    let simulated = if args.no_simulator { Vec::new() } else { simulation::MODELS.to_vec() };
    output::print_message("starting …");
    let mut stack =
        Box::pin(Stack::start(Options { config, simulated, roots: Vec::new() })).await?;
    let page = page::start_for_one(&stack.config).await;
    let door = Box::pin(DevDoor::start(&stack)).await;
    let door = door.inspect_err(|error| tracing::warn!("no HTTP door: {error:#}")).ok();
    let shown = show_addresses(&stack, page.as_ref(), door.as_ref()).and_then(|()| match &env {
        Some(env) => env.write(&variables(&stack, door.as_ref())),
        None => Ok(()),
    });
    let ended = match shown {
        Ok(()) => {
            tokio::select! {
                () = signal::stop() => Ok(()),
                fault = stack.broken() => Err(fault),
            }
        }
        Err(error) => Err(error),
    };
    drop(env);
    output::print_message("stopping …");
    if let Some(door) = door {
        door.stop().await;
    }
    let stopped = Box::pin(stack.stop()).await;
    ended.and(stopped).map(|()| Outcome::Done)
}

/// The HTTP door of an embedded stack, with its own key.
struct DevDoor {
    url: String,
    key: String,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

impl DevDoor {
    async fn start(stack: &Stack) -> anyhow::Result<Self> {
        let mut config = stack.config.clone();
        if config.serve.address().is_none() {
            config.serve.listen = "127.0.0.1:0".to_owned();
        }
        let (key, file) =
            (format!("{:032x}", rand::random::<u128>()), stack.folder.path().join("door-key"));
        std::fs::write(&file, &key).with_context(|| format!("writing {}", file.display()))?;
        let entry = ServeKey { key_file: Some(file), ..ServeKey::default() };
        config.serve.keys.insert("dev".to_owned(), entry);
        let door = Serve::bind(&config).await?;
        let (stop, stopped) = oneshot::channel();
        let url = format!("http://{}", door.address());
        let running = tokio::spawn(async move {
            let telemetry = telemetry::start(None).await;
            if let Err(error) = Box::pin(door.run(&telemetry, stopped.map(drop))).await {
                tracing::warn!("the HTTP door ended: {error:#}");
            }
        });
        Ok(Self { url, key, stop, running })
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.running.await;
    }
}

fn show_addresses(
    stack: &Stack,
    page: Option<&Page>,
    door: Option<&DevDoor>,
) -> anyhow::Result<()> {
    let file = config_file(stack);
    std::fs::write(&file, show::toml(&stack.config))
        .with_context(|| format!("writing {}", file.display()))?;
    output::print_data(&output::pairs(&addresses(stack, page, door)))?;
    let models = stack.config.model_names();
    let example = models.first().map_or("provider:model", String::as_str);
    output::print_message(&format!(
        "\nIn another terminal:\n\n  export TIDEGATE_CONFIG={}\n  tidegate run DOCUMENTS --output out/ --instructions \"Summarise in three points.\" --model {example}\n  tidegate status\n\nCtrl-C ends everything; nothing is kept.",
        file.display()
    ));
    Ok(())
}

/// Where the stack's configuration is written.
fn config_file(stack: &Stack) -> PathBuf {
    stack.folder.path().join("tidegate.toml")
}

/// What programs read that use the stack.
fn variables(stack: &Stack, door: Option<&DevDoor>) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("TIDEGATE_CONFIG", config_file(stack).display().to_string()),
        ("TEMPORAL_ADDRESS", stack.temporal.address()),
        ("TIDEGATE_REDIS__URL", stack.redis.url()),
    ];
    if let Some(door) = door {
        variables.push(("DOOR_URL", format!("{}/v1", door.url)));
        variables.push(("DOOR_KEY", door.key.clone()));
    }
    variables
}

fn addresses(
    stack: &Stack,
    page: Option<&Page>,
    door: Option<&DevDoor>,
) -> Vec<(&'static str, String)> {
    let config = &stack.config;
    let mut rows: Vec<_> =
        page.map(|page| ("the page", page.url_with_token())).into_iter().collect();
    if let Some(door) = door {
        rows.push(("the HTTP door", format!("{}/v1", door.url)));
        rows.push(("its key", door.key.clone()));
    }
    rows.extend([
        ("Temporal UI", stack.temporal.ui()),
        ("Temporal", stack.temporal.address()),
        ("Redis", stack.redis.url()),
    ]);
    if let Some(simulator) = &stack.simulator {
        let url = simulator.base_url();
        rows.push(("anthropic", url.clone()));
        rows.push(("openai", format!("{url}/v1")));
        rows.push(("account", format!("{url}/account")));
    }
    rows.extend(
        stack.telemetry.bound().map(|bound| ("metrics", format!("http://{bound}/metrics"))),
    );
    rows.push(("task queue", config.temporal.task_queue.clone()));
    rows.push(("models", config.model_names().join(", ")));
    let roots: Vec<String> =
        config.storage.roots.iter().map(|root| paths::display_url(root)).collect();
    rows.push(("documents and results under", roots.join(", ")));
    rows
}

/// Run the simulated provider on its own
#[derive(Debug, clap::Args)]
pub(super) struct SimulatorArgs {
    /// The port; 0 for a free one
    #[arg(long, value_name = "N", default_value_t = 8089)]
    port: u16,
    /// The address to listen on; 0.0.0.0 for every interface
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = host)]
    host: IpAddr,
    /// The simulator's configuration: limits, latency and faults [default: none of them]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

fn host(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "write an address such as 127.0.0.1".to_owned())
}

pub(super) async fn simulator(args: SimulatorArgs) -> anyhow::Result<Outcome> {
    let config = match &args.config {
        Some(file) => {
            let text = std::fs::read_to_string(file)
                .map_err(|error| usage(format!("{} cannot be read: {error}", file.display())))?;
            tidegate_simulator::Config::from_toml(&text)
                .map_err(|error| usage(format!("{}: {error}", file.display())))?
        }
        None => tidegate_simulator::Config::default(),
    };
    let address = (args.host, args.port);
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!(
            "the address {}:{} cannot be used; choose another --port or --host",
            args.host, args.port
        )
    })?;
    let url = format!("http://{}", listener.local_addr()?);
    output::print_data(&format!(
        "anthropic  {url}\nopenai     {url}/v1\naccount    {url}/account"
    ))?;
    tidegate_simulator::serve(listener, config, signal::stop())
        .await
        .context("serving the simulated provider")?;
    Ok(Outcome::Done)
}
