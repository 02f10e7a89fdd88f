//! Request fields beside the question, and users' schemas, at a provider that refuses what the vendors
//! refuse.

use serde_json::{Value, json};
use tidegate_providers::{
    Api, Document, KeySource, Kind, Parameters, Providers, Request, Role, Said, Secret, Settings,
    Turn, Vendor,
};
use tidegate_simulator::{Config, Simulator};
use tidegate_types::{Effort, ModelId};

fn providers(simulator: &Simulator, vendor: Vendor, api: Api) -> Providers {
    let url = format!("{}{}", simulator.base_url(), vendor.base_path());
    let settings = Settings { api, ..Settings::new(vendor, url.parse().unwrap()) };
    let settings = settings.api_key(Secret::new("a-key").unwrap());
    Providers::new([("mine".to_owned(), settings)]).unwrap()
}

/// A schema that strict modes refuse unchanged: an optional field, a length, an open object.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "title": {"type": "string", "minLength": 1},
            "year": {"type": "integer", "minimum": 1_900, "maximum": 2_100},
            "note": {"type": "string"},
            "parts": {"type": "array", "minItems": 2, "items": {"$ref": "#/definitions/part"}},
        },
        "required": ["title", "parts"],
        "definitions": {"part": {"type": "object", "properties": {"name": {"type": "string"}}}},
    })
}

const CHAT: Api = Api::ChatCompletions;

#[tokio::test]
async fn what_the_tables_let_through_the_vendors_take() {
    let simulator = Simulator::start(Config::default()).await.unwrap();
    let (none, low, high) = (Some(Effort::None), Some(Effort::Low), Some(Effort::High));
    #[rustfmt::skip]
    let cases = [
        (Vendor::ANTHROPIC, CHAT, "claude-haiku-4-5", None, json!({"temperature":0.2,"top_k":5,"stop":"END","service_tier":"auto"})),
        (Vendor::ANTHROPIC, CHAT, "claude-haiku-4-5", high, json!({"top_p":0.97})),
        (Vendor::ANTHROPIC, CHAT, "claude-3-5-haiku-20241022", None, json!({"temperature":0.2})),
        (Vendor::BEDROCK, CHAT, "eu.amazon.nova-pro-v1:0", None, json!({"temperature":0.2})),
        (Vendor::BEDROCK, CHAT, "anthropic.claude-opus-4-1-20250805-v1:0", None, json!({})),
        (Vendor::ANTHROPIC, CHAT, "claude-sonnet-5-5", low, json!({"metadata":{"user_id":"u"}})),
        (Vendor::ANTHROPIC, CHAT, "claude-sonnet-5-5", none, json!({})),
        (Vendor::ANTHROPIC, CHAT, "claude-fable-5", high, json!({})),
        (Vendor::OPENAI, CHAT, "gpt-4o", none, json!({"temperature":0,"seed":7,"stop":["a","b"],"verbosity":"medium"})),
        (Vendor::OPENAI, CHAT, "gpt-5-mini", none, json!({"verbosity":"low","service_tier":"flex"})),
        (Vendor::OPENAI, CHAT, "gpt-5.4", none, json!({"temperature":0,"top_p":0.5})),
        (Vendor::OPENAI, Api::Responses, "gpt-6-luna", high, json!({"verbosity":"low","truncation":"auto"})),
        (Vendor::GEMINI, CHAT, "gemini-2.5-flash", none, json!({"temperature":0,"top_k":3,"seed":1,"stop":"x"})),
        (Vendor::GEMINI, CHAT, "gemini-3.8-flash", Some(Effort::Medium), json!({"service_tier":"flex"})),
        (Vendor::BEDROCK, CHAT, "eu.anthropic.claude-sonnet-5-5", high, json!({"service_tier":"priority"})),
        (Vendor::BEDROCK, CHAT, "openai.gpt-oss-120b-1:0", low, json!({"temperature":0.5,"latency":"optimized"})),
        (Vendor::GROQ, CHAT, "openai/gpt-oss-120b", low, json!({"temperature":0,"seed":1})),
        (Vendor::VLLM, CHAT, "Qwen/Qwen3-32B", none, json!({"top_k":20,"min_p":0.1})),
        (Vendor::MISTRAL, CHAT, "mistral-small-latest", high, json!({"seed":1})),
    ];
    let schema = schema();
    for (vendor, api, model, effort, given) in cases {
        let providers = providers(&simulator, vendor, api);
        let id: ModelId = format!("mine:{model}").parse().unwrap();
        let given = given.as_object().unwrap();
        let dialect = providers.dialect(&id).unwrap();
        let fields = dialect.check(model, effort, given, Some(9_000)).unwrap();
        let request = Request {
            model,
            instructions: "List its parts.",
            turns: &[],
            said: Said::Nothing,
            document: Document::Text("The tide is high. The ferry waits."),
            max_output_tokens: 9_000,
            schema: Some(&schema),
            cache_instructions: false,
            parameters: Parameters { effort, fields: Some(&fields) },
        };
        let answered = providers.get(&id).unwrap().complete(&request).await;
        let answer = answered.unwrap_or_else(|error| panic!("{vendor} {model}: {error}")).answer;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert!(
            answer["title"].is_string() && answer["parts"][1].is_object(),
            "{vendor} {model}: {answer}"
        );
    }
    simulator.shutdown().await;
}

