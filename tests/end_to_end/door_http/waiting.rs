//! A near turn waits in place; a far turn is returned and kept.

use futures::future::join_all;
use tidegate_simulator::Simulator;

use super::*;

/// One call a second after the first, at a simulator.
async fn stage(rpm: u32) -> Option<(Simulator, Doors)> {
    let limits = format!("rpm = {rpm}\nburst = \"1s\"");
    let config = "mean-output-tokens = 5\noutput-spread = 0.0\n[models.m]\nrpm = 6000";
    let config = tidegate_simulator::Config::from_toml(config).unwrap();
    let simulator = Simulator::start(config).await.unwrap();
    let settings = provider("openai", &simulator.base_url(), &limits);
    Some((simulator, Doors::start(&settings).await?))
}

fn header(got: &reqwest::Response, name: &str) -> Option<String> {
    Some(got.headers().get(name)?.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_far_turn_is_told_exactly_and_a_ticket_redeems_it() {
    let Some((simulator, doors)) = stage(60).await else { return };
    let ask = async |number: u32, headers: &[(&str, String)]| {
        let request =
            doors.post("/v1/chat/completions", &chat(&format!("Question {number}"), json!({})));
        let request = headers.iter().fold(request, |it, (name, value)| it.header(*name, value));
        request.send().await.unwrap()
    };
    let now = [("x-tidegate-max-wait", "0".to_owned())];
    let mut far = None;
    for number in 0..60 {
        let got = ask(number, &now).await;
        if got.status() == 429 {
            far = Some((number, got));
            break;
        }
    }
    let (number, got) = far.unwrap();
    let turn: f64 = header(&got, "x-tidegate-turn").unwrap().parse().unwrap();
    let after: u64 = header(&got, "retry-after").unwrap().parse().unwrap();
    assert!(turn > 0.0 && turn <= after as f64 && after <= 55, "{turn} {after}");
    assert_eq!(header(&got, "x-should-retry").as_deref(), Some("true"));
    let ticket = header(&got, "x-tidegate-ticket").unwrap();
    let said: Value = got.json().await.unwrap();
    assert_eq!(said["error"]["code"], "rate_limit_exceeded", "{said}");
    // Later calls queue behind.
    let others = join_all((100..103).map(|number| ask(number, &now))).await;
    assert!(others.iter().all(|got| got.status() == 429));
    tokio::time::sleep(Duration::from_secs_f64(turn)).await;
    let forged = ticket.replacen('.', "0.", 1);
    let got = ask(200, &[("x-tidegate-ticket", forged), now[0].clone()]).await;
    assert_eq!(got.status(), 429, "what was not signed here is nobody's turn");
    let got =
        ask(number, &[("x-tidegate-ticket", ticket), ("x-tidegate-max-wait", "1".to_owned())])
            .await;
    assert_eq!(got.status(), 200);
    assert_eq!(simulator.account().refused().requests, 0);
    doors.stop().await;
}

/// Its turn is released at once: the next call does not wait for it.
#[tokio::test]
async fn a_client_that_hangs_up_while_it_waits_leaves_nothing() {
    let Some((simulator, doors)) = stage(60).await else { return };
    let ask = |number: u32| {
        let body = chat(&format!("Question {number}"), json!({}));
        doors.post("/v1/chat/completions", &body).header("x-tidegate-max-wait", "60").send()
    };
    let waiting = join_all(
        (0..40).map(|number| tokio::time::timeout(Duration::from_millis(500), ask(number))),
    );
    let given_up = waiting.await.iter().filter(|it| it.is_err()).count();
    assert!(given_up > 30, "{given_up}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let began = std::time::Instant::now();
    assert_eq!(ask(99).await.unwrap().status(), 200);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    let before = simulator.account().model("m").requests;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(simulator.account().model("m").requests, before, "nobody is asked for them");
    doors.stop().await;
}

/// 100 equal bodies of clients without tickets: over two doors, each is answered once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_equal_bodies_are_answered_once_each() {
    let Some((simulator, mut doors)) = stage(600).await else { return };
    doors.one_more().await;
    let urls: Vec<String> = doors.running.iter().map(|(url, ..)| url.clone()).collect();
    let (http, body) = (&doors.http, chat("The same", json!({})));
    // Repeats as an SDK does, as often as needed, and when it is told to.
    let client = |number: usize| {
        let (urls, body) = (&urls, &body);
        async move {
            let mut tries = 0_usize;
            loop {
                let url = format!("{}/v1/chat/completions", urls[(number + tries) % 2]);
                let request = http.post(url).bearer_auth(KEY).json(body);
                let count = tries.min(1).to_string();
                let got = request.header("x-stainless-retry-count", count);
                let got = got.header("x-tidegate-max-wait", "0").send().await.unwrap();
                if got.status() == 200 {
                    return tries;
                }
                assert_eq!(got.status(), 429);
                tries += 1;
                let turn: f64 = header(&got, "x-tidegate-turn").unwrap().parse().unwrap();
                tokio::time::sleep(Duration::from_secs_f64(turn)).await;
            }
        }
    };
    let began = std::time::Instant::now();
    let tries = join_all((0..100).map(client)).await;
    let took = began.elapsed();
    assert!(tries.iter().any(|tries| *tries > 0), "some had to wait");
    let account = simulator.account().model("m");
    assert_eq!((account.ok, account.refused.requests), (100, 0));
    assert!(took < Duration::from_secs(20), "{took:?}: 600 a minute are possible");
    doors.stop().await;
}
