//! How the Temporal server is reached.

use std::{fmt, time::Duration};

use anyhow::{Context, anyhow};
use futures::{FutureExt, future::BoxFuture};
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, UntypedWorkflow, UntypedWorkflowHandle,
    envconfig::LoadClientConfigProfileOptions,
};
use temporalio_common::telemetry::metrics::TemporalMeter;

use crate::config::Config;

/// Connecting takes milliseconds; a server that takes longer than this is not there.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// A connection to a Temporal server. Cheap to clone.
#[derive(Clone)]
pub struct Temporal {
    client: Client,
    address: String,
    task_queue: String,
}

impl fmt::Debug for Temporal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Temporal")
            .field("address", &self.address)
            .field("task_queue", &self.task_queue)
            .finish_non_exhaustive()
    }
}

/// Connects: `[temporal]`, else `TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, TLS and API key from the
/// environment, else `temporal.toml`, as in every Temporal SDK. With a meter, the connection's own
/// calls are counted.
///
/// # Errors
/// Names the address and says what to start or set.
#[must_use]
pub fn connect(
    config: &Config,
    meter: Option<TemporalMeter>,
) -> BoxFuture<'static, anyhow::Result<Temporal>> {
    let task_queue = config.temporal.task_queue.clone();
    let options = options(config);
    async move {
        let (mut connection, client) = options?;
        connection.metrics_meter = meter;
        let address = connection.target.to_string();
        let away = || {
            format!(
                "no Temporal server answers at {address}; start one with `temporal server start-dev`, or name another in temporal.address or TEMPORAL_ADDRESS"
            )
        };
        let connection = match tokio::time::timeout(CONNECT_WITHIN, Connection::connect(connection)).await {
            Ok(connection) => connection.map_err(|error| innermost(&error)).with_context(away)?,
            Err(_) => return Err(anyhow!("no answer within {CONNECT_WITHIN:?}").context(away())),
        };
        let client = Client::new(connection, client).context("the Temporal client cannot be made")?;
        Ok(Temporal { client, address, task_queue })
    }
    .boxed()
}

/// What the environment says, and over it what our own configuration says.
fn options(config: &Config) -> anyhow::Result<(ConnectionOptions, ClientOptions)> {
    // The SDK's error is neither Send nor Sync, so only its text goes on.
    let (mut connection, mut client) =
        ClientOptions::load_from_config(LoadClientConfigProfileOptions::default()).map_err(|error| {
            anyhow!("the Temporal client configuration cannot be used: {error}; check temporal.toml and TEMPORAL_…")
        })?;
    if let Some(address) = &config.temporal.address {
        if address.starts_with("http://") {
            // Named as plain: an API key or certificates in the environment are for another server.
            (connection.tls_options, connection.api_key) = (None, None);
        }
        let secure = connection.tls_options.is_some() || connection.api_key.is_some();
        connection.target = target(address, secure)?;
    }
    if let Some(namespace) = &config.temporal.namespace {
        client.namespace.clone_from(namespace);
    }
    connection.identity = format!("tidegate-{}@{}", std::process::id(), hostname());
    Ok((connection, client))
}

impl Temporal {
    /// Connects as [`connect`] does, without a meter.
    ///
    /// # Errors
    /// As [`connect`].
    pub async fn open(config: &Config) -> anyhow::Result<Self> {
        connect(config, None).await
    }

    /// The SDK's client, for a worker.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Where the server is.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The namespace in use.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.client.options().namespace
    }

    /// The task queue that batches are started on.
    #[must_use]
    pub fn task_queue(&self) -> &str {
        &self.task_queue
    }

    /// The task queue and its namespace: workers of one can do each other's work.
    #[must_use]
    pub fn queue(&self) -> String {
        format!("{}/{}", self.namespace(), self.task_queue)
    }

    pub(super) fn handle(&self, id: &str) -> UntypedWorkflowHandle<Client> {
        self.client.get_workflow_handle::<UntypedWorkflow>(id)
    }

    pub(super) fn refused(&self, error: &str) -> anyhow::Error {
        anyhow!(plain(error)).context(format!(
            "the Temporal server at {} refused (namespace {})",
            self.address,
            self.namespace()
        ))
    }
}

/// `host:port` or a URL.
fn target(address: &str, secure: bool) -> anyhow::Result<url::Url> {
    let scheme = if secure { "https" } else { "http" };
    let text =
        if address.contains("://") { address.to_owned() } else { format!("{scheme}://{address}") };
    text.parse().with_context(|| {
        format!("temporal.address is \"{address}\"; write host:port, such as 127.0.0.1:7233")
    })
}

/// The message of a gRPC error, without its code and details.
pub(super) fn plain(text: &str) -> String {
    let message = text
        .split_once("message: \"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(message, _)| message);
    message.unwrap_or(text).to_owned()
}

/// The cause that has no further cause: the errors around it only name the layers that they went
/// through.
fn innermost(error: &(dyn std::error::Error + 'static)) -> anyhow::Error {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    anyhow!(plain(&error.to_string()))
}

fn hostname() -> String {
    std::fs::read_to_string("/etc/hostname")
        .map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed() {
        assert_eq!(target("127.0.0.1:7233", false).unwrap().as_str(), "http://127.0.0.1:7233/");
        assert_eq!(target("cloud:7233", true).unwrap().as_str(), "https://cloud:7233/");
        assert!(target("a b", false).unwrap_err().to_string().contains("host:port"));
    }

    #[test]
    fn grpc_noise_is_dropped() {
        assert_eq!(
            plain("Server error: code: 'x', message: \"Namespace n is not found.\", details: []"),
            "Namespace n is not found."
        );
        assert_eq!(plain("refused"), "refused");
    }
}
