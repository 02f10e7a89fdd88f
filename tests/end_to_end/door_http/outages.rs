//! A replica that is killed, and a Redis that is away.

use futures::future::join_all;
use tidegate_simulator::Simulator;

use super::*;

async fn simulator(rpm: u32) -> Simulator {
    let config = format!("mean-output-tokens = 5\n[models.m]\nrpm = {rpm}");
    Simulator::start(tidegate_simulator::Config::from_toml(&config).unwrap()).await.unwrap()
}

/// Asks as an SDK does: another replica answers its next try.
async fn asked(http: &reqwest::Client, urls: &[String], number: usize) -> u32 {
    for tries in 0..6 {
        let url = format!("{}/v1/chat/completions", urls[(number + tries) % urls.len()]);
        let body = chat(&format!("Question {number}"), json!({}));
        let request = http.post(url).bearer_auth(KEY).json(&body);
        let request = request.header("x-stainless-retry-count", tries.to_string());
        match request.send().await {
            Ok(got) if got.status() == 200 => return 1,
            Ok(got) => assert!([429, 503].contains(&got.status().as_u16()), "{}", got.status()),
            Err(_) => {}
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_replica_harms_no_other_and_its_callers_are_answered() {
    let simulator = simulator(6_000).await;
    let settings = provider("openai", &simulator.base_url(), "rpm = 300\nburst = \"1s\"");
    let Some(doors) = Doors::start(&settings).await else { return };
    let (mut killed, url) = doors.process(Command::new(PROGRAM).env(METRICS, "off")).await;
    let urls = [url, doors.url().to_owned()];
    let all = join_all((0..40).map(|number| asked(&doors.http, &urls, number)));
    let kill = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        killed.kill().await.unwrap();
    };
    let (answered, ()) = tokio::join!(all, kill);
    assert_eq!(answered.iter().sum::<u32>(), 40);
    assert_eq!(simulator.account().refused().requests, 0);
    doors.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_redis_is_away_calls_go_on_within_the_limit() {
    let Some(mut redis) = Redis::start() else { return };
    let simulator = simulator(600).await;
    let settings = provider("openai", &simulator.base_url(), "rpm = 600\nburst = \"1s\"");
    let doors = Doors::start_at(&redis.url, &settings).await;
    let urls = [doors.url().to_owned()];
    assert_eq!(asked(&doors.http, &urls, 0).await, 1);
    // By then, the door knows that it is the whole fleet.
    tokio::time::sleep(Duration::from_secs(6)).await;
    redis.kill();
    let began = std::time::Instant::now();
    let answered = join_all((1..=80).map(|number| asked(&doors.http, &urls, number))).await;
    let took = began.elapsed();
    assert_eq!(answered.iter().sum::<u32>(), 80);
    assert_eq!(simulator.account().refused().requests, 0, "no 429 at the provider");
    assert!(took < Duration::from_secs(10), "80 % of ten calls a second: {took:?}");
    doors.stop().await;
}
