//! Configurations that are accepted, and the errors for others.

use std::time::Duration;

use tidegate_simulator::{Algorithm, Batches, Charge, Config, FaultKind};

const FULL: &str = r#"
seed = 7
mean-output-tokens = 150
output-spread = 0.4
latency = { base = "300ms", per-output-token = "2ms", jitter = 0.2 }

[batches]
duration = "10s"
error-rate = 0.1
expire-rate = 0.2

[default]
rpm = 1000

[models."claude-sonnet-5"]
rpm = 50
itpm = 30_000
otpm = 8_000
algorithm = "token-bucket"
bucket = "5s"
charge = "max-tokens"

[[faults]]
kind = "overloaded"
rate = 0.05
from = "30s"
to = "1m"
matching = "poison"
times = 3
delay = "1s"
retry-after = "2s"
"#;

#[test]
fn everything_that_can_be_said_is_read() {
    let config = Config::from_toml(FULL).unwrap();
    let limits = config.limits("claude-sonnet-5");
    assert_eq!(
        (limits.rpm, limits.tpm, limits.itpm, limits.otpm),
        (Some(50), None, Some(30_000), Some(8_000))
    );
    assert_eq!(
        (limits.algorithm, limits.charge, limits.bucket),
        (Algorithm::TokenBucket, Charge::MaxTokens, Duration::from_secs(5))
    );
    assert_eq!(config.limits("another").rpm, Some(1_000));
    assert_eq!(
        (config.faults[0].kind, config.faults[0].retry_after),
        (FaultKind::Overloaded, Some(Duration::from_secs(2)))
    );
    assert_eq!(config.latency.per_output_token, Duration::from_millis(2));
    let batches = Batches {
        duration: Duration::from_secs(10),
        error_rate: 0.1,
        expire_rate: 0.2,
        queue_tokens: None,
    };
    assert_eq!(
        (config.batches, Config::default().batches.duration),
        (batches, Duration::from_secs(2))
    );
}

#[test]
fn what_is_written_is_read_again() {
    let config = Config::from_toml(FULL).unwrap();
    assert_eq!(Config::from_toml(&toml::to_string(&config).unwrap()).unwrap(), config);
    assert_eq!(Config::from_toml("").unwrap(), Config::default());
}

#[test]
fn errors_name_what_is_wrong() {
    for (toml, message) in [
        ("speed = 1", "unknown field `speed`"),
        ("[default]\nrpd = 1", "unknown field `rpd`"),
        ("[[faults]]\nkind = \"boredom\"", "unknown variant `boredom`"),
        ("[[faults]]\nrate = 1.0", "missing field `kind`"),
        ("latency = { base = \"soon\" }", "\"soon\" is no duration"),
        ("[models.m]\nrpm = 0", "models.\"m\".rpm: 0 admits nothing"),
        ("[default]\nbucket = \"0s\"", "default.bucket: an empty bucket"),
        ("mean-output-tokens = 0", "mean-output-tokens: "),
        ("output-spread = -1.0", "output-spread: "),
        ("latency = { jitter = 2.0 }", "latency.jitter: "),
        ("[batches]\nsize = 1", "unknown field `size`"),
        ("[batches]\nerror-rate = 1.5", "batches.error-rate: a rate lies between 0 and 1"),
        ("[batches]\nexpire-rate = nan", "batches.expire-rate: a rate lies between 0 and 1"),
        (
            "[batches]\nerror-rate = 0.6\nexpire-rate = 0.6",
            "batches.expire-rate: with error-rate it is more than all",
        ),
        ("[[faults]]\nkind = \"html\"\nrate = 1.5", "faults[0].rate: a rate lies between 0 and 1"),
        (
            "[[faults]]\nkind = \"html\"\nfrom = \"2s\"\nto = \"1s\"",
            "faults[0].to: it must be later than from",
        ),
    ] {
        let error = Config::from_toml(toml).unwrap_err().to_string();
        assert!(error.contains(message), "{toml}: {error}");
    }
}
