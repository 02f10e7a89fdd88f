//! Tests of the file, the environment, and the sentence for each fault.

use std::path::Path;

use tidegate_providers::Providers;

use super::{Config, duration, show};

fn load(text: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.toml");
    std::fs::write(&file, text).unwrap();
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let loaded = Config::from_layers(Some(&file), variables);
    loaded.map_err(|error| error.to_string().replace(&*file.to_string_lossy(), "t.toml"))
}

#[test]
fn the_environment_goes_before_the_file_and_the_file_before_defaults() {
    let text = "[gate]\njitter = \"7s\"\nbase-backoff = \"4s\"\n[models.\"openai:gpt-4.1\"]\nrpm = 10\n[lanes.bulk]\nshare = 0.0";
    let variables = [
        ("TIDEGATE_GATE__BASE_BACKOFF", "5s"),
        ("TIDEGATE_MODELS__OPENAI_GPT_4_1__RPM", "20"),
        ("TIDEGATE_STORAGE__ROOTS", "[\"file:///a\", \"file:///b\"]"),
        ("TIDEGATE_TEMPORAL__NAMESPACE", "123"),
        ("TIDEGATE_LOG_FORMAT", "json"),
    ];
    let config = load(text, &variables).unwrap();
    assert_eq!(config.gate.base_backoff, duration::HumanDuration::seconds(5));
    assert_eq!(config.gate.jitter, duration::HumanDuration::seconds(7));
    assert_eq!(config.gate.max_backoff, duration::HumanDuration::seconds(60));
    assert_eq!(config.models["openai:gpt-4.1"].rpm, Some(20));
    assert_eq!(config.storage.roots, ["file:///a", "file:///b"]);
    assert_eq!(config.temporal.namespace.as_deref(), Some("123"));
    assert_eq!(config.lanes.len(), 4);
    assert_eq!(config.sources.source(&["gate", "base-backoff"]), "TIDEGATE_GATE__BASE_BACKOFF");
    assert!(config.sources.source(&["gate", "jitter"]).ends_with("t.toml"));
    assert_eq!(config.sources.source(&["gate", "max-backoff"]), "default");
}

/// Temporal's variables for a version are read like those for its address: our keys take precedence.
#[test]
fn a_worker_is_a_version_where_both_names_are_known() {
    let variables = [("TEMPORAL_DEPLOYMENT_NAME", "tide"), ("TEMPORAL_WORKER_BUILD_ID", "123")];
    let version =
        |text: &str| load(text, &variables).unwrap().version().map(|version| version.to_string());
    assert_eq!(version("").as_deref(), Some("tide:123"));
    assert_eq!(version("[worker]\nbuild-id = \"v2\"").as_deref(), Some("tide:v2"));
    assert_eq!(load("", &[]).unwrap().version(), None);
    let fault = load("", &variables[..1]).unwrap_err();
    assert!(fault.contains("worker.build-id is not set; a version has both"), "{fault}");
    let fault = load("[worker]\ndeployment = \"a.b\"", &variables[1..]).unwrap_err();
    assert!(fault.contains("worker.deployment must be a name without"), "{fault}");
}

