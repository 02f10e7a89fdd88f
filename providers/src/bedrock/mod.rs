//! AWS Bedrock, Converse: `POST {base-url}/model/{model}/converse`, through the vendor's SDK.
//!
//! Its error names are known in builds without the SDK, too, because gateways pass them on.

#[cfg(feature = "bedrock")]
mod client;
mod errors;
#[cfg(feature = "bedrock")]
mod http;
pub(crate) mod parameters;
#[cfg(feature = "bedrock")]
mod request;
#[cfg(feature = "bedrock")]
mod response;

use crate::{
    anthropic,
    provider::Provider,
    schema::{self, Keeps},
    settings::{Setup, SetupError},
};

pub(crate) use errors::NAMES;

/// Claude from 4.5 on and open models follow schemas; Nova does not, and is forced to call a tool
/// (docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html,
/// docs.aws.amazon.com/nova/latest/userguide/tool-choice.html).
pub(crate) fn schemas(model: &str) -> Keeps {
    if model.contains("claude") {
        anthropic::schemas(model)
    } else if model.contains("nova") {
        Keeps::Tool(&schema::TOOL)
    } else {
        Keeps::Schema(&schema::ANTHROPIC)
    }
}

#[cfg(feature = "bedrock")]
pub(crate) fn client(setup: &Setup<'_>) -> Result<Box<dyn Provider>, SetupError> {
    Ok(Box::new(client::Client::new(setup)?))
}

#[cfg(not(feature = "bedrock"))]
pub(crate) fn client(setup: &Setup<'_>) -> Result<Box<dyn Provider>, SetupError> {
    Err(SetupError::NoBedrock { provider: setup.name.to_owned() })
}

#[cfg(all(test, feature = "bedrock"))]
mod tests;
