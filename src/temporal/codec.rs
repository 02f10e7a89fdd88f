//! Passes payloads through a codec server: a team's own service that encrypts payloads, which would
//! otherwise be readable in Temporal. It is named by `TEMPORAL_CODEC_ENDPOINT` and `TEMPORAL_CODEC_AUTH`,
//! or by `[profile.default.codec]` in `temporal.toml`, as for the Temporal CLI.
//!
//! Wire form: `POST <endpoint>/encode` and `/decode` with `X-Namespace`, `Authorization` and
//! `{"payloads": [{"metadata": {name: base64}, "data": base64}]}`, protobuf's JSON, in both directions
//! (<https://docs.temporal.io/codec-server>).

use std::{collections::BTreeMap, fmt::Display, time::Duration};

use anyhow::Context as _;
use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use futures::{FutureExt, future::BoxFuture};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};
use temporalio_common::{
    data_converters::{PayloadCodec, PayloadConversionError, SerializationContextData},
    envconfig::ClientConfigCodec,
    protos::temporal::api::common::v1::Payload,
};
use url::Url;

/// A codec server is near its workers. After this time-out, Temporal retries the whole task.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Protobuf's JSON writes padded base64, and accepts unpadded.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A codec server. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Codec {
    http: reqwest::Client,
    /// The server's address, without `/encode` and `/decode`.
    pub(super) endpoint: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Message {
    #[serde(default)]
    payloads: Vec<Wire>,
}

/// A payload in protobuf's JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Wire {
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    #[serde(default)]
    data: String,
}

impl Codec {
    /// The codec server that the profile names, if any. `{namespace}` in the endpoint is replaced.
    ///
    /// # Errors
    /// The endpoint is no URL, or the authorization is no valid header value.
    pub(super) fn from_profile(
        profile: Option<&ClientConfigCodec>,
        namespace: &str,
    ) -> anyhow::Result<Option<Self>> {
        let Some(profile) = profile else { return Ok(None) };
        let Some(endpoint) = profile.endpoint.as_deref().filter(|endpoint| !endpoint.is_empty())
        else {
            return Ok(None);
        };
        let endpoint = endpoint.replace("{namespace}", namespace);
        let parsed = Url::parse(&endpoint).ok();
        anyhow::ensure!(
            parsed.is_some_and(|url| matches!(url.scheme(), "http" | "https")),
            "the codec endpoint is \"{endpoint}\"; write http://host:port or https://…, in TEMPORAL_CODEC_ENDPOINT or temporal.toml"
        );
        let mut headers = HeaderMap::new();
        let named = HeaderValue::from_str(namespace).context("the namespace is no header")?;
        headers.insert("x-namespace", named);
        if let Some(auth) = profile.auth.as_deref().filter(|auth| !auth.is_empty()) {
            let mut auth = HeaderValue::from_str(auth)
                .context("TEMPORAL_CODEC_AUTH holds what cannot stand in a header")?;
            auth.set_sensitive(true);
            headers.insert(AUTHORIZATION, auth);
        }
        let http = reqwest::Client::builder()
            .default_headers(headers)
            .timeout(ANSWER_WITHIN)
            .build()
            .context("the client of the codec server cannot be made")?;
        Ok(Some(Self { http, endpoint: endpoint.trim_end_matches('/').to_owned() }))
    }

    /// Checks that a payload survives encoding and decoding.
    ///
    /// # Errors
    /// The server does not answer, refuses, or returns another payload.
    pub(super) async fn probe(&self) -> anyhow::Result<()> {
        let sent = vec![Payload {
            metadata: [("encoding".to_owned(), b"json/plain".to_vec())].into(),
            data: b"\"tidegate\"".to_vec(),
            ..Payload::default()
        }];
        let back = async { self.send("decode", self.send("encode", sent.clone()).await?).await };
        let back = back.await.map_err(|error| anyhow::anyhow!("{error}"))?;
        anyhow::ensure!(back == sent, "what it encoded, it decoded to something else");
        Ok(())
    }

