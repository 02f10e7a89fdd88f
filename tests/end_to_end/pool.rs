//! A pool: several endpoints behind one name.

use serde_json::{Value, json};
use tidegate_simulator::{Config, Simulator};

use crate::fleet::{MODEL, fleet};

/// One region is dead, and another has half the limit: each document is answered, the dead one
/// closes alone, and both of the living answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_region_closes_alone_and_the_others_answer() {
    let second = Simulator::start(Config::default()).await.unwrap();
    // Nobody listens there any more.
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
    // By room two to one: far off it is none, or all.
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
    fleet.stop().await;
    second.shutdown().await;
}
