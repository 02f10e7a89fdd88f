//! The vendors' batch APIs, against a server whose replies each case chooses.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, unreachable_pub, reason = "a test")]

mod common;

use common::{Act, REQUEST, Server, providers, response};
use serde_json::{Value, json};
use tidegate_providers::{Api, BatchApi, Fields, Kind, Operation, Providers, Vendor, batch::State};

const ANTHROPIC: (Vendor, Api) = (Vendor::ANTHROPIC, Api::ChatCompletions);
const CHAT: (Vendor, Api) = (Vendor::OPENAI, Api::ChatCompletions);
const RESPONSES: (Vendor, Api) = (Vendor::OPENAI, Api::Responses);
const GEMINI: (Vendor, Api) = (Vendor::GEMINI, Api::ChatCompletions);

fn batches(providers: &Providers) -> &dyn BatchApi {
    providers.get(&"mine:m".parse().unwrap()).unwrap().batches().unwrap()
}

/// A server that answers everything with this body, and a client for it.
async fn stage(api: (Vendor, Api), body: &Value) -> (Server, Providers) {
    let server = Server::start(Act::Send(response("200 OK", "", &body.to_string()))).await;
    let providers = providers(api, &server.base_url(api.0));
    (server, providers)
}

#[tokio::test]
async fn the_requests_that_are_sent() {
    for (api, expected) in [
        (
            ANTHROPIC,
            vec![vec![
                "POST /v1/messages/batches HTTP/1.1",
                "x-api-key: ",
                "{\"requests\":[{\"custom_id\":\"k-0\",\"params\":{",
            ]],
        ),
        (
            CHAT,
            vec![
                vec![
                    "POST /v1/files HTTP/1.1",
                    "name=\"purpose\"\r\n\r\nbatch",
                    "\"url\":\"/v1/chat/completions\",\"body\":{",
                ],
                vec![
                    "POST /v1/batches HTTP/1.1",
                    "\"input_file_id\":\"x-1\"",
                    "\"completion_window\":\"24h\"",
                    "{\"tidegate\":\"note\"}",
                ],
            ],
        ),
        (
            RESPONSES,
            vec![
                vec![
                    "\"custom_id\":\"k-1\",\"method\":\"POST\",\"url\":\"/v1/responses\",\"body\":{",
                    "authorization: Bearer ",
                ],
                vec!["\"endpoint\":\"/v1/responses\""],
            ],
        ),
    ] {
        let (server, providers) = stage(api, &json!({"id": "x-1"})).await;
        let batches = batches(&providers);
        let lines: Vec<Vec<u8>> =
            (0..2).map(|n| batches.line(&format!("k-{n}"), &REQUEST).unwrap()).collect();
        for line in &lines {
            serde_json::from_slice::<Value>(line).unwrap();
        }
        assert_eq!(batches.submit("note", None, &lines).await.unwrap(), "x-1");
        let requests = server.requests.lock().unwrap().clone();
        assert_eq!(requests.len(), expected.len(), "{api:?}");
        for (request, parts) in requests.iter().zip(expected) {
            for part in parts {
                assert!(request.contains(part), "{part} is not in {request}");
            }
        }
    }
}

