//! A pool: several endpoints behind one name.

use serde_json::{Value, json};
use tidegate_simulator::{Config, Simulator};

use crate::fleet::{MODEL, fleet};

/// One region is dead, and another has half the limit: each document is answered, only the dead region
/// closes, and both others answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_region_closes_alone_and_the_others_answer() {
    let second = Simulator::start(Config::default()).await.unwrap();
    // No server listens there any more.
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let settings = format!(
        "[models.\"{MODEL}\"]\nrpm = 6_000\n[[providers.anthropic.pool]]\nname = \"east\"\n\
         [[providers.anthropic.pool]]\nname = \"west\"\nrpm = 3_000\nbase-url = \"{}\"\n\
         [[providers.anthropic.pool]]\nname = \"dead\"\nbase-url = \"http://{dead}\"\n",
        second.base_url()
    );
    let Some(mut fleet) = fleet("", &settings).await else { return };
    fleet.documents(60, 200);
    fleet.worker();
    fleet.start("pool", &fleet.batch("out")).await;
    let result = fleet.result("pool").await.unwrap();
    assert_eq!(result["succeeded"], json!(60), "{result}");

    let models = fleet.results("out").into_values().map(|result| result["model"].clone());
    let models: Vec<String> = models.map(|model| model.as_str().unwrap().to_owned()).collect();
    let of = |member: &str| {
        let model = format!("anthropic/{member}:claude-sonnet-5");
        models.iter().filter(|it| **it == model).count()
    };
    assert_eq!(of("east") + of("west"), 60, "{models:?}");
    // Free capacity is two to one; a wrong choice would send all to one region.
    assert!(of("east") > 5 && of("west") > 5, "{} and {}", of("east"), of("west"));
    let answered = |simulator: &Simulator| simulator.account().model("claude-sonnet-5").requests;
    assert_eq!(answered(&fleet.simulator) + answered(&second), 60, "bought once");

    let quota = tokio::process::Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["quota", MODEL, "--json", "--config"])
        .arg(fleet.path("tidegate.toml"))
        .env("SIMULATED_KEY", "sk-simulated-secret")
        .output()
        .await
        .unwrap();
    let members: Value = serde_json::from_slice(&quota.stdout).unwrap();
    let members = members.as_array().unwrap().iter().map(|it| it["model"].as_str().unwrap());
    let expected = ["dead", "east", "west"].map(|name| format!("anthropic/{name}:claude-sonnet-5"));
    assert_eq!(members.collect::<Vec<_>>(), expected);

    // A message about an unknown model lists the pool's own name, and no member's.
    let mut unknown = fleet.batch("unknown");
    unknown["model"] = json!("anthropic:claude-none");
    fleet.start("unknown", &unknown).await;
    let failure = fleet.result("unknown").await.unwrap_err().to_string();
    assert!(failure.contains(&format!("configured: {MODEL}; choose one of them")), "{failure}");
    fleet.stop().await;
    second.shutdown().await;
}

/// One member must wait for an hour: only it closes, and the other answers all the rest. If the 429
/// closed the pool, the batch would last an hour.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_429_closes_one_member_alone() {
    let refuses = "latency = { base = \"300ms\" }\n[[faults]]\nkind = \"rate-limited\"\nrate = 1.0\nretry-after = \"3600s\"\n";
    let west = Simulator::start(Config::from_toml(refuses).unwrap()).await.unwrap();
    let settings = format!(
        "[gate]\npause-ttl = \"2h\"\nbase-backoff = \"200ms\"\nmax-backoff = \"2s\"\n[models.\"{MODEL}\"]\nrpm = 6_000\n\
         [[providers.anthropic.pool]]\nname = \"east\"\n\
         [[providers.anthropic.pool]]\nname = \"west\"\nbase-url = \"{}\"\n",
        west.base_url()
    );
    let Some(mut fleet) = fleet("latency = { base = \"300ms\" }\n", &settings).await else {
        return;
    };
    fleet.documents(60, 200);
    fleet.worker();
    fleet.start("pool", &fleet.batch("out")).await;
    let result = fleet.result("pool").await.unwrap();
    assert_eq!(result["succeeded"], json!(60), "{result}");
    let refused = result["rate_limited"].as_u64().unwrap();
    let west_account = west.account().model("claude-sonnet-5");
    assert_eq!((west_account.ok, west_account.requests), (0, refused), "{west_account:?}");
    // Only calls that were under way at the first refusal.
    assert!((1..60).contains(&refused), "{refused}");
    assert_eq!(fleet.simulator.account().model("claude-sonnet-5").ok, 60);
    let quota = tokio::process::Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["quota", MODEL, "--json", "--config"])
        .arg(fleet.path("tidegate.toml"))
        .env("SIMULATED_KEY", "sk-simulated-secret")
        .output()
        .await
        .unwrap();
    let members: Value = serde_json::from_slice(&quota.stdout).unwrap();
    let closed = |name: &str| {
        let model = format!("anthropic/{name}:claude-sonnet-5");
        let member = members.as_array().unwrap().iter().find(|it| it["model"] == *model).unwrap();
        member["paused_seconds"].as_f64().unwrap() > 600.0
    };
    assert!(closed("west") && !closed("east"), "{members}");
    fleet.stop().await;
    west.shutdown().await;
}
