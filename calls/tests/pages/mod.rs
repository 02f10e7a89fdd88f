//! `docs/quick-starts/rust.md`: its blocks stand in [`one_call`] and [`any_client`].

use std::time::Duration;

use serde_json::Value;
use tidegate_calls::layer::BoxError;
use tidegate_quota::Quota;
use tidegate_testkit::Redis;
use tidegate_types::{ModelId, Usage};
use tower_service::Service as _;

use super::stage;

type MyError = std::convert::Infallible;

async fn ask() -> Result<(String, Usage), MyError> {
    Ok(("4".to_owned(), Usage { uncached_input: 900, output: 12, ..Usage::default() }))
}

async fn one_call(redis: &str) -> Result<(Quota, String), Box<dyn std::error::Error>> {
    use std::sync::Arc;
    use tidegate_providers::Vendor;
    use tidegate_quota::{Dimension, Lanes, Limits, ModelQuota, Options, Quota, Request};

    let limits =
        Limits::default().with(Dimension::Requests, 500).with(Dimension::Combined, 200_000);
    let model = ModelQuota::new(
        "openai:gpt-4.1-mini".parse()?,
        limits,
        Vendor::OPENAI.charge(),
        Arc::new(Lanes::single()),
    )?;
    let quota = Quota::with_redis(redis, [model], Options::default())?;

    let answer = quota
        .run(Request::once("openai:gpt-4.1-mini".parse()?).tokens(1_000, 256), async |call| {
            let (answer, usage) = ask().await?;
            call.usage(&usage);
            Ok::<_, MyError>(answer)
        })
        .await?;
    Ok((quota, answer))
}

async fn any_client(quota: Quota, call: reqwest::Request) -> Result<Value, BoxError> {
    use tidegate_calls::Limit;
    use tower_layer::Layer as _;

    let http = Limit::new(quota, "openai").layer(reqwest::Client::new());
    Ok(http.clone().call(call).await?.json().await?)
}

#[tokio::test]
async fn what_the_page_shows_runs() {
    let Some(redis) = Redis::start() else { return };
    let (quota, answer) = one_call(&redis.url).await.unwrap();
    assert_eq!(answer, "4");
    let model: ModelId = "openai:gpt-4.1-mini".parse().unwrap();
    let used = quota.inspect(&model).await.unwrap().used();
    assert_eq!([used.requests, used.combined], [1, 912]);

    let stage = stage("mean-output-tokens = 20\noutput-spread = 0.0", 1).await;
    let question = stage.question(0, "gpt-4.1-mini");
    let answer = any_client(quota.clone(), question).await.unwrap();
    assert!(answer["usage"]["total_tokens"].as_u64().unwrap() < 50, "{answer}");
    let settled = async {
        // OpenAI counts the larger of a call's use and its bound, which is 50.
        while quota.inspect(&model).await.unwrap().used().combined != 962 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), settled).await.unwrap();
}

#[test]
fn the_page_shows_what_runs() {
    let bare = |code: &str| code.split_whitespace().collect::<String>().replace(",)", ")");
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/quick-starts/rust.md");
    let page = std::fs::read_to_string(page).unwrap().replace("\"redis://127.0.0.1\"", "redis");
    let here = bare(include_str!("mod.rs"));
    let blocks: Vec<_> = page.split("```rust\n").skip(1).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let block = block.split("```").next().unwrap();
        assert!(here.contains(&bare(block)), "nothing runs this:\n{block}");
    }
}
