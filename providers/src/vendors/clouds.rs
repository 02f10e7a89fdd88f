//! Vendors' models at clouds: the APIs of vendors that have a folder, at each customer's own
//! endpoint, so that `base-url` is required. Prices and limits depend on the account: a model's
//! section states them.

use super::compatible::COMPATIBLE;
use crate::{
    anthropic, gemini, openai,
    vendor::{BasePath, Credentials, Interface, ModelsList, OutputCap, Profile, Vendor},
};

impl Vendor {
    /// Vendors' models at clouds.
    pub const CLOUDS: [Self; 3] = [Self::AZURE, Self::VERTEX, Self::VERTEX_ANTHROPIC];

    /// Azure OpenAI's deployments, by name: learn.microsoft.com/azure/ai-foundry/openai/reference.
    /// A key goes into `api-key`, an Entra token is sent as a bearer token. Azure reserves the
    /// prompt plus `max_tokens` (how-to/quota). Its v1 API is OpenAI's own (`kind = "openai"`).
    pub const AZURE: Self = Self(&Profile {
        name: "azure",
        embeddings: Some(&openai::embeddings::AZURE),
        base_path: BasePath::HostAlone {
            versions: &["v1", "openai"],
            remedy: "names the host alone for this kind; for the v1 API write kind = \"openai\"",
        },
        key_variable: "AZURE_OPENAI_API_KEY",
        key_header: ("api-key", ""),
        output_cap: Some(OutputCap::MaxCompletionTokens),
        models: ModelsList {
            path: &["openai", "models"],
            names_as_called: false,
            ..COMPATIBLE.models
        },
        parameters: &openai::parameters::TABLE,
        responses: Some(&openai::parameters::RESPONSES),
        schemas: openai::schemas,
        interface: Interface::AzureDeployments,
        ..COMPATIBLE
    });

    /// Gemini at Vertex AI: docs.cloud.google.com/vertex-ai/generative-ai/docs/reference/rest,
    /// projects.locations.publishers.models.generateContent. Google does not document for all
    /// models which tokens count towards its limits, so all of them count here.
    pub const VERTEX: Self = Self(&Profile {
        name: "vertex",
        error_names: gemini::NAMES,
        refused: gemini::with_reset,
        observed: gemini::observed,
        parameters: &gemini::parameters::TABLE,
        schemas: Self::GEMINI.0.schemas,
        json_mode: Self::GEMINI.0.json_mode,
        interface: Interface::GenerateContentAtVertex,
        ..AT_VERTEX
    });

    /// Claude at Vertex AI: docs.anthropic.com/en/api/claude-on-vertex-ai. The path holds the
    /// model, and the body the version.
    pub const VERTEX_ANTHROPIC: Self = Self(&Profile {
        name: "vertex-anthropic",
        error_names: anthropic::NAMES,
        observed: anthropic::observed,
        parameters: &anthropic::parameters::TABLE,
        schemas: anthropic::schemas,
        json_mode: None,
        interface: Interface::MessagesAtVertex,
        ..AT_VERTEX
    });
}

/// The facts that both have in common.
const AT_VERTEX: Profile = Profile {
    // A token that another program keeps fresh.
    key_variable: "VERTEX_ACCESS_TOKEN",
    credentials: Credentials::KeyOrGoogle,
    // Nothing below an endpoint lists them: a 404 shows that the host is reached.
    models: ModelsList { path: &["publishers"], names_as_called: false, ..COMPATIBLE.models },
    output_cap: None,
    ..COMPATIBLE
};