#[tokio::test]
async fn what_is_sent_past_the_tables_the_vendors_refuse() {
    let simulator = Simulator::start(Config::default()).await.unwrap();
    for (vendor, model, field) in [
        (Vendor::ANTHROPIC, "claude-sonnet-5-5", "verbosity"),
        (Vendor::OPENAI, "gpt-4o", "top_k"),
        (Vendor::GEMINI, "gemini-3.8-flash", "verbosity"),
    ] {
        let providers = providers(&simulator, vendor, CHAT);
        let id: ModelId = format!("mine:{model}").parse().unwrap();
        let given = json!({(field): "low", "allow_unknown": true});
        let dialect = providers.dialect(&id).unwrap();
        let fields = dialect.check(model, None, given.as_object().unwrap(), None).unwrap();
        let request = Request {
            model,
            instructions: "",
            turns: &[],
            said: Said::Nothing,
            document: Document::Text("The tide is high."),
            max_output_tokens: 100,
            schema: None,
            cache_instructions: false,
            parameters: Parameters { effort: None, fields: Some(&fields) },
        };
        let error = providers.get(&id).unwrap().complete(&request).await.unwrap_err();
        assert!(
            matches!(error.kind, Kind::InvalidRequest | Kind::Unsupported)
                && error.message.contains(field),
            "{vendor}: {error}"
        );
    }
    simulator.shutdown().await;
}

