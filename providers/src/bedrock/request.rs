//! A request, in the SDK's types.

use aws_sdk_bedrockruntime::{
    Client as Sdk,
    error::BuildError,
    operation::converse::builders::ConverseFluentBuilder,
    types::{
        CachePointBlock, CachePointType, ContentBlock, ConversationRole, DocumentBlock,
        DocumentFormat, DocumentSource, InferenceConfiguration, JsonSchemaDefinition, Message,
        OutputConfig, OutputFormat, OutputFormatStructure, OutputFormatType, SystemContentBlock,
    },
};
use aws_smithy_types::Blob;

use crate::{
    call::{Document, Request},
    error::{Error, Kind},
    prompt,
};

/// The attached file's name: letters, digits, single spaces and few signs are allowed, a dot is
/// not.
const FILE_NAME: &str = "document";

pub(super) fn converse(sdk: &Sdk, request: &Request<'_>) -> Result<ConverseFluentBuilder, Error> {
    build(sdk, request).map_err(|error| {
        Error::unsent(
            Kind::InvalidRequest,
            &format!("bedrock: the request cannot be written: {error}"),
        )
    })
}

/// No sampling parameters, as everywhere. `maxTokens` is always set: without it the model's maximum
/// is reserved.
fn build(sdk: &Sdk, request: &Request<'_>) -> Result<ConverseFluentBuilder, BuildError> {
    let message = Message::builder()
        .role(ConversationRole::User)
        .set_content(Some(content(request.document)?))
        .build()?;
    let bound = i32::try_from(request.max_output_tokens).unwrap_or(i32::MAX);
    let mut converse = sdk
        .converse()
        .model_id(request.model)
        .messages(message)
        .inference_config(InferenceConfiguration::builder().max_tokens(bound).build());
    if !request.instructions.is_empty() {
        converse = converse.system(SystemContentBlock::Text(request.instructions.to_owned()));
        if request.cache_instructions {
            let point = CachePointBlock::builder().r#type(CachePointType::Default).build()?;
            converse = converse.system(SystemContentBlock::CachePoint(point));
        }
    }
    if let Some(schema) = request.schema {
        let schema =
            JsonSchemaDefinition::builder().name("answer").schema(schema.to_string()).build()?;
        let structure = OutputFormatStructure::JsonSchema(schema);
        let format = OutputFormat::builder()
            .r#type(OutputFormatType::JsonSchema)
            .structure(structure)
            .build()?;
        converse = converse.output_config(OutputConfig::builder().text_format(format).build());
    }
    Ok(converse)
}

fn content(document: Document<'_>) -> Result<Vec<ContentBlock>, BuildError> {
    Ok(match document {
        Document::Text(text) => vec![ContentBlock::Text(prompt::wrap(text))],
        Document::Pdf(bytes) => {
            let source = DocumentSource::Bytes(Blob::new(bytes));
            let file = DocumentBlock::builder()
                .format(DocumentFormat::Pdf)
                .name(FILE_NAME)
                .source(source)
                .build()?;
            vec![ContentBlock::Document(file), ContentBlock::Text(prompt::ATTACHED.to_owned())]
        }
    })
}
