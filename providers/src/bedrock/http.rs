//! The SDK's HTTP client: sends one request over its own connection, like every other vendor's
//! client.

use aws_sdk_bedrockruntime::config::{
    RuntimeComponents,
    http::{HttpRequest, HttpResponse},
};
use aws_smithy_runtime_api::client::{
    http::{
        HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
    },
    result::ConnectorError,
};
use aws_smithy_types::body::SdkBody;

use crate::exchange::{Fault, MAX_ANSWER_BYTES, Reply};

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Client(reqwest::Client);

impl Client {
    pub(super) fn new(client: reqwest::Client) -> Self {
        Self(client)
    }
}

impl HttpClient for Client {
    fn http_connector(
        &self,
        _settings: &HttpConnectorSettings,
        _components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Client {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let client = self.0.clone();
        HttpConnectorFuture::new(async move { send(&client, request).await })
    }
}

async fn send(
    client: &reqwest::Client,
    request: HttpRequest,
) -> Result<HttpResponse, ConnectorError> {
    let user = |error: &dyn std::fmt::Display| ConnectorError::user(error.to_string().into());
    let request = request.try_into_http1x().map_err(|error| user(&error))?;
    let request = request.map(|body| body.bytes().unwrap_or_default().to_vec());
    let request = reqwest::Request::try_from(request).map_err(|error| user(&error))?;
    let response = client
        .execute(request)
        .await
        .map_err(|error| ConnectorError::io(Box::new(Fault::from_error(&error))))?;
    let Reply { status, headers, body, cut } = Reply::read(response, MAX_ANSWER_BYTES).await;
    let mut response = http::Response::builder().status(status);
    if let Some(fields) = response.headers_mut() {
        *fields = headers;
    }
    // The response carries whether its body is whole, because the SDK cannot represent a partial
    // body.
    if let Some(cut) = cut {
        response = response.extension(cut);
    }
    let response = response.body(SdkBody::from(body)).map_err(|error| user(&error))?;
    HttpResponse::try_from(response).map_err(|error| user(&error))
}
