//! The page in a real browser: headless Chromium, driven by chromedriver, over a running fleet.
//!
//! Needs `chromedriver` (Debian: chromium and chromium-driver) on the `PATH`, or named in
//! `TIDEGATE_CHROMEDRIVER`; without it, the test prints SKIPPED. Pictures are written to
//! `target/pictures/`; with `TIDEGATE_WRITE_DOCS=1`, to `docs/pictures/`.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::fleet::{Fleet, MODEL, fleet};

const TOKEN: &str = "tide-of-the-browser";

/// A session of Chromium. Dropping it ends the driver and the browser.
struct Browser {
    session: String,
    http: reqwest::Client,
    _driver: Child,
}

fn driver() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("TIDEGATE_CHROMEDRIVER") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("chromedriver")).find(|it| it.is_file())
}

impl Browser {
    /// `None`, with a message, if there is no Chromium.
    async fn start() -> Option<Self> {
        let Some(program) = driver() else {
            eprintln!(
                "SKIPPED: no chromedriver on the PATH (Debian: apt-get install chromium chromium-driver); the page was not tried in a browser"
            );
            return None;
        };
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let driver = Command::new(program)
            .arg(format!("--port={port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let url = format!("http://127.0.0.1:{port}/session");
        // Containers that run as root offer no sandbox.
        let arguments =
            ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let began = Instant::now();
        let answer: Value = loop {
            match http.post(&url).json(&wanted).send().await {
                Ok(answer) => break answer.json().await.unwrap(),
                Err(error) => assert!(began.elapsed() < Duration::from_secs(60), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        let id = answer["value"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}"));
        Some(Self { session: format!("{url}/{id}"), http, _driver: driver })
    }

    async fn post(&self, what: &str, body: Value) -> Value {
        let answer = self.http.post(format!("{}/{what}", self.session)).json(&body).send();
        let answer: Value = answer.await.unwrap().json().await.unwrap();
        assert!(answer["value"]["error"].is_null(), "{what} {body}: {answer}");
        answer["value"].clone()
    }

    async fn open(&self, url: &str) {
        self.post("url", json!({ "url": url })).await;
    }

    async fn run(&self, script: &str) -> Value {
        self.post("execute/sync", json!({ "script": script, "args": [] })).await
    }

    async fn until(&self, what: &str, script: &str) -> Value {
        let began = Instant::now();
        loop {
            let value = self.run(script).await;
            if value != Value::Null && value != false {
                return value;
            }
            if began.elapsed() > Duration::from_secs(90) {
                let text = self.run("return document.body.innerText").await;
                panic!("never: {what}; the page says {text}");
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn command(&self, command: &str, parameters: Value) -> Value {
        self.post("goog/cdp/execute", json!({ "cmd": command, "params": parameters })).await
    }

    /// Takes a picture of the whole page.
    async fn picture(&self, name: &str, width: u32, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.command("Emulation.setEmulatedMedia", json!({ "features": features })).await;
        let metrics = |height: u64| json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.command("Emulation.setDeviceMetricsOverride", metrics(600)).await;
        let wide = self.run("return document.documentElement.scrollWidth").await;
        assert!(wide.as_u64().unwrap() <= width.into(), "{name}: it is {wide} wide, not {width}");
        let high = self.run("return document.documentElement.scrollHeight").await;
        self.command("Emulation.setDeviceMetricsOverride", metrics(high.as_u64().unwrap())).await;
        let shot = self.command("Page.captureScreenshot", json!({ "format": "png" })).await;
        let bytes = STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        let folder = pictures();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), &bytes).unwrap();
        println!("{name}.png: {} KB", bytes.len() / 1_000);
    }

    /// The faults in the browser's console.
    async fn faults(&self) -> Vec<Value> {
        let log = self.post("se/log", json!({ "type": "browser" })).await;
        let is_fault = |entry: &&Value| entry["level"] == "SEVERE" || entry["level"] == "WARNING";
        log.as_array().unwrap().iter().filter(is_fault).cloned().collect()
    }

    /// Presses a button by its label, fills in the dialog, and submits it.
    async fn act(&self, label: &str, fields: &[(&str, &str)]) {
        self.until(
            label,
            &format!("return !!document.querySelector('button[aria-label=\"{label}\"]')"),
        )
        .await;
        let mut script =
            format!("document.querySelector('button[aria-label=\"{label}\"]').click();");
        for (name, value) in fields {
            script += &format!("document.querySelector('#ask [name={name}]').value = '{value}';");
        }
        self.run(&(script + "document.querySelector('#ask [value=do]').click();")).await;
    }
}

fn pictures() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("TIDEGATE_WRITE_DOCS").is_some() {
        return root.join("docs/pictures");
    }
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("pictures")
}

async fn stack() -> Option<Fleet> {
    let settings = format!(
        "[models.\"{MODEL}\"]\nrpm = 100\nitpm = 60_000\n[gate]\njitter = \"1s\"\n[tenants.acme]\ndaily-budget-usd = 5.0\n"
    );
    let mut fleet = fleet("", &settings).await?;
    fleet.documents(400, 300);
    std::fs::write(fleet.path("broken.pdf"), "%PDF-1.7 and nothing else").unwrap();
    fleet.worker_with(&[
        ("TIDEGATE_DASHBOARD__LISTEN", "127.0.0.1:0"),
        ("TIDEGATE_DASHBOARD__TOKEN_ENV", "PAGE_TOKEN"),
        ("PAGE_TOKEN", TOKEN),
    ]);
    Some(fleet)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_works_in_a_browser() {
    let Some(browser) = Browser::start().await else { return };
    let Some(fleet) = stack().await else { return };
    let url = crate::page::url(&fleet).await;
    // One batch ends with a failure, and one goes on.
    let mut few = fleet.batch("few");
    few.as_object_mut().unwrap().remove("source");
    let names = ["broken.pdf", "in/report-0001.md", "in/report-0002.md", "in/report-0003.md"];
    few["documents"] = names.map(|name| fleet.uri(name)).to_vec().into();
    fleet.start("contracts-monday", &few).await;
    fleet.until("contracts-monday", |progress| progress["done"] == true).await;
    fleet.start("contracts-night", &fleet.batch("out")).await;

    browser.open(&url).await;
    let text = "document.body.innerText";
    browser
        .until(
            "the batch",
            &format!("return {text}.includes('contracts-night') && {text}.includes('1 failed')"),
        )
        .await;
    // The numbers update by themselves.
    browser.until("live", "return document.getElementById('state').textContent === 'live'").await;
    let done = "const it = document.querySelectorAll('progress')[0]; return it ? it.value : 0";
    let first = browser.run(done).await.as_f64().unwrap();
    let further =
        done.replace("return it ? it.value : 0", &format!("return it && it.value > {first}"));
    browser.until("progress", &further).await;
    assert_eq!(browser.faults().await, Vec::<Value>::new());
    browser.picture("page-busy", 1_200, false).await;
    browser.picture("page-phone", 390, true).await;
    // Failures by type and message are in a section that can be opened and stays open.
    browser
        .run("document.querySelectorAll('#fleet details').forEach((it) => { it.open = true; })")
        .await;
    browser.until("failures", &format!("return {text}.includes('UnreadableDocument')")).await;
    browser.picture("page-failures", 1_200, false).await;

    // A wrong token is refused with a message; the right one is asked for only once.
    let pause = format!("pause: {MODEL}");
    browser.act(&pause, &[("why", "the tide is out"), ("token", "ebb")]).await;
    browser
        .until("refused", "return document.getElementById('refused').textContent.includes('wrong')")
        .await;
    let refused = browser.faults().await;
    assert!(
        refused.iter().all(|fault| fault["message"].as_str().unwrap().contains("401")),
        "{refused:?}"
    );
    browser.run("document.querySelector('#ask [value=no]').click()").await;
    browser.act(&pause, &[("why", "the tide is out"), ("token", TOKEN)]).await;
    browser
        .until(
            "closed",
            &format!("return {text}.includes('paused until it is resumed: the tide is out')"),
        )
        .await;
    browser.picture("page-closed", 1_200, true).await;
    browser.act(&format!("set requests of {MODEL}"), &[("value", "600"), ("for", "3600")]).await;
    browser.until("set", &format!("return {text}.includes('set to 600 by an operator') && {text}.includes('ends by itself')")).await;
    browser.act(&format!("resume: {MODEL}"), &[]).await;
    browser.until("open", &format!("return !{text}.includes('the tide is out')")).await;
    browser.act("pause: contracts-night", &[]).await;
    browser.until("paused", &format!("return {text}.includes('it is paused')")).await;

    // Every button can be reached by keyboard and shows its focus.
    let reached = browser.run("const all = [...document.querySelectorAll('#fleet button, #fleet summary')]; return all.length > 5 && all.every((it) => { it.focus(); return document.activeElement === it; })").await;
    assert_eq!(reached, true);
    assert_eq!(browser.faults().await, Vec::<Value>::new());
    fleet.stop().await;
}