#[test]
fn each_fault_is_one_sentence_with_place_and_remedy() {
    let cases = [
        (
            "[gate]\njiter = \"1s\"",
            "t.toml: gate.jiter is not known; the keys here are jitter, base-backoff, max-backoff, max-quota-wait, pause-ttl",
        ),
        (
            "[providers.openai]\nrequest-timeout = \"45m\"",
            "t.toml: providers.openai.request-timeout is 45m; write at most 25m: Temporal ends the attempt soon after, and a longer call would be paid for and lost",
        ),
        (
            "[documents]\nhidden = \"show\"",
            "t.toml: documents.hidden is \"show\"; write \"drop\" or \"mark\"",
        ),
        (
            "[models.\"openai:m\"]\nrpm = 1\neffort = \"much\"",
            "t.toml: models.\"openai:m\".effort is \"much\"; write \"none\", \"low\", \"medium\" or \"high\"",
        ),
        (
            "[[providers.openai.errors]]\ncode = \"x\"\nis = \"Nope\"",
            "t.toml: providers.openai.errors cannot be used: row 1: is = \"Nope\" is none of RateLimited, Overloaded, Transient, QuotaExhausted, Unauthorized, InvalidRequest, TooLarge, ContentRefused",
        ),
        (
            "[[providers.openai.errors]]\nstatus = 429\nis = \"Transient\"\n[[providers.openai.errors]]\nis = \"Transient\"",
            "t.toml: providers.openai.errors cannot be used: row 2: it needs a code, a status or a part of the message (contains)",
        ),
        (
            "[gates]\nx = 1",
            "t.toml: gates is not known; the keys here are temporal, redis, gate, worker, documents, dashboard, serve, storage, calls, providers, models, quotas, lanes, tenants, routes, webhooks, prices",
        ),
        (
            "[gate]\njitter = 5",
            "t.toml: gate.jitter is 5; write a length of time with its unit, such as \"250ms\", \"30s\" or \"5m\"",
        ),
        (
            "[gate]\njitter = \"5\"",
            "t.toml: gate.jitter is \"5\"; write a length of time with its unit, such as \"250ms\", \"30s\" or \"5m\"",
        ),
        (
            "[models.\"openai:m\"]\nrpm = \"many\"",
            "t.toml: models.\"openai:m\".rpm is \"many\"; write a whole number, 0 or more",
        ),
        (
            "[storage]\nroots = \"file:///data\"",
            "t.toml: storage.roots is \"file:///data\"; write a list, such as [\"…\"]",
        ),
        (
            "[tenants.a]\ndaily-budget-usd = \"ten\"",
            "t.toml: tenants.a.daily-budget-usd is \"ten\"; write a number",
        ),
        (
            "[gate]\nmax-backoff = \"1s\"",
            "t.toml: gate.max-backoff is 1s, less than base-backoff (10s); raise it or lower base-backoff",
        ),
        (
            "[redis]\nurl = \"http://u:hush@h\"",
            "t.toml: redis.url is \"http://u:******@h\"; write redis://host:6379, rediss://…, redis+cluster://… or redis+sentinel://…",
        ),
        (
            "[redis]\nurl = \"redis://:hush@h:99999\"",
            "t.toml: redis.url is \"redis://:******@h:99999\", which cannot be used (Redis URL did not parse - InvalidClientConfig); write redis:// and a host with a port of at most 65535, such as redis://host:6379",
        ),
        (
            "[redis]\nurl = \"redis+sentinel://h:26379\"",
            "t.toml: redis.url is \"redis+sentinel://h:26379\", which cannot be used (write redis+sentinel://host:port,host:port/master-name); write redis+sentinel:// and a host with a port of at most 65535, such as redis://host:6379",
        ),
        (
            "[temporal]\naddress = \"ftp://h:7233\"",
            "t.toml: temporal.address is \"ftp://h:7233\"; write host:port, http://host:port or, over TLS, https://host:port",
        ),
        (
            "[serve.keys.open]\nkey-env = \"K\"",
            "t.toml: serve.keys.open would share the files of callers without a key; choose another name",
        ),
        (
            "[serve.keys.web]\nkey-env = \"K\"\n[serve.keys.\"web/\"]\nkey-env = \"L\"",
            "t.toml: serve.keys.\"web/\" would share the files of [serve.keys.web]; choose another name",
        ),
        (
            "[worker]\nmetrics-listen = \"on\"",
            "t.toml: worker.metrics-listen is \"on\"; write an address and a port such as 127.0.0.1:9464, or off",
        ),
        (
            "[storage]\nroots = [\"/data\"]",
            "t.toml: storage.roots holds \"/data\"; write file:///folder, s3://bucket/prefix, gs://bucket, az://container, or https://host to read from",
        ),
        (
            "[storage]\nroots = [\"s3://b/in\"]\nstate = \"s3://b/in/state/\"",
            "t.toml: storage.state is \"s3://b/in/state/\", where batches may read and write, because it lies under s3://b/in; write a folder or a bucket that is under no root",
        ),
        (
            "[storage]\nanswers = \"file:///data\"",
            "t.toml: storage.answers is \"file:///data\", where batches may read and write, because it lies under file:///data; write a folder or a bucket that is under no root",
        ),
        (
            "[calls]\nanswers = \"https://h/x\"",
            "t.toml: calls.answers is \"https://h/x\"; write file:///folder, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix",
        ),
        (
            "[calls]\ninline = \"2MiB\"",
            "t.toml: calls.inline is 2MiB; Temporal holds no payload of more than 2 MiB: write at most 1MiB",
        ),
        (
            "[providers.mine]\nkind = \"openai\"",
            "t.toml: providers.mine.base-url is missing; write the endpoint, such as \"http://localhost:8000/v1\"",
        ),
        (
            "[providers.mine]\nbase-url = \"http://h/v1\"",
            "t.toml: providers.mine.kind is missing; write \"openai\" for anything compatible with it, or \"anthropic\", \"gemini\" or \"bedrock\"",
        ),
        (
            "[models.\"openai:m\"]\nrpm = 0",
            "t.toml: models.\"openai:m\" cannot be used: the limit on requests is 0, which would admit nothing; leave it out for no limit",
        ),
        (
            "[models.\"x:m\"]\nrpm = 1",
            "t.toml: models.\"x:m\" names the provider x, which is not configured; add [providers.x] or correct the name",
        ),
        (
            "[gate]\njitter = \"9m\"",
            "t.toml: gate.jitter is 9m, longer than pause-ttl (5m); documents would wait longer than any pause; lower it",
        ),
        (
            "[redis]\nkey-prefix = \"a b\"",
            "t.toml: redis.key-prefix is \"a b\"; write 1 to 64 letters, digits, '-', '_', '.' or ':'",
        ),
        (
            "[storage]\nroots = [\"file://data\"]",
            "t.toml: storage.roots holds \"file://data\"; write file:///folder, s3://bucket/prefix, gs://bucket, az://container, or https://host to read from",
        ),
        (
            "[models.\"openai:m\"]\nrpm = 1\nprice = { input-usd-per-mtok = -1.0, output-usd-per-mtok = 1 }",
            "t.toml: models.\"openai:m\".price.input-usd-per-mtok is -1; write dollars per million tokens, from 0 to 1e12",
        ),
        (
            "[storage.hosts.\"files.example.com\"]\nrate = \"10/s\"",
            "t.toml: storage.hosts.\"files.example.com\" is the host of no http:// or https:// root; write the name alone, such as \"files.example.com\", and add https://files.example.com to roots",
        ),
        (
            "[storage]\nroots = [\"https://h/x\"]\nhosts.h = { rate = \"10/s\", burst = 0 }",
            "t.toml: storage.hosts.h.burst is 0; write at least 1",
        ),
        (
            "[storage]\nroots = [\"https://h/x\"]\nhosts.h.rate = \"10\"",
            "t.toml: storage.hosts.h.rate is \"10\"; write a number of requests above 0 and a unit, such as \"10/s\", \"600/min\" or \"1000/h\"",
        ),
        (
            "[lanes.batch]\nshare = 0.5\n[lanes.vip]\nshare = 0.9",
            "t.toml: lanes cannot be used: the lanes' shares add up to 1.400; together they must not exceed 1; lower some of them",
        ),
        (
            "[lanes.batch]\nheartbeat-timeout = \"1500ms\"",
            "t.toml: lanes.batch.heartbeat-timeout is 1s 500ms; write whole seconds, from 5s to 30m",
        ),
        (
            "[lanes.batch]\nshare = 0.5\nburst = 0.3",
            "t.toml: lanes.batch.burst is 0.3; write more than 0 and at least its share, 0.5",
        ),
        ("[lanes.batch]\nshare = 2", "t.toml: lanes.batch.share is 2; write a number from 0 to 1"),
        (
            "[tenants.a]\ndaily-budget-usd = 1e13",
            "t.toml: tenants.a.daily-budget-usd is 10000000000000; write dollars, from 0 to 1e12",
        ),
        (
            "[tenants.a]\ndaily-budget-usd = -1",
            "t.toml: tenants.a.daily-budget-usd is -1; write dollars, from 0 to 1e12",
        ),
        (
            "[routes.a]\nmodels = [\"openai:m\"]",
            "t.toml: routes.a.models names openai:m, which has no limits; add a [models.\"openai:m\"] section or take it out",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(
            load(text, &[]).unwrap_err(),
            format!("the configuration cannot be used: {expected}")
        );
    }
}

#[test]
fn a_variable_changes_a_model_of_the_file_alone() {
    let error = load("", &[("TIDEGATE_MODELS__NIX_M__RPM", "7")]).unwrap_err();
    assert!(
        error.contains(
            "TIDEGATE_MODELS__NIX_M__RPM: models.nix-m is not in the file, and a variable"
        ),
        "{error}"
    );
}

#[test]
fn a_name_is_escaped_where_it_is_told() {
    let text = "[providers.openai.headers]\n\"x\\ny\" = \"1\"";
    let error = load(text, &[]).unwrap_err();
    assert!(error.contains("headers.\"x\\ny\" is no header's name"), "{error}");
}

#[test]
fn all_faults_are_told_together_and_name_the_variable() {
    let text = "[gate]\na = 1\njitter = 2\n[worker]\nmax-concurrent-documents = 0";
    let error = load(text, &[("TIDEGATE_GATE__PAUSE_TTL", "soon"), ("TIDEGATE_REDIS__URI", "x")])
        .unwrap_err();
    assert!(error.contains("5 faults"), "{error}");
    for expected in [
        "\n  - t.toml: gate.a is not known",
        "\n  - t.toml: gate.jitter is 2;",
        "\n  - TIDEGATE_GATE__PAUSE_TTL: gate.pause-ttl is \"soon\"; write",
        "\n  - TIDEGATE_REDIS__URI: redis.uri is not known; the keys here are url, key-prefix",
        "\n  - t.toml: worker.max-concurrent-documents is 0; write at least 1",
    ] {
        assert!(error.contains(expected), "{expected} in {error}");
    }
}

#[test]
fn what_is_shown_can_be_read_again_and_holds_no_secret() {
    let text = "[redis]\nurl = \"redis://:hush@h:1\"\n[models.\"openai:gpt-4.1\"]\nrpm = 10\n[providers.mine]\nkind = \"openai\"\nbase-url = \"http://h/v1?key=hush\"";
    let config = load(text, &[("TIDEGATE_GATE__JITTER", "1s")]).unwrap();
    let shown = show::toml(&config);
    assert!(!shown.contains("hush") && !format!("{config:?}").contains("hush"), "{shown}");
    assert!(shown.contains("# TIDEGATE_GATE__JITTER"), "{shown}");
    assert!(shown.contains("# api-key: ") && shown.contains("OPENAI_API_KEY"), "{shown}");
    // The address comes from any source: this test does not control its environment.
    assert!(shown.contains("[temporal]\naddress = \""), "{shown}");
    load(&shown, &[]).unwrap();
}

#[test]
fn lanes_of_ones_own_take_the_place_of_the_built_in_shares() {
    let shares = |text| {
        load(text, &[])
            .unwrap()
            .lanes
            .into_iter()
            .map(|(name, lane)| (name, lane.share))
            .collect::<Vec<_>>()
    };
    let lane = |name: &str, share| (name.to_owned(), share);
    assert_eq!(shares(""), [lane("batch", 0.1), lane("interactive", 0.6), lane("standard", 0.3)]);
    let own = shares("[lanes.fast]\nshare = 0.9\n[lanes.batch]\nshare = 0.1");
    assert_eq!(
        own,
        [lane("batch", 0.1), lane("fast", 0.9), lane("interactive", 0.0), lane("standard", 0.0)]
    );
    let vip = "[lanes.vip]\nshare = 0.2";
    let parts = [lane("batch", 0.08), lane("interactive", 0.48), lane("standard", 0.24)];
    assert_eq!(shares(vip), [&parts[..], &[lane("vip", 0.2)]].concat());
    let shown = show::toml(&load(vip, &[]).unwrap());
    assert!(shown.contains("# its part of what lanes.vip leaves"), "{shown}");
    let more = shares("[lanes.batch]\nshare = 0.5");
    assert_eq!(more, [lane("batch", 0.5), lane("interactive", 0.3333), lane("standard", 0.1666)]);
}

#[test]
fn a_models_own_price_goes_before_the_table() {
    let text = "[models.\"openai:gpt-4o-mini\"]\nrpm = 1\nprice = { input-usd-per-mtok = 7, output-usd-per-mtok = 1.5 }";
    let config = load(text, &[]).unwrap();
    let (id, day) = ("openai:gpt-4o-mini".parse().unwrap(), "2026-11-20".parse().unwrap());
    let usage = tidegate_types::Usage {
        uncached_input: 1_000_000,
        cache_read: 0,
        cache_write: 0,
        output: 2_000_000,
    };
    assert_eq!(config.prices().unwrap().cost_usd(&id, &usage, day), Some(10.0));
    load(&show::toml(&config), &[]).unwrap();
}

/// `tidegate dev` writes the shown configuration for other terminals.
#[test]
fn a_pool_that_is_shown_can_be_read_again() {
    let text = "[models.\"openai:m\"]\ntpm = 9\n[[providers.openai.pool]]\nname = \"a\"\napi-key-env = \"A\"\n[[providers.openai.pool]]\napi-key-env = \"B\"\ntpm = 5";
    let config = load(text, &[]).unwrap();
    assert_eq!(config.model_names(), ["openai:m"]);
    let again = load(&show::toml(&config), &[]).unwrap();
    assert_eq!(again.pool_members("openai:m"), config.pool_members("openai:m"));
    assert_eq!(again.models, config.models);
}

#[test]
fn a_missing_or_broken_file_is_named() {
    let error = Config::from_layers(Some(Path::new("/no/such.toml")), []).unwrap_err().to_string();
    assert!(error.contains("/no/such.toml: the file cannot be read"), "{error}");
    let binary = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&binary, b"\xff\xfe").unwrap();
    let error = Config::from_layers(Some(binary.path()), []).unwrap_err().to_string();
    assert!(error.ends_with("save it as UTF-8"), "{error}");
    assert!(load("[gate", &[]).unwrap_err().contains("t.toml: the file is not TOML: line 1"));
    for secret in [
        "[redis]\nurl = redis://u:hush@host",
        "[redis]\nurl = \"redis://u:hush@host",
        "[redis]\nurl = \"redis://u:hush@host\"\nurl = \"redis://u:hush@host\"",
        "redis = \"redis://:hush@host\"",
        "[providers]\nanthropic = \"hush\"",
        "[providers.anthropic]\napi-key-env = \"sk-hush\"",
    ] {
        let told = load(secret, &[]).unwrap_err();
        assert!(!told.contains("hush"), "{told}");
    }
    for empty in
        ["[temporal]\ntask-queue = \"\"", "[temporal]\nnamespace = \"\"", "[worker]\nspool = \"\""]
    {
        let told = load(empty, &[]).unwrap_err();
        assert!(told.contains("is empty"), "{told}");
    }
}

