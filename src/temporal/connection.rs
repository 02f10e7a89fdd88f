//! Connects to the Temporal server.

use std::{fmt, time::Duration};

use anyhow::{Context, anyhow};
use futures::FutureExt;
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, GrpcCompression, TlsOptions,
    UntypedWorkflow, UntypedWorkflowHandle, envconfig::ConfigError,
};
use temporalio_common::{
    data_converters::{
        DataConverter, DefaultPayloadCodec, PayloadConverter, SerializationContextData,
    },
    payload_visitor::{PayloadVisitable, decode_payloads},
    telemetry::metrics::TemporalMeter,
};

use super::{codec::Codec, undecodable::Failures};
use crate::config::{Config, mask, temporal::profile};

/// The default namespace.
const NAMESPACE: &str = "default";

/// Time limit for connecting, which takes milliseconds.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Error texts of the client for a server that is absent or went away during an answer.
const GONE: [&str; 4] = [
    "The service is currently unavailable",
    "tcp connect error",
    "transport error",
    "h2 protocol error",
];

/// The server does not answer.
#[derive(Debug)]
pub struct Away {
    address: String,
}

impl fmt::Display for Away {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no Temporal server answers at {}", self.address)
    }
}

/// A connection to a Temporal server. Cheap to clone.
#[derive(Clone)]
pub struct Temporal {
    client: Client,
    address: String,
    task_queue: String,
    pub(super) codec: Option<Codec>,
}

impl fmt::Debug for Temporal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Temporal")
            .field("address", &self.address)
            .field("task_queue", &self.task_queue)
            .finish_non_exhaustive()
    }
}

/// Connects with `[temporal]`, otherwise with `TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, TLS and API key
/// from the environment, otherwise with `temporal.toml`, as in every Temporal SDK. With a meter, the
/// connection's own calls are counted.
///
/// # Errors
/// Names the address and the remedy.
pub async fn connect(config: &Config, meter: Option<TemporalMeter>) -> anyhow::Result<Temporal> {
    let task_queue = config.temporal.task_queue.clone();
    let (mut connection, client, codec) = options(config)?;
    connection.metrics_meter = meter;
    let address = mask::url(connection.target.as_str());
    let away = cannot_connect(&connection.target);
    let connecting = Connection::connect(connection).boxed();
    let connection = match tokio::time::timeout(CONNECT_WITHIN, connecting).await {
        Ok(connection) => connection.map_err(|error| innermost(&error).context(away))?,
        Err(_) => return Err(anyhow!("no answer within {CONNECT_WITHIN:?}").context(away)),
    };
    let client = Client::new(connection, client).context("the Temporal client cannot be made")?;
    Ok(Temporal { client, address, task_queue, codec })
}

/// The remedy for a namespace that does not exist.
pub fn namespace_remedy(namespace: &str) -> String {
    format!(
        "create the namespace (temporal operator namespace create --namespace {namespace}), or correct temporal.namespace or TEMPORAL_NAMESPACE"
    )
}

/// The SDK's settings from the environment, overridden by our configuration.
fn options(config: &Config) -> anyhow::Result<(ConnectionOptions, ClientOptions, Option<Codec>)> {
    // The SDK's error is neither Send nor Sync: keep only its text.
    let unusable = |error: ConfigError| {
        anyhow!(
            "the Temporal client configuration cannot be used: {error}; check temporal.toml and TEMPORAL_…"
        )
    };
    let profile = profile().map_err(unusable)?;
    let namespace = profile.namespace.clone().unwrap_or_else(|| NAMESPACE.to_owned());
    let mut client = ClientOptions::new(namespace).build();
    let codec_profile = profile.codec.clone();
    let mut connection = ConnectionOptions::try_from(profile).map_err(unusable)?;
    if let Some(address) = &config.temporal.address {
        if address.starts_with("http://") {
            // The address is explicitly plain: an API key or certificates in the environment belong to
            // another server.
            (connection.tls_options, connection.api_key) = (None, None);
        }
        let secure = connection.tls_options.is_some() || connection.api_key.is_some();
        connection.target = target(address, secure)?;
    }
    // An https address alone switches TLS on.
    if connection.target.scheme() == "https" && connection.tls_options.is_none() {
        connection.tls_options = Some(TlsOptions::default());
    }
    if let Some(namespace) = &config.temporal.namespace {
        client.namespace.clone_from(namespace);
    }
    // The SDK reads the profile's codec but does not apply it.
    let codec = Codec::from_profile(codec_profile.as_ref(), &client.namespace)?;
    let (payloads, failures) = (PayloadConverter::default(), Failures::default());
    client.data_converter = match &codec {
        Some(codec) => DataConverter::new(payloads, failures, codec.clone()),
        None => DataConverter::new(payloads, failures, DefaultPayloadCodec),
    };
    // Requests are a few hundred bytes: compression would be a fifth of the SDK's work for an activity.
    connection.grpc_compression = GrpcCompression::None;
    connection.identity = format!("tidegate-{}@{}", std::process::id(), hostname());
    #[cfg(feature = "traces")]
    crate::traces::trace_client(&mut client)?;
    Ok((connection, client, codec))
}

impl Temporal {
    /// Connects as [`connect`] does, without a meter.
    ///
    /// # Errors
    /// The errors of [`connect`].
    pub async fn open(config: &Config) -> anyhow::Result<Self> {
        connect(config, None).await
    }

    /// The SDK's client, for a worker.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The server's address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The namespace in use.
    pub fn namespace(&self) -> &str {
        &self.client.options().namespace
    }