/// Azure deployments with a key, and with a token that a program prints; a wrong version is refused.
#[tokio::test]
async fn azures_deployments_take_a_key_or_a_token() {
    let simulator = Simulator::start(Config::default()).await.unwrap();
    let ask = async |settings: Settings| {
        let providers = Providers::new([("mine".to_owned(), settings)]).unwrap();
        let id: ModelId = "mine:summaries".parse().unwrap();
        let turns = [(Role::User, "Who are you?"), (Role::Assistant, "A pilot.")];
        let turns = turns.map(|(role, text)| Turn { role, text: text.to_owned() });
        let request = Request {
            model: "summaries",
            instructions: "Sum up.",
            turns: &turns,
            said: Said::Before("The log:"),
            document: Document::Text("The tide is high."),
            max_output_tokens: 100,
            schema: None,
            cache_instructions: false,
            parameters: Parameters { effort: None, fields: None },
        };
        providers.get(&id).unwrap().complete(&request).await
    };
    let at = |query: &str| {
        let url = format!("{}{query}", simulator.base_url());
        Settings::new(Vendor::AZURE, url.parse().unwrap())
    };
    let key = || Secret::new("a-key").unwrap();
    assert!(!ask(at("").api_key(key())).await.unwrap().answer.is_empty());
    assert!(
        !ask(at("?api-version=2025-01-01-preview").api_key(key())).await.unwrap().answer.is_empty()
    );
    let command = KeySource::Command(["sh", "-c", "echo eyJ-token"].map(str::to_owned).to_vec());
    let token = command.read().unwrap().unwrap();
    let with_token = Settings { key_source: command, ..at("").api_key(token) };
    assert!(!ask(with_token).await.unwrap().answer.is_empty());
    assert_eq!(ask(at("")).await.unwrap_err().kind, Kind::Unauthorized);
    let error = ask(at("?api-version=x").api_key(key())).await.unwrap_err();
    assert!(error.message.contains("Resource not found"), "{error}");
    assert_eq!(simulator.account().model("summaries").requests, 3);
    // The v1 API is OpenAI's own: no version, and a key or an Entra token as the bearer token.
    let v1 = || {
        let url = format!("{}/openai/v1", simulator.base_url());
        Settings::new(Vendor::OPENAI, url.parse().unwrap())
    };
    assert!(!ask(v1().api_key(key())).await.unwrap().answer.is_empty());
    let command = KeySource::Command(["sh", "-c", "echo eyJ-token"].map(str::to_owned).to_vec());
    let token = command.read().unwrap().unwrap();
    let with_token = Settings { key_source: command, ..v1().api_key(token) };
    assert!(!ask(with_token).await.unwrap().answer.is_empty());
    assert_eq!(ask(v1()).await.unwrap_err().kind, Kind::Unauthorized);
    assert_eq!(simulator.account().model("summaries").requests, 5);
    simulator.shutdown().await;
}

/// Gemini and Claude at Vertex AI, with a token that a program prints.
#[tokio::test]
async fn vertex_serves_two_vendors_models() {
    let simulator = Simulator::start(Config::default()).await.unwrap();
    for (vendor, model) in
        [(Vendor::VERTEX, "gemini-2.5-flash"), (Vendor::VERTEX_ANTHROPIC, "claude-sonnet-5-5")]
    {
        let url = format!("{}/v1/projects/p/locations/europe-west1", simulator.base_url());
        let command =
            KeySource::Command(["sh", "-c", "echo ya29-token"].map(str::to_owned).to_vec());
        let token = command.read().unwrap().unwrap();
        let settings = Settings::new(vendor, url.parse().unwrap()).api_key(token);
        let settings = Settings { key_source: command, ..settings };
        let providers = Providers::new([("mine".to_owned(), settings)]).unwrap();
        let id: ModelId = format!("mine:{model}").parse().unwrap();
        let dialect = providers.dialect(&id).unwrap();
        let given = json!({"temperature": 1, "stop": "END"});
        let fields = dialect.check(model, None, given.as_object().unwrap(), Some(9_000));
        // Claude's newest models accept no sampling parameters.
        let fields = fields.unwrap_or_default();
        let schema = schema();
        let request = Request {
            model,
            instructions: "List its parts.",
            turns: &[],
            said: Said::Nothing,
            document: Document::Text("The tide is high. The ferry waits."),
            max_output_tokens: 9_000,
            schema: Some(&schema),
            cache_instructions: false,
            parameters: Parameters { effort: None, fields: Some(&fields) },
        };
        let answered = providers.get(&id).unwrap().complete(&request).await;
        let answer = answered.unwrap_or_else(|error| panic!("{vendor}: {error}")).answer;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert!(answer["title"].is_string(), "{vendor}: {answer}");
        assert_eq!(simulator.account().model(model).requests, 1, "{vendor}");
    }
    simulator.shutdown().await;
}
