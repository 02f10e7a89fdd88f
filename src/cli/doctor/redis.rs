//! Checks Redis: reachable, new enough, without eviction, with the right clock, and able to run our
//! scripts.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use redis::{
    Client, ErrorKind, FromRedisValue, InfoDict, RedisError, aio::MultiplexedConnection, cmd,
};
use tidegate_providers::Providers;
use tidegate_quota::{Charge, Dimension, Lanes, Limits, ModelQuota, Quota, wrong_keys::WrongKey};

use crate::{
    cli::format,
    config::{Config, mask},
};

use super::check::Check;

/// Oldest version in which scripts may write after asking for the time.
const OLDEST: (u32, u32) = (6, 2);

const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// A larger difference of the clocks is reported, although the quota does not use our clock.
const CLOCKS_APART: Duration = Duration::from_secs(1);

const START: &str =
    "start Redis (redis-server) or Valkey, or correct redis.url or TIDEGATE_REDIS__URL";

pub(super) async fn check_all(config: &Config) -> Vec<Check> {
    let url = &config.redis.url;
    let mut checks = Vec::new();
    // With sentinels, the limiter itself finds the master.
    for node in Quota::servers(url) {
        let (mut seen, reached) = node_checks(&node, config.storage.state.is_some()).await;
        checks.append(&mut seen);
        if !reached {
            return checks;
        }
    }
    checks.push(scripts(config).await);
    checks
}

async fn node_checks(url: &str, has_state: bool) -> (Vec<Check>, bool) {
    let name = format!("redis {}", mask::url(url));
    let mut connection = match connect(url).await {
        Ok(connection) => connection,
        Err((error, remedy)) => return (vec![Check::fail(&name, error, remedy)], false),
    };
    let mut checks = Vec::new();
    match ask::<InfoDict>(&mut connection, &["INFO"]).await {
        Ok(info) => {
            checks.extend([version(&name, &info), eviction(&name, &info)]);
            let saves = ask::<Vec<String>>(&mut connection, &["CONFIG", "GET", "save"]).await;
            let saves = saves.ok().and_then(|pair| pair.into_iter().nth(1));
            checks.extend(check_persistence(&name, &info, saves.as_deref(), has_state));
        }
        Err(error) => checks.push(Check::doubtful(
            &name,
            format!("INFO is refused: {error}"),
            "check version and eviction by hand",
        )),
    }
    let before = SystemTime::now();
    if let Ok((seconds, micros)) = ask::<(u64, u64)>(&mut connection, &["TIME"]).await {
        checks.push(clock(
            &name,
            before,
            SystemTime::now(),
            Duration::from_secs(seconds) + Duration::from_micros(micros),
        ));
    }
    (checks, true)
}

/// Connects; or returns the reason and the remedy.
async fn connect(url: &str) -> Result<MultiplexedConnection, (String, &'static str)> {
    let connecting = async {
        let mut connection = Client::open(url)?.get_multiplexed_async_connection().await?;
        cmd("PING").query_async::<()>(&mut connection).await?;
        Ok::<_, RedisError>(connection)
    };
    match tokio::time::timeout(ANSWER_WITHIN, Box::pin(connecting)).await {
        Ok(Ok(connection)) => Ok(connection),
        // A parser's error has several lines.
        Ok(Err(error)) => Err((error.to_string().replace('\n', " "), remedy(&error))),
        Err(_) => Err((format!("no answer within {ANSWER_WITHIN:?}"), START)),
    }
}

/// The remedy: the password, if that is refused.
fn remedy(error: &RedisError) -> &'static str {
    let is_refused = error.kind() == ErrorKind::AuthenticationFailed
        || matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"));
    if error.kind() == ErrorKind::Parse {
        "the server that answers is no Redis: correct redis.url or TIDEGATE_REDIS__URL"
    } else if is_refused {
        "correct the user and the password in redis.url or TIDEGATE_REDIS__URL: redis://user:password@host:6379"
    } else {
        START
    }
}

async fn ask<T: FromRedisValue>(
    connection: &mut MultiplexedConnection,
    words: &[&str],
) -> Result<T, String> {
    let mut command = cmd(words[0]);
    words[1..].iter().for_each(|word| {
        command.arg(*word);
    });
    match tokio::time::timeout(ANSWER_WITHIN, Box::pin(command.query_async(connection))).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {ANSWER_WITHIN:?}")),
    }
}

fn version(name: &str, info: &InfoDict) -> Check {
    let version: String = info.get("redis_version").unwrap_or_default();
    let (product, shown) = match info.get::<String>("valkey_version") {
        Some(valkey) => ("Valkey", valkey),
        None => ("Redis", version.clone()),
    };
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let number = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if number >= OLDEST {
        Check::ok(name, format!("{product} {shown}"))
    } else {
        Check::fail(
            name,
            format!("{product} {shown}"),
            format!("upgrade to Redis {}.{} or Valkey 7.2, or newer", OLDEST.0, OLDEST.1),
        )
    }
}