/// A body in the vendor's own form stays as it was written, but for the model's name. Its batch
/// goes to its operation's endpoint, whichever API the vendor is otherwise called with. The answers
/// stay unchanged too.
#[tokio::test]
async fn a_body_in_the_vendors_own_form_stays_unchanged() {
    let body = Fields::read(br#"{"z": 1.50, "model":"theirs","input":["a"]}"#).unwrap();
    let sent = r#"{"z":1.50,"model":"m","input":["a"]}"#;
    let vectors =
        json!({"data": [{"embedding": [1.0]}], "usage": {"prompt_tokens": 3, "total_tokens": 3}});
    let refused = json!({"content": [], "stop_reason": "refusal", "usage": {"input_tokens": 3, "output_tokens": 1}});
    let described = json!({"id": "x-1", "output_file_id": "f", "custom_id": "k-0"});
    let openai = json!({"response": {"status_code": 200, "body": vectors}});
    let anthropic = json!({"result": {"type": "succeeded", "message": refused}});
    for (api, operation, wraps, line, answer) in [
        (CHAT, Operation::Embeddings, r#""url":"/v1/embeddings","body":"#, openai, vectors),
        (ANTHROPIC, Operation::Messages, r#""params":"#, anthropic, refused),
    ] {
        let mut described = described.clone();
        described.as_object_mut().unwrap().extend(line.as_object().unwrap().clone());
        let (server, providers) = stage(api, &described).await;
        let batches = batches(&providers);
        let line = batches.line_as_it_is("k-0", operation, "m", &body).unwrap();
        let text = std::str::from_utf8(&line).unwrap();
        assert!(text.contains(&format!("{wraps}{sent}")), "{text}");
        batches.submit("note", Some(operation), &[line]).await.unwrap();
        let requests = server.requests.lock().unwrap().clone();
        let endpoint = format!("\"endpoint\":\"{operation}\"");
        assert!(api == ANTHROPIC || requests[1].contains(&endpoint), "{}", requests[1]);
        let answered = batches.answers("b").await.unwrap().next().await.unwrap().unwrap();
        let whole = answered.as_it_is().unwrap().unwrap();
        assert_eq!((whole.body, whole.facts.usage.unwrap().input()), (answer, 3), "{api:?}");
    }
}

/// The file takes two requests: the second goes where the reply to the first says, but to no other
/// host. Then the batch is created.
#[tokio::test]
async fn geminis_file_and_batch() {
    fn answer(request: &str) -> String {
        if request.contains("x-goog-upload-command: start") {
            let place =
                "x-goog-upload-url: https://elsewhere.example/upload/v1beta/files?upload_id=u\r\n";
            return response("200 OK", place, "");
        }
        if request.contains("upload, finalize") {
            return response("200 OK", "", &json!({"file": {"name": "files/f"}}).to_string());
        }
        response("200 OK", "", &json!({"name": "batches/x-1", "metadata": {}}).to_string())
    }
    let server = Server::start(Act::Answer(answer)).await;
    let providers = providers(GEMINI, &server.base_url(GEMINI.0));
    let batches = batches(&providers);
    let lines: Vec<Vec<u8>> =
        (0..2).map(|n| batches.line(&format!("k-{n}"), &REQUEST).unwrap()).collect();
    let line: Value = serde_json::from_slice(&lines[1]).unwrap();
    assert_eq!(
        (&line["key"], &line["request"]["model"]),
        (&json!("k-1"), &json!(format!("models/{}", REQUEST.model)))
    );
    assert!(line["request"]["contents"].is_array(), "{line}");
    assert_eq!(batches.submit("note", None, &lines).await.unwrap(), "x-1");
    let requests = server.requests.lock().unwrap().clone();
    let method = format!("POST /v1beta/models/{}:batchGenerateContent ", REQUEST.model);
    let expected = [
        vec![
            "POST /upload/v1beta/files ",
            "x-goog-upload-protocol: resumable",
            "{\"file\":{\"displayName\":\"note\"}}",
        ],
        vec![
            "POST /upload/v1beta/files?upload_id=u ",
            "x-goog-upload-offset: 0",
            "\"key\":\"k-0\"",
            "x-goog-api-key: ",
        ],
        vec![
            method.as_str(),
            "\"displayName\":\"note\"",
            "\"inputConfig\":{\"fileName\":\"files/f\"}",
        ],
    ];
    assert_eq!(requests.len(), expected.len());
    for (request, parts) in requests.iter().zip(expected) {
        for part in parts {
            assert!(request.contains(part), "{part} is not in {request}");
        }
    }
}

/// Nothing is sent twice, and nothing more after a refusal.
#[tokio::test]
async fn each_fault_is_one_request() {
    for api in [ANTHROPIC, CHAT, RESPONSES, GEMINI] {
        let retry = "retry-after: 1\r\nx-should-retry: true\r\n";
        for (act, kind) in [
            (Act::Send(response("429 Too Many Requests", retry, "{}")), Kind::RateLimited),
            (Act::Send(response("503 Service Unavailable", retry, "{}")), Kind::Overloaded),
            (
                Act::Send(response(
                    "404 Not Found",
                    "",
                    "{\"error\":{\"message\":\"Mrs Example\"}}",
                )),
                Kind::InvalidRequest,
            ),
            (Act::Send(response("200 OK", "", "<html>")), Kind::Transient),
            (Act::SendAndDrop(String::new()), Kind::Timeout),
        ] {
            let server = Server::start(act.clone()).await;
            let providers = providers(api, &server.base_url(api.0));
            let line = br#"{"request":{"model":"models/m"}}"#.to_vec();
            let error = batches(&providers).submit("note", None, &[line]).await.unwrap_err();
            assert_eq!((error.kind, server.counts()), (kind, (1, 1)), "{api:?} {act:?}: {error}");
            assert!(!error.message.contains("Mrs Example"), "a document is quoted: {error}");
            assert_eq!(
                batches(&providers).state("x").await.unwrap_err().kind,
                kind,
                "{api:?} {act:?}"
            );
        }
    }
}

#[tokio::test]
async fn how_far_a_batch_is() {
    let failed = |code: &str| json!({"status": "failed", "errors": {"data": [{"code": code, "message": "Bad sk-secret-0123456789."}]}});
    let gone = |code: u64| json!({"metadata": {"state": "BATCH_STATE_FAILED"}, "error": {"code": code, "message": "Mrs Example"}});
    for (api, body, expected) in [
        (ANTHROPIC, json!({"processing_status": "in_progress"}), State::Running),
        (ANTHROPIC, json!({"processing_status": "canceling"}), State::Running),
        (ANTHROPIC, json!({"processing_status": "ended"}), State::Ended),
        (GEMINI, json!({"metadata": {"state": "BATCH_STATE_PENDING"}}), State::Running),
        (GEMINI, json!({"metadata": {"state": "JOB_STATE_SUCCEEDED"}}), State::Ended),
        (GEMINI, json!({"metadata": {"state": "BATCH_STATE_EXPIRED"}}), State::Ended),
        (GEMINI, gone(8), State::Full),
        (GEMINI, gone(3), State::Failed("INVALID_ARGUMENT".to_owned())),
        (CHAT, json!({"status": "validating"}), State::Running),
        (CHAT, json!({"status": "finalizing"}), State::Running),
        (CHAT, json!({"status": "completed"}), State::Ended),
        (CHAT, json!({"status": "expired"}), State::Ended),
        (CHAT, json!({"status": "cancelled"}), State::Ended),
        (RESPONSES, failed("token_limit_exceeded"), State::Full),
        (CHAT, failed("invalid_json_line"), State::Failed("invalid_json_line".to_owned())),
        (CHAT, json!({"status": "failed"}), State::Failed("no reason was given".to_owned())),
    ] {
        let (_server, providers) = stage(api, &body).await;
        assert_eq!(batches(&providers).state("x").await.unwrap(), expected, "{api:?} {body}");
    }
    let (_server, providers) = stage(CHAT, &json!({"object": "model"})).await;
    let error = batches(&providers).state("x").await.unwrap_err();
    assert!(error.kind == Kind::Transient && error.message.contains("no batch"), "{error}");
}

/// The server sends the same reply for the batch and for its answers, so that one line holds both.
#[tokio::test]
async fn answers_are_those_of_single_calls() {
    let message = json!({"content": [{"type": "text", "text": "Yes"}], "stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 1}});
    let refused = json!({"content": [], "stop_reason": "refusal", "usage": {"input_tokens": 3, "output_tokens": 1}});
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Later."}});
    let bound = json!({"type": "error", "error": {"type": "invalid_request_error",
        "message": "max_tokens: 204096 > 64000, which is the maximum allowed number of output tokens"}});
    let chat = json!({"choices": [{"message": {"content": "Yes"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}});
    let anthropic = |result: Value| json!({"id": "b", "custom_id": "k-7", "result": result});
    let openai = |response: Value| json!({"output_file_id": "f", "custom_id": "k-7", "response": response, "error": null});
    let candidates =
        json!({"candidates": [{"content": {"parts": [{"text": "Yes"}]}, "finishReason": "STOP"}]});
    let gemini = |more: Value| {
        let mut line = json!({"metadata": {"output": {"responsesFile": "files/f"}}, "key": "k-7"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    };
    let status = |code: u64| gemini(json!({"error": {"code": code, "message": "No."}}));
    for (api, body, expected) in [
        (GEMINI, gemini(json!({"response": candidates})), Some(Ok("Yes"))),
        (GEMINI, status(13), Some(Err(Kind::Transient))),
        (GEMINI, status(8), Some(Err(Kind::RateLimited))),
        (GEMINI, gemini(json!({})), None),
        (ANTHROPIC, anthropic(json!({"type": "succeeded", "message": message})), Some(Ok("Yes"))),
        (
            ANTHROPIC,
            anthropic(json!({"type": "succeeded", "message": refused})),
            Some(Err(Kind::ContentRefused)),
        ),
        (
            ANTHROPIC,
            anthropic(json!({"type": "errored", "error": overloaded})),
            Some(Err(Kind::Overloaded)),
        ),
        (
            ANTHROPIC,
            anthropic(json!({"type": "errored", "error": bound})),
            Some(Err(Kind::OutputCapTooLarge)),
        ),
        (ANTHROPIC, anthropic(json!({"type": "expired"})), None),
        (CHAT, openai(json!({"status_code": 200, "body": chat})), Some(Ok("Yes"))),
        (
            CHAT,
            openai(json!({"status_code": 500, "body": {"error": {"message": "No."}}})),
            Some(Err(Kind::Transient)),
        ),
        (CHAT, openai(Value::Null), None),
    ] {
        let (_server, providers) = stage(api, &body).await;
        let mut answers = batches(&providers).answers("b").await.unwrap();
        let answer = answers.next().await.unwrap().unwrap_or_else(|| panic!("{body}"));
        let result = answer.completion();
        let result = result.as_ref().map(|result| {
            result.as_ref().map(|done| done.answer.as_str()).map_err(|error| error.kind)
        });
        assert_eq!((answer.custom_id.as_str(), result), ("k-7", expected), "{api:?} {body}");
        assert!(answers.next().await.unwrap().is_none());
    }
    let (_server, providers) =
        stage(CHAT, &json!({"output_file_id": null, "error_file_id": null})).await;
    assert!(
        batches(&providers).answers("b").await.unwrap().next().await.unwrap().is_none(),
        "a batch without files"
    );
}

/// The file of requests is deleted at OpenAI; Anthropic has none.
#[tokio::test]
async fn submitted_requests_are_deleted() {
    for (api, asked) in [
        (CHAT, vec!["GET /v1/batches/b ", "DELETE /v1/files/f "]),
        (GEMINI, vec!["GET /v1beta/batches/b ", "DELETE /v1beta/files/f "]),
        (ANTHROPIC, vec!["GET /v1/messages/batches/b "]),
    ] {
        let stored =
            json!({"input_file_id": "f", "metadata": {"inputConfig": {"fileName": "files/f"}}});
        let (server, providers) = stage(api, &stored).await;
        batches(&providers).forget("b").await.unwrap();
        let requests = server.requests.lock().unwrap().clone();
        assert!(
            requests.len() == asked.len()
                && requests.iter().zip(asked).all(|(request, asked)| request.starts_with(asked))
        );
    }
}

#[tokio::test]
async fn a_batch_is_found_by_its_note_or_its_size_and_time() {
    let since = "2026-11-21T08:00:00Z".parse().unwrap();
    let note = |id: &str, note: &str| json!({"id": id, "metadata": {"tidegate": note}});
    let (_server, providers) = stage(
        CHAT,
        &json!({"data": [{"id": "0", "metadata": null}, note("1", "a"), note("2", "b")]}),
    )
    .await;
    assert_eq!(batches(&providers).find("b", 9, since).await.unwrap(), ["2"]);
    assert!(batches(&providers).find("c", 9, since).await.unwrap().is_empty());
    let named = |id: &str, name: &str, at: &str| json!({"name": format!("batches/{id}"), "metadata": {"displayName": name, "createTime": at}});
    let list = json!({"operations": [named("1", "b", "2026-11-21T07:00:00Z"), named("2", "a", "2026-11-21T08:00:00Z"), named("3", "b", "2026-11-21T08:00:00Z")], "nextPageToken": "t"});
    let (server, providers) = stage(GEMINI, &list).await;
    assert_eq!(batches(&providers).find("b", 9, since).await.unwrap(), ["3", "3"], "two pages");
    assert_eq!(server.counts().1, 2, "the same token again is the end");
    let sized = |id: &str, count: u64, at: &str| json!({"id": id, "created_at": at, "request_counts": {"processing": count - 1, "expired": 1}});
    let list = json!({"data": [
        sized("1", 9, "2026-11-21T07:58:59Z"), sized("2", 9, "2026-11-21T08:00:01.5Z"), sized("3", 5, "2026-11-21T08:00:02Z"),
        sized("4", 5, "2026-11-21T08:00:03Z"),
    ]});
    let (_server, providers) = stage(ANTHROPIC, &list).await;
    assert_eq!(batches(&providers).find("any", 9, since).await.unwrap(), ["2"]);
    assert_eq!(batches(&providers).find("any", 5, since).await.unwrap(), ["3", "4"]);
}

/// Two hundred and fifty batches were created after it, in three pages, and ten thousand before.
#[tokio::test]
async fn a_batch_is_found_behind_hundreds_of_newer_ones() {
    fn page(request: &str) -> String {
        let path = request.split(' ').nth(1).unwrap();
        let after = path.split(['?', '&']).find_map(|pair| {
            pair.strip_prefix("after=").or_else(|| pair.strip_prefix("after_id="))
        });
        let first: u64 = after.map_or(0, |last| last.parse::<u64>().unwrap() + 1);
        // One per second, the newest at 10:00:00.
        let newest = chrono::DateTime::from_timestamp(1_795_341_600, 0).unwrap();
        let batches = (first..first + 100).map(|number| {
            let created = newest - chrono::TimeDelta::seconds(number.try_into().unwrap());
            let requests = if number == 250 { 7 } else { 1 };
            let mut batch = json!({
                "id": number.to_string(), "metadata": {"tidegate": format!("note-{number}")},
                "request_counts": {"processing": requests}, "created_at": created.timestamp(),
            });
            if path.starts_with("/v1/messages") {
                batch["created_at"] = json!(created.to_rfc3339());
            }
            batch
        });
        let list = json!({"data": batches.collect::<Vec<_>>(), "has_more": true});
        response("200 OK", "", &list.to_string())
    }
    let since = chrono::DateTime::from_timestamp(1_795_341_600 - 255, 0).unwrap();
    for api in [CHAT, ANTHROPIC] {
        let server = Server::start(Act::Answer(page)).await;
        let providers = providers(api, &server.base_url(api.0));
        let found = batches(&providers).find("note-250", 7, since).await.unwrap();
        assert_eq!((found, server.counts().1), (vec!["250".to_owned()], 4), "{api:?}");
    }
}