#[test]
fn vendors_decide_what_counts_and_unused_providers_need_no_key() {
    let text = "[models.\"anthropic:a\"]\nitpm = 10\n[models.\"mine:m\"]\ntpm = 10\n[providers.mine]\nkind = \"openai\"\nbase-url = \"http://h/v1\"";
    let models = load(text, &[]).unwrap().quota_models(&Providers::default()).unwrap();
    assert_eq!(
        models.iter().map(|model| model.charge.cached_input).collect::<Vec<_>>(),
        [false, true]
    );
    let settings = load(&text[text.find("[models.\"mine").unwrap()..], &[])
        .unwrap()
        .provider_settings()
        .unwrap();
    assert_eq!(settings.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["mine"]);
}

#[test]
fn a_webhook_has_an_address_and_a_secret_that_is_never_shown() {
    let fault = |keys: &str| load(&format!("[webhooks.ours]\n{keys}"), &[]).unwrap_err();
    let secret = "secret-env = \"OURS\"";
    let said = fault(&format!("url = \"ftp://host/\"\n{secret}"));
    assert!(said.contains("webhooks.ours.url must be an http:// or https:// URL"), "{said}");
    let said = fault("url = \"https://host/\"");
    assert!(said.contains("needs exactly one of secret-env and secret-file"), "{said}");
    let said = fault("url = \"https://host/\"\nsecret-env = \"whsec_hush\"");
    assert!(said.contains("secret-env") && !said.contains("hush"), "{said}");
    let url = "url = \"https://me:hush@host/a?token=hush\"";
    let config = load(&format!("[webhooks.ours]\n{url}\n{secret}"), &[]).unwrap();
    let shown = format!("{:?}", show::keys(&config));
    assert!(shown.contains("webhooks.ours") && !shown.contains("hush"), "{shown}");
    let unusable = config.unusable_webhooks();
    assert!(unusable[0].contains("names OURS, which is not set"), "{unusable:?}");
    assert!(config.webhooks().unwrap().check("ours").is_ok());
}