fn eviction(name: &str, info: &InfoDict) -> Check {
    let policy: String = info.get("maxmemory_policy").unwrap_or_default();
    let bound: u64 = info.get("maxmemory").unwrap_or_default();
    let remedy = "CONFIG SET maxmemory-policy noeviction: a reservation that is evicted is quota spent twice";
    match (policy.as_str(), bound) {
        ("noeviction", _) => Check::ok(name, "evicts nothing"),
        ("", _) => Check::doubtful(
            name,
            "does not say what it evicts",
            "make sure that maxmemory-policy is noeviction",
        ),
        (policy, 0) => Check::doubtful(
            name,
            format!("maxmemory-policy is {policy}, though there is no bound on memory"),
            remedy,
        ),
        (policy, _) => Check::fail(name, format!("maxmemory-policy is {policy}"), remedy),
    }
}

/// Whether a restart loses operators' settings. `saves` is the answer to `CONFIG GET save`, if that is
/// permitted; `has_state`: `[storage] state` keeps them.
fn check_persistence(
    name: &str,
    info: &InfoDict,
    saves: Option<&str>,
    has_state: bool,
) -> Option<Check> {
    let has_log = info.get::<u64>("aof_enabled").is_some_and(|enabled| enabled > 0);
    match (has_log, saves) {
        (true, _) => Some(Check::ok(name, "keeps its data over a restart (append-only file)")),
        (false, Some("")) if has_state => Some(Check::ok(
            name,
            "keeps nothing over a restart; [storage] state keeps budgets and operators' settings",
        )),
        (false, Some("")) => Some(Check::doubtful(
            name,
            "keeps nothing over a restart: it forgets what budgets have spent, limits that were set, and pauses without an end",
            "CONFIG SET appendonly yes; or let [storage] state keep budgets and limits",
        )),
        (false, Some(_)) => Some(Check::ok(name, "keeps its data over a restart (snapshots)")),
        // A managed Redis does not report it.
        (false, None) => None,
    }
}

/// Compares the clocks. The difference is known up to half of the answer's time.
fn clock(name: &str, before: SystemTime, after: SystemTime, theirs: Duration) -> Check {
    let took = after.duration_since(before).unwrap_or_default();
    let ours = (before + took / 2).duration_since(UNIX_EPOCH).unwrap_or_default();
    let apart = ours.abs_diff(theirs).saturating_sub(took / 2);
    if apart <= CLOCKS_APART {
        Check::ok(
            name,
            format!(
                "its clock is within {} of ours",
                format::duration(CLOCKS_APART.min(apart + took))
            ),
        )
    } else {
        let seen = format!("its clock is {} away from ours", format::duration(apart));
        Check::doubtful(
            name,
            seen,
            "let NTP set both; the limiter goes by the server's clock alone, so the quota is right all the same",
        )
    }
}

/// Asks for the quota of a model that does not exist: that loads and runs the scripts, and writes
/// nothing.
async fn scripts(config: &Config) -> Check {
    let name = "limiter";
    let seen = async {
        let limits = Limits::default().with(Dimension::Requests, 1);
        let id: tidegate_types::ModelId = "doctor:probe".parse()?;
        let model =
            ModelQuota::new(id.clone(), limits, Charge::default(), Arc::new(Lanes::single()))?;
        let quota = Quota::with_redis(&config.redis.url, [model], config.quota_options())?;
        quota.inspect(&id).await?;
        let models = config.quota_models(&Providers::default())?;
        let all = Quota::with_redis(&config.redis.url, models, config.quota_options())?;
        anyhow::Ok(all.wrong_keys().await?)
    };
    match seen.await {
        Ok(wrong) if wrong.is_empty() => Check::ok(name, "its scripts run"),
        Ok(wrong) => {
            let named = |it: &WrongKey| format!("{} is a {}, not a {}", it.key, it.is, it.needed);
            let named: Vec<_> = wrong.iter().map(named).collect();
            let keys: Vec<_> = wrong.iter().map(|it| it.key.escape_debug().to_string()).collect();
            Check::fail(
                name,
                format!("keys of a wrong type: {}", named.join("; ").escape_debug()),
                format!(
                    "another program wrote them: give the fleet a prefix of its own (redis.key-prefix), or rename them: {}",
                    keys.join(", ")
                ),
            )
        }
        Err(error) => {
            let (seen, remedy) = script_fault(&format!("{error:#}"));
            Check::fail(name, seen, remedy)
        }
    }
}

