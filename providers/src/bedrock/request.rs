//! A request, in the SDK's types.

use aws_sdk_bedrockruntime::{
    Client as Sdk,
    error::BuildError,
    operation::converse::builders::ConverseFluentBuilder,
    types::{
        CachePointBlock, CachePointType, ContentBlock, ConversationRole, DocumentBlock,
        DocumentFormat, DocumentSource, ImageBlock, ImageFormat, ImageSource,
        InferenceConfiguration, JsonSchemaDefinition, Message, OutputConfig, OutputFormat,
        OutputFormatStructure, OutputFormatType, PerformanceConfiguration, ServiceTier,
        SpecificToolChoice, SystemContentBlock, Tool, ToolChoice, ToolConfiguration,
        ToolInputSchema, ToolSpecification,
    },
};
use aws_smithy_types::{Blob, Document as Fields, Number};
use serde_json::Value;

use super::parameters::OF_THE_MODEL;

use crate::{
    body,
    call::{Document, Request},
    dialect::Dialect,
    error::{Error, Kind},
    prompt,
    schema::{TOOL_IS, TOOL_NAME},
    turn::Role,
};

/// The attached file's name: letters, digits, single spaces and a few signs are allowed, but no
/// dot.
const FILE_NAME: &str = "document";

pub(super) fn converse(
    sdk: &Sdk,
    request: &Request<'_>,
    dialect: Dialect,
) -> Result<ConverseFluentBuilder, Error> {
    let stated = body::placed(dialect, request)?;
    build(sdk, request, &stated, dialect.has_tool(request.model)).map_err(|error| {
        Error::unsent(
            Kind::InvalidRequest,
            &format!("bedrock: the request cannot be written: {error}"),
        )
    })
}

/// Builds the request. It sets no sampling parameters, as for other vendors. `maxTokens` is always
/// set: without it the model's maximum is reserved.
fn build(
    sdk: &Sdk,
    request: &Request<'_>,
    stated: &Value,
    as_tool: bool,
) -> Result<ConverseFluentBuilder, BuildError> {
    let own = (ConversationRole::User, content(request)?);
    let before = request.turns.iter().map(|turn| {
        let role = match turn.role {
            Role::User => ConversationRole::User,
            Role::Assistant => ConversationRole::Assistant,
        };
        (role, vec![ContentBlock::Text(turn.text.clone())])
    });
    let messages = before
        .chain([own])
        .map(|(role, content)| Message::builder().role(role).set_content(Some(content)).build());
    let messages: Vec<Message> = messages.collect::<Result<_, _>>()?;
    let bound = i32::try_from(request.max_output_tokens).unwrap_or(i32::MAX);
    let mut converse = sdk
        .converse()
        .model_id(request.model)
        .set_messages(Some(messages))
        .inference_config(inference(stated, bound));
    if !request.instructions.is_empty() {
        converse = converse.system(SystemContentBlock::Text(request.instructions.to_owned()));
        if request.cache_instructions {
            let point = CachePointBlock::builder().r#type(CachePointType::Default).build()?;
            converse = converse.system(SystemContentBlock::CachePoint(point));
        }
    }
    let mut output = OutputConfig::builder();
    let kept = request.schema.filter(|_| !as_tool);
    if let Some(schema) = request.schema.filter(|_| as_tool) {
        converse = converse.tool_config(tool(schema)?);
    }
    if let Some(schema) = kept {
        let schema =
            JsonSchemaDefinition::builder().name("answer").schema(schema.to_string()).build()?;
        let structure = OutputFormatStructure::JsonSchema(schema);
        let format = OutputFormat::builder()
            .r#type(OutputFormatType::JsonSchema)
            .structure(structure)
            .build()?;
        output = output.text_format(format);
    }
    if let Some(effort) = text(stated, "/outputConfig/effort") {
        output = output.effort(effort);
    }
    if kept.is_some() || stated.pointer("/outputConfig").is_some() {
        converse = converse.output_config(output.build());
    }
    if let Some(tier) = text(stated, "/serviceTier/type") {
        converse = converse.service_tier(ServiceTier::builder().r#type(tier.into()).build()?);
    }
    if let Some(latency) = text(stated, "/performanceConfig/latency") {
        let performance = PerformanceConfiguration::builder().latency(latency.into()).build();
        converse = converse.performance_config(performance);
    }
    if let Some(own) = stated.get(OF_THE_MODEL) {
        converse = converse.additional_model_request_fields(fields(own));
    }
    Ok(converse)
}

/// A tool whose arguments are the answer; the model must call it.
fn tool(schema: &Value) -> Result<ToolConfiguration, BuildError> {
    let tool = ToolSpecification::builder()
        .name(TOOL_NAME)
        .description(TOOL_IS)
        .input_schema(ToolInputSchema::Json(fields(schema)))
        .build()?;
    let choice = SpecificToolChoice::builder().name(TOOL_NAME).build()?;
    ToolConfiguration::builder()
        .tools(Tool::ToolSpec(tool))
        .tool_choice(ToolChoice::Tool(choice))
        .build()
}

fn text<'a>(stated: &'a Value, path: &str) -> Option<&'a str> {
    stated.pointer(path).and_then(Value::as_str)
}

// The API takes single precision.
fn inference(stated: &Value, bound: i32) -> InferenceConfiguration {
    let number = |path| stated.pointer(path).and_then(Value::as_f64).map(|number| number as f32);
    let stop = stated.pointer("/inferenceConfig/stopSequences").and_then(Value::as_array);
    let stop =
        stop.map(|texts| texts.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    InferenceConfiguration::builder()
        .max_tokens(bound)
        .set_temperature(number("/inferenceConfig/temperature"))
        .set_top_p(number("/inferenceConfig/topP"))
        .set_stop_sequences(stop)
        .build()
}

/// JSON in the SDK's type.
fn fields(value: &Value) -> Fields {
    match value {
        Value::Null => Fields::Null,
        Value::Bool(flag) => Fields::Bool(*flag),
        Value::Number(number) => Fields::Number(match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Number::PosInt(number),
            (None, Some(number)) => Number::NegInt(number),
            (None, None) => Number::Float(number.as_f64().unwrap_or_default()),
        }),
        Value::String(text) => Fields::String(text.clone()),
        Value::Array(values) => Fields::Array(values.iter().map(fields).collect()),
        Value::Object(object) => Fields::Object(
            object.iter().map(|(name, value)| (name.clone(), fields(value))).collect(),
        ),
    }
}

fn content(request: &Request<'_>) -> Result<Vec<ContentBlock>, BuildError> {
    let text = ContentBlock::Text(prompt::text(request).into_owned());
    Ok(match request.document {
        Document::Text(_) => vec![text],
        Document::Pdf(bytes) => {
            let source = DocumentSource::Bytes(Blob::new(bytes));
            let file = DocumentBlock::builder()
                .format(DocumentFormat::Pdf)
                .name(FILE_NAME)
                .source(source)
                .build()?;
            vec![ContentBlock::Document(file), text]
        }
        Document::Pictures(_, pictures) => {
            let mut content = Vec::with_capacity(pictures.len() + 1);
            for picture in pictures {
                let format = match picture.media_type.as_str() {
                    "image/jpeg" => ImageFormat::Jpeg,
                    "image/webp" => ImageFormat::Webp,
                    _ => ImageFormat::Png,
                };
                let source = ImageSource::Bytes(Blob::new(picture.bytes.clone()));
                let image = ImageBlock::builder().format(format).source(source).build()?;
                content.push(ContentBlock::Image(image));
            }
            content.push(text);
            content
        }
    })
}