    /// The task queue that batches are started on.
    pub fn task_queue(&self) -> &str {
        &self.task_queue
    }

    /// Namespace and task queue: workers with equal values share their work.
    pub fn queue(&self) -> String {
        self.queue_named(&self.task_queue)
    }

    /// Like [`Self::queue`], for the task queue of a batch.
    pub fn queue_named(&self, task_queue: &str) -> String {
        format!("{}/{task_queue}", self.namespace())
    }

    /// The codec server's address, if there is one.
    pub fn codec(&self) -> Option<&str> {
        self.codec.as_ref().map(|codec| codec.endpoint.as_str())
    }

    /// Checks that the codec server returns a payload unchanged.
    ///
    /// # Errors
    /// It does not answer, refuses, or returns another payload.
    pub async fn probe_codec(&self) -> anyhow::Result<()> {
        match &self.codec {
            Some(codec) => codec.probe().await,
            None => Ok(()),
        }
    }

    /// Decodes the payloads of a server's message. The client itself decodes only results.
    pub(super) async fn decode<M: PayloadVisitable>(&self, mut message: M) -> anyhow::Result<M> {
        if let Some(codec) = &self.codec {
            decode_payloads(&mut message, codec, &SerializationContextData::None)
                .await
                .map_err(|error| anyhow!("{error}"))?;
        }
        Ok(message)
    }

    pub(super) fn handle(&self, id: &str) -> UntypedWorkflowHandle<Client> {
        self.client.get_workflow_handle::<UntypedWorkflow>(id)
    }

    /// Converts an error text of the client: [`Away`] if the server does not answer.
    pub(super) fn server_error(&self, error: &str) -> anyhow::Error {
        if GONE.iter().any(|sign| error.contains(sign)) {
            return self.unreachable_error(grpc_message(error));
        }
        refused(&self.address, self.namespace(), grpc_message(error))
    }

    pub(super) fn unreachable_error(&self, why: String) -> anyhow::Error {
        anyhow!(why).context(Away { address: self.address.clone() })
    }
}

/// The server's refusal, with the remedy for a namespace that does not exist. Its words follow it.
fn refused(address: &str, namespace: &str, words: String) -> anyhow::Error {
    let is_missing = words.starts_with("Namespace ") && words.contains("not found");
    let remedy = match is_missing {
        true => format!("; {}", namespace_remedy(namespace)),
        false => String::new(),
    };
    anyhow!(words).context(format!(
        "the Temporal server at {address} refused (namespace {namespace}){remedy}"
    ))
}

/// The failure of a connection, with what to check. Its cause follows it.
fn cannot_connect(target: &url::Url) -> String {
    let is_loopback = match target.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    let start = if is_loopback { "start one with `temporal server start-dev`, or " } else { "" };
    let address = mask::url(target.as_str());
    format!(
        "cannot connect to Temporal at {address}; {start}check temporal.address or TEMPORAL_ADDRESS, TLS and TEMPORAL_API_KEY"
    )
}

/// Completes `host:port` to a URL.
fn target(address: &str, secure: bool) -> anyhow::Result<url::Url> {
    let scheme = if secure { "https" } else { "http" };
    let text =
        if address.contains("://") { address.to_owned() } else { format!("{scheme}://{address}") };
    text.parse().with_context(|| {
        let given = mask::url(address);
        format!("temporal.address is \"{given}\"; write host:port, such as 127.0.0.1:7233")
    })
}

/// The message of a gRPC error, without its code and details.
pub(super) fn grpc_message(text: &str) -> String {
    let message = text
        .split_once("message: \"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(message, _)| message);
    message.unwrap_or(text).to_owned()
}

/// The innermost cause: the errors around it only name the layers of the client.
fn innermost(error: &(dyn std::error::Error + 'static)) -> anyhow::Error {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    anyhow!(grpc_message(&error.to_string()))
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
    fn a_namespace_that_does_not_exist_is_told_how_to_make() {
        let missing = refused("h:7233", "nope", "Namespace nope is not found.".to_owned());
        let command = "temporal operator namespace create --namespace nope";
        assert!(missing.to_string().contains(command), "{missing}");
        assert_eq!(missing.root_cause().to_string(), "Namespace nope is not found.");
        let other = refused("h:7233", "n", "workflow not found for ID: b".to_owned());
        assert_eq!(other.to_string(), "the Temporal server at h:7233 refused (namespace n)");
    }

    #[test]
    fn a_server_is_started_on_this_machine_alone() {
        let text = |address: &str| cannot_connect(&target(address, true).unwrap());
        for here in ["localhost:7233", "127.0.0.1:7233", "[::1]:7233"] {
            assert!(text(here).contains("`temporal server start-dev`"), "{}", text(here));
        }
        let there = text("cloud:7233");
        assert!(there.contains("https://cloud:7233/; check temporal.address"), "{there}");
    }

    #[test]
    fn an_address_says_whether_it_is_over_tls() {
        let mut config = Config::default();
        let mut with = |address: &str| {
            config.temporal.address = Some(address.to_owned());
            options(&config).unwrap().0.tls_options.is_some()
        };
        assert!(with("https://cloud:7233"));
        assert!(!with("http://127.0.0.1:7233"));
    }

    #[test]
    fn grpc_noise_is_dropped() {
        assert_eq!(
            grpc_message(
                "Server error: code: 'x', message: \"Namespace n is not found.\", details: []"
            ),
            "Namespace n is not found."
        );
        assert_eq!(grpc_message("refused"), "refused");
    }
}
