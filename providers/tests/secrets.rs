//! Formats everything that can be formatted, and looks for the key.
#![allow(clippy::unwrap_used, missing_docs, unreachable_pub, reason = "a test")]

mod common;

use std::{error::Error as _, fmt::Debug};

use common::{Act, KEY, Server, answer, call, providers, response, settings};
use tidegate_providers::{Document, Providers, Request, Secret, Vendor};

fn assert_silent(texts: &[String]) {
    for text in texts {
        assert!(
            !text.contains(KEY) && !text.contains("K3Y") && !text.contains("pass-in-url"),
            "{text}"
        );
    }
}

fn formats(value: &impl Debug) -> [String; 2] {
    [format!("{value:?}"), format!("{value:#?}")]
}

#[tokio::test]
async fn nothing_prints_the_key() {
    assert_silent(&formats(&Secret::new(KEY).unwrap()));
    for api in common::APIS {
        let keyed = format!("https://user:pass-in-url@localhost/v1?key={KEY}");
        assert_silent(&formats(&settings(api, &keyed)));
        let error = Providers::new([("mine".to_owned(), settings(api, &keyed))]).unwrap_err();
        assert_silent(&formats(&error));
        assert_silent(&[error.to_string()]);

        // The provider itself may quote the key, and the URL of a proxy may hold it.
        let echo = format!(
            "{{\"error\":{{\"type\":\"authentication_error\",\"message\":\"bad key {KEY}\",\"code\":\"{KEY}\"}}}}"
        );
        let header = format!("request-id: {KEY}\r\nx-request-id: {KEY}\r\n");
        for act in [
            Act::Send(answer(api)),
            Act::Send(response("401 Unauthorized", "", &echo)),
            Act::Send(response("401 Unauthorized", "", &format!("Bearer {KEY}"))),
            Act::Send(response("401 Unauthorized", &header, "")),
            Act::SendAndDrop(String::new()),
        ] {
            let server = Server::start(act).await;
            let with_query = providers(api, &format!("{}?key={KEY}", server.base_url(api.0)));
            assert_silent(&formats(&with_query));
            match call(&with_query).await {
                Ok(completion) => assert_silent(&formats(&completion)),
                Err(error) => {
                    assert!(error.source().is_none(), "a source could say more than the message");
                    assert_silent(&formats(&error));
                    assert_silent(&[error.to_string()]);
                }
            }
        }
    }
}

#[test]
fn prompts_and_documents_are_not_printed() {
    let request = Request {
        instructions: "Hidden one",
        document: Document::Text("Hidden two"),
        ..common::REQUEST
    };
    assert!(!format!("{request:?}").contains("Hidden"));
}

#[tokio::test]
async fn a_document_that_the_provider_quotes_is_not_passed_on() {
    let body =
        r#"{"detail":[{"msg":"bad input: The patient's name is Jane Example, born in May."}]}"#;
    let server = Server::start(Act::Send(response("422 Unprocessable", "", body))).await;
    let providers = providers(common::APIS[1], &server.base_url(Vendor::OPENAI));
    let document = "The patient's name is Jane Example, born in May.";
    let request = Request { document: Document::Text(document), ..common::REQUEST };
    let error =
        providers.get(&"mine:m".parse().unwrap()).unwrap().complete(&request).await.unwrap_err();
    assert!(!error.message.contains("Jane") && error.message.contains("422"), "{error}");
}

#[tokio::test]
async fn headers_of_the_configuration_are_sent_once_and_shown_to_nobody() {
    for api in common::APIS {
        let server = Server::start(Act::Send(common::answer(api))).await;
        let name = http::HeaderName::from_static("x-gateway");
        let mut settings = common::settings(api, &server.base_url(api.0));
        settings.headers.insert(name, http::HeaderValue::from_static("gateway-secret"));
        assert!(!format!("{settings:?}").contains("gateway-secret"));
        let providers = Providers::new([("mine".to_owned(), settings)]).unwrap();
        let answered = common::call(&providers).await.unwrap();
        assert!(!format!("{providers:?}{answered:?}").contains("gateway-secret"));
        let requests = server.requests.lock().unwrap().clone();
        let sent: Vec<_> = requests.iter().flat_map(|request| request.lines()).collect();
        let lines = sent.iter().filter(|line| line.to_lowercase().starts_with("x-gateway:"));
        assert_eq!(lines.count(), 1, "{api:?}: {sent:?}");
        assert!(sent.iter().any(|line| line.ends_with("gateway-secret")), "{api:?}");
    }
}
