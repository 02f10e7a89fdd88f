//! The client of one endpoint.
//!
//! The SDK writes the request, signs it and reads the answer. Its retries are off, and its HTTP
//! stack is not linked: `http` gives it our own client, which sends once over its own connection.
//! The body and headers of an error are read here, as for the other vendors.
//!
//! With a key (`AWS_BEARER_TOKEN_BEDROCK`) the call carries it as a bearer token; without one the
//! SDK's usual chain finds credentials: environment, profile, web identity, container, instance.
//!
//! Sources: `aws-sdk-bedrockruntime` 1.153.0, the service model of 2023-09-30, and
//! docs.aws.amazon.com (Bedrock user guide: quotas, token burndown), read between August and
//! November 2026.

use std::{fmt, time::Duration};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_bedrockruntime::{
    Client as Sdk,
    config::{
        StalledStreamProtectionConfig, Token,
        retry::{ReconnectMode, RetryConfig},
        timeout::TimeoutConfig,
    },
    error::SdkError,
};
use tidegate_types::Charge;
use tokio::sync::Mutex;
use url::Url;

use super::{http, request, response};
use crate::{
    bounds::Bounds,
    call::{BoxFuture, Completion, Request},
    classify::Classifier,
    dialect::Dialect,
    endpoint,
    error::{Error, Kind},
    error_rule::ErrorRule,
    exchange::{self, Fault},
    key::Key,
    message::Redactor,
    observed::Observed,
    provider::Provider,
    refusal::Context,
    settings::{Setup, SetupError},
};

/// The default region: the vendor's first.
const REGION: &str = "us-east-1";

/// A client for one endpoint.
pub(super) struct Client {
    endpoint: Url,
    pub(super) region: Region,
    /// The provider's configured name.
    name: String,
    dialect: Dialect,
    classifier: Classifier,
    key: Key,
    errors: Vec<ErrorRule>,
    request_timeout: Duration,
    http: http::Client,
    /// Created at the first call, because the search for credentials needs a runtime, and again for
    /// each version of the key.
    sdk: Mutex<Option<(u64, Sdk)>>,
}

impl Client {
    pub(super) fn new(setup: &Setup<'_>) -> Result<Self, SetupError> {
        let settings = setup.settings;
        let endpoint = settings.endpoint(setup.name, &[])?;
        let region = settings.region.as_deref().or_else(|| region(&settings.base_url));
        Ok(Self {
            region: Region::new(region.unwrap_or(REGION).to_owned()),
            name: setup.name.to_owned(),
            dialect: Dialect::from_settings(settings),
            classifier: setup.classifier.clone(),
            key: setup.key.clone(),
            errors: settings.errors.clone(),
            request_timeout: settings.request_timeout,
            http: http::Client::new(exchange::client(setup, &endpoint)?),
            sdk: Mutex::default(),
            endpoint,
        })
    }

    async fn sdk(&self) -> Sdk {
        let (mut made, version) = (self.sdk.lock().await, self.key.version());
        match &*made {
            Some((of, sdk)) if *of == version => sdk.clone(),
            _ => {
                let sdk = self.connect().await;
                *made = Some((version, sdk.clone()));
                sdk
            }
        }
    }

    async fn connect(&self) -> Sdk {
        let key = self.key.current();
        let shared = match &key {
            Some(_) => SdkConfig::builder().behavior_version(BehaviorVersion::latest()).build(),
            None => {
                let loader = aws_config::defaults(BehaviorVersion::latest());
                loader.region(self.region.clone()).http_client(self.http.clone()).load().await
            }
        };
        // Set on the service itself, so that no variable or profile can switch retries on again.
        let config = aws_sdk_bedrockruntime::config::Builder::from(&shared)
            .region(self.region.clone())
            .endpoint_url(self.endpoint.as_str())
            .http_client(self.http.clone())
            // Connections are used once, so none needs to be given up after a fault.
            .retry_config(
                RetryConfig::disabled().with_reconnect_mode(ReconnectMode::ReuseAllConnections),
            )
            // The client's own time-out covers the whole call.
            .timeout_config(TimeoutConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        let config = match &key {
            Some(key) => config.bearer_token(Token::new(key.expose(), None)),
            None => config,
        };
        Sdk::from_conf(config.build())
    }

    async fn call(&self, request: &Request<'_>) -> Result<Completion, Error> {
        let prepared = self.dialect.prepared(request);
        let operation = request::converse(&self.sdk().await, &prepared.request(), self.dialect)?;
        let context = || self.context(request);
        match operation.send().await {
            Ok(output) => {
                let completion = response::read(&output, context())?;
                Ok(self.dialect.restored_for(request, completion))
            }
            Err(SdkError::ServiceError(refused)) => Err(response::failed(refused.raw(), context())),
            Err(SdkError::ResponseError(unreadable)) => {
                Err(response::failed(unreadable.raw(), context()))
            }
            Err(error) => Err(self.no_reply(&error, &Redactor::new(&self.key, request))),
        }
    }

    /// The context of an error. Limits are absent, because no header states them.
    fn context<'a>(&'a self, request: &Request<'a>) -> Context<'a> {
        let redactor = Redactor::new(&self.key, request);
        let (classifier, errors) = (&self.classifier, &self.errors);
        Context::new(&self.name, classifier, errors, redactor, Observed::default())
    }

    /// The error of a failed connection, or of a failed search for credentials.
    fn no_reply(
        &self,
        error: &(dyn std::error::Error + 'static),
        redactor: &Redactor<'_>,
    ) -> Error {
        let mut root = error;
        while let Some(source) = root.source() {
            root = source;
        }
        if let Some(fault) = root.downcast_ref::<Fault>() {
            return exchange::no_reply(
                self.endpoint.host_str().unwrap_or_default(),
                fault,
                redactor,
            );
        }
        let remedy = if self.key.current().is_some() {
            ""
        } else {
            "; set AWS_BEARER_TOKEN_BEDROCK or give the worker AWS credentials"
        };
        Error::unsent(
            Kind::Unauthorized,
            &redactor.clean(&format!("bedrock: the call could not be signed: {root}{remedy}")),
        )
    }
}

/// Shows the endpoint without its query, and nothing of the key or the SDK's configuration.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("endpoint", &endpoint::printable(&self.endpoint))
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

impl Provider for Client {
    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Completion, Error>> {
        Box::pin(self.call(request))
    }

    fn charge(&self) -> Charge {
        self.dialect.vendor.charge()
    }

    fn bounds(&self, model: &str) -> Bounds {
        self.dialect.vendor.bounds(
            model,
            self.dialect.vendor.is_official(&self.endpoint),
            self.request_timeout,
        )
    }

    fn key(&self) -> Option<&Key> {
        Some(&self.key)
    }
}

/// The region in the name of one of the vendor's hosts:
/// `bedrock-runtime.eu-central-1.amazonaws.com`.
fn region(url: &Url) -> Option<&str> {
    url.host_str()?.strip_suffix(".amazonaws.com")?.split('.').nth(1)
}