    fn send(
        &self,
        what: &'static str,
        payloads: Vec<Payload>,
    ) -> BoxFuture<'static, Result<Vec<Payload>, PayloadConversionError>> {
        let codec = self.clone();
        async move {
            if payloads.is_empty() {
                return Ok(payloads);
            }
            let sent = payloads.len();
            let asked = codec.http.post(format!("{}/{what}", codec.endpoint));
            let asked =
                asked.json(&Message { payloads: payloads.into_iter().map(to_wire).collect() });
            let answer = asked.send().await.and_then(reqwest::Response::error_for_status);
            let answer = answer.map_err(|error| codec.fault(what, error.without_url()))?;
            let message: Message =
                answer.json().await.map_err(|error| codec.fault(what, error.without_url()))?;
            if message.payloads.len() != sent {
                let got = message.payloads.len();
                return Err(codec.fault(what, format!("{got} payloads came back for {sent}")));
            }
            let payloads: Result<_, _> = message.payloads.into_iter().map(from_wire).collect();
            payloads.map_err(|error| codec.fault(what, format!("it answered no base64: {error}")))
        }
        .boxed()
    }

    fn fault(&self, what: &str, why: impl Display) -> PayloadConversionError {
        let text = format!(
            "the codec server at {} did not {what} (TEMPORAL_CODEC_ENDPOINT): {why}",
            self.endpoint
        );
        PayloadConversionError::EncodingError(text.into())
    }
}

impl PayloadCodec for Codec {
    fn encode(
        &self,
        _: &SerializationContextData,
        payloads: Vec<Payload>,
    ) -> BoxFuture<'static, Result<Vec<Payload>, PayloadConversionError>> {
        self.send("encode", payloads)
    }

    fn decode(
        &self,
        _: &SerializationContextData,
        payloads: Vec<Payload>,
    ) -> BoxFuture<'static, Result<Vec<Payload>, PayloadConversionError>> {
        self.send("decode", payloads)
    }
}

fn to_wire(payload: Payload) -> Wire {
    let metadata = payload.metadata.into_iter();
    Wire {
        metadata: metadata.map(|(name, value)| (name, BASE64.encode(value))).collect(),
        data: BASE64.encode(payload.data),
    }
}

fn from_wire(wire: Wire) -> Result<Payload, base64::DecodeError> {
    let metadata = wire.metadata.into_iter();
    Ok(Payload {
        metadata: metadata
            .map(|(name, value)| Ok((name, BASE64.decode(value)?)))
            .collect::<Result<_, _>>()?,
        data: BASE64.decode(wire.data)?,
        ..Payload::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(endpoint: &str) -> anyhow::Result<Option<Codec>> {
        let mut profile = ClientConfigCodec::default();
        profile.endpoint = Some(endpoint.to_owned());
        Codec::from_profile(Some(&profile), "orders")
    }

    #[test]
    fn the_endpoint_is_checked_and_completed() {
        assert!(Codec::from_profile(None, "orders").unwrap().is_none());
        assert!(open("").unwrap().is_none());
        let codec = open("http://codec:8081/{namespace}/").unwrap().unwrap();
        assert_eq!(codec.endpoint, "http://codec:8081/orders");
        let refused = open("codec:8081").unwrap_err().to_string();
        assert!(refused.contains("write http://host:port"), "{refused}");
    }

    #[test]
    fn payloads_survive_their_json() {
        let one = Payload {
            metadata: [("encoding".to_owned(), b"json/plain".to_vec())].into(),
            data: vec![0, 255, 7],
            ..Payload::default()
        };
        assert_eq!(from_wire(to_wire(one.clone())).unwrap(), one);
        let unpadded = Wire { metadata: BTreeMap::new(), data: "AP8".to_owned() };
        assert_eq!(from_wire(unpadded).unwrap().data, [0, 255]);
    }
}