/// What the limiter's error says, without the place in the script, and the remedy.
fn script_fault(words: &str) -> (String, &'static str) {
    let is = |sign: &str| words.to_lowercase().contains(sign);
    if is("readonly") || is("read only replica") {
        let remedy = "point redis.url at the primary, or use redis+sentinel://";
        return ("this server is a read-only replica".to_owned(), remedy);
    }
    if is("used memory > 'maxmemory'") {
        return ("Redis' memory is full".to_owned(), "raise maxmemory");
    }
    if is("no answer within") {
        let remedy = "Redis, this machine or the network between them is too slow: see what keeps it busy, and ask again";
        return (words.to_owned(), remedy);
    }
    let seen = words.split_once(" script: ").map_or(words, |(seen, _)| seen);
    let remedy = "Redis must allow EVALSHA, EVAL and SCRIPT to this user";
    (seen.to_owned(), remedy)
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    fn info(text: &str) -> InfoDict {
        InfoDict::new(text)
    }

    #[test]
    fn a_refused_password_is_told_from_a_server_that_is_away() {
        let refused = RedisError::from((ErrorKind::AuthenticationFailed, "no"));
        assert!(remedy(&refused).contains("password"));
        let away = RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
        assert_eq!(remedy(&away), START);
        let other = RedisError::from((ErrorKind::Parse, "no"));
        assert!(remedy(&other).contains("no Redis"));
    }

    #[test]
    fn a_script_that_cannot_write_is_told_why() {
        let place = "script: 5bf0a1, on @user_script:36.";
        let replica =
            "Redis is away: redis://h:1: ReadOnly: You can't write against a read only replica.";
        let (seen, remedy) = script_fault(&format!("{replica} {place}"));
        assert_eq!(seen, "this server is a read-only replica");
        assert!(remedy.contains("redis+sentinel://"));
        let full = "Redis is away: redis://h:1: \"OOM\": command not allowed when used memory > 'maxmemory'.";
        let (seen, remedy) = script_fault(&format!("{full} {place}"));
        assert_eq!((seen.as_str(), remedy), ("Redis' memory is full", "raise maxmemory"));
        let slow = "Redis is away: redis://h:1: no answer within 250ms";
        let (seen, remedy) = script_fault(slow);
        assert!(seen == slow && remedy.contains("too slow"), "{remedy}");
        let (seen, remedy) = script_fault(&format!("Redis is away: redis://h:1: no. {place}"));
        assert_eq!(seen, "Redis is away: redis://h:1: no.");
        assert!(remedy.contains("EVALSHA"));
    }

    #[test]
    fn versions_and_eviction_are_judged() {
        let cases = [
            ("redis_version:5.0.7", State::Fail),
            ("redis_version:6.2.0", State::Ok),
            ("redis_version:7.0.15", State::Ok),
        ];
        for (text, expected) in cases {
            assert_eq!(version("redis", &info(text)).state, expected, "{text}");
        }
        assert_eq!(
            version("redis", &info("redis_version:7.2.4\r\nvalkey_version:9.0.1")).seen,
            "Valkey 9.0.1"
        );
        let cases = [
            ("maxmemory:0\r\nmaxmemory_policy:noeviction", State::Ok),
            ("maxmemory:0\r\nmaxmemory_policy:allkeys-lru", State::Doubtful),
            ("maxmemory:1000\r\nmaxmemory_policy:allkeys-lru", State::Fail),
            ("", State::Doubtful),
        ];
        for (text, expected) in cases {
            assert_eq!(eviction("redis", &info(text)).state, expected, "{text}");
        }
    }

    #[test]
    fn a_redis_that_forgets_is_told_of() {
        let seen =
            |text: &str, saves: Option<&str>| check_persistence("redis", &info(text), saves, false);
        let states = [("aof_enabled:1", Some("")), ("aof_enabled:0", Some("3600 1"))];
        for (text, saves) in states {
            assert_eq!(seen(text, saves).unwrap().state, State::Ok, "{text}");
        }
        let forgets = seen("aof_enabled:0", Some("")).unwrap();
        assert_eq!(forgets.state, State::Doubtful);
        assert!(forgets.remedy.unwrap().contains("appendonly yes"));
        assert_eq!(seen("", None), None, "it does not say");
        let kept = check_persistence("redis", &info("aof_enabled:0"), Some(""), true).unwrap();
        assert_eq!((kept.state, kept.remedy), (State::Ok, None), "the store keeps them");
    }

    #[test]
    fn clocks_are_compared_within_the_time_that_the_answer_took() {
        let at = |millis| UNIX_EPOCH + Duration::from_millis(millis);
        assert_eq!(
            clock("redis", at(10_000), at(10_400), Duration::from_millis(11_300)).state,
            State::Ok
        );
        assert_eq!(
            clock("redis", at(10_000), at(10_400), Duration::from_millis(15_200)).state,
            State::Doubtful
        );
    }

    #[tokio::test]
    async fn keys_of_a_wrong_type_are_named() {
        let Some(redis) = tidegate_testkit::Redis::start() else { return };
        let mut config = Config::default();
        config.redis.url.clone_from(&redis.url);
        config.models.insert("openai:m".to_owned(), toml::from_str("rpm = 60").unwrap());
        let check = scripts(&config).await;
        assert_eq!(check.state, State::Ok, "{}", check.seen);
        let key = "tidegate:v1:{openai:m}:ledger";
        ::redis::cmd("SET").arg(key).arg("mine").exec(&mut redis.connection()).unwrap();
        let check = scripts(&config).await;
        assert_eq!(check.state, State::Fail);
        assert!(check.seen.contains(&format!("{key} is a string, not a zset")), "{}", check.seen);
    }
}
