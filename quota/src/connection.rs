//! The connection to Redis: one server, a cluster, or through sentinels, always with short
//! time-outs.

use std::{fmt, pin::Pin, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, FromRedisValue,
    IntoConnectionInfo, RedisConnectionInfo, RedisError, ServerErrorKind, TlsMode, Value,
    cluster::ClusterClient,
    sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType},
};
use tokio::sync::Mutex;

use crate::{
    address::Address,
    connecting::{Attempt, Present, Source, is_read_only},
    error::Error,
    script::Script,
};

/// The longest wait for an answer; after it the worker falls back to its own share.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_millis(250);

/// Error code of the scripts when a quota has a newer layout than theirs.
const OUTDATED: &str = "TIDEGATE-OUTDATED";

/// Boxed, because the client's futures nest so deeply that callers' crates would not compile.
type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, RedisError>> + Send + 'a>>;

/// One connection for all tasks of the process.
pub(crate) struct Connection {
    present: Present,
    address: String,
    answer_within: Duration,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Connection {
    /// Opens `redis://`, `rediss://`, `unix://`, `redis+cluster://host:port,host:port` or
    /// `redis+sentinel://host:port,host:port/master-name`, the last two also with `rediss`. Connects
    /// at the first use, so that a worker may start while Redis is away.
    pub(crate) fn open(url: &str, answer_within: Duration) -> Result<Self, Error> {
        let bad = |error: RedisError| Error::Address(error.to_string());
        let source = match Address::read(url).map_err(Error::Address)? {
            Address::Cluster(nodes) => {
                let client = ClusterClient::builder(nodes)
                    .connection_timeout(answer_within)
                    .response_timeout(answer_within)
                    .retries(0)
                    .build()
                    .map_err(bad)?;
                Source::Cluster(Box::new(client))
            }
            Address::Sentinel(nodes, master) => {
                let client = sentinels(nodes, master).map_err(bad)?;
                Source::Sentinel(Box::new(Mutex::new(client)))
            }
            Address::Single(url) => {
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(answer_within))
                    .set_response_timeout(Some(answer_within));
                Source::Single(Box::new(Client::open(url).map_err(bad)?), config)
            }
        };
        let (present, address) = (Present::new(source), without_password(url));
        Ok(Self { present, address, answer_within })
    }

    /// Runs a script: one round trip; two when the server has lost its scripts.
    pub(crate) async fn run(
        &self,
        script: &Script,
        keys: &[String],
        arguments: &[Vec<u8>],
    ) -> Result<Vec<Value>, Error> {
        let attempt = self.present.attempt();
        let answer = async {
            let live = attempt.connection().await?;
            match live.send(&script.by_hash(keys, arguments)).await {
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                    live.send(&script.by_text(keys, arguments)).await
                }
                answer => answer,
            }
        };
        self.within(&attempt, Box::pin(answer)).await
    }

    /// Runs one command.
    pub(crate) async fn command<T: FromRedisValue + Send>(
        &self,
        command: &Cmd,
    ) -> Result<T, Error> {
        let attempt = self.present.attempt();
        let answer = async { attempt.connection().await?.send(command).await };
        self.within(&attempt, Box::pin(answer)).await
    }

    async fn within<T>(&self, attempt: &Attempt, answer: Answer<'_, T>) -> Result<T, Error> {
        let answer = tokio::time::timeout(self.answer_within, answer).await;
        let failed = |error: Option<&RedisError>| {
            self.present.replace_useless(attempt, error, self.answer_within);
        };
        match &answer {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => failed(Some(error)),
            Err(_) => failed(None),
        }
        match answer {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) if error.to_string().contains(OUTDATED) => {
                Err(Error::Outdated(error.to_string()))
            }
            Ok(Err(error)) if error.to_string().contains(NO_CLUSTER) => Err(Error::Address(
                format!("{} is no cluster; write redis:// for a single server", self.address),
            )),
            Ok(Err(error)) if error.kind() == ErrorKind::Parse => Err(Error::Away(format!(
                "{}: the server that answers is no Redis; correct redis.url or TIDEGATE_REDIS__URL",
                self.address
            ))),
            Ok(Err(error)) if is_the_scripts(&error) => Err(Error::Protocol(error.to_string())),
            Ok(Err(error)) if is_not_let_in(&error) => Err(Error::Away(format!(
                "{}: it refuses the user or the password ({error}); correct redis.url or TIDEGATE_REDIS__URL",
                self.address
            ))),
            Ok(Err(error)) => Err(Error::Away(format!("{}: {error}", self.address))),
            Err(_) => {
                let within = self.answer_within;
                Err(Error::Away(format!("{}: no answer within {within:?}", self.address)))
            }
        }
    }
}

/// A single server's answer to a client of a cluster.
const NO_CLUSTER: &str = "cluster support disabled";

/// Whether the server answers, but the user or the password is wrong or missing.
fn is_not_let_in(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed
        || matches!(error.code(), Some("NOAUTH" | "WRONGPASS"))
}

/// Whether the server answers and the command failed: an error of the script's own, a fault in it,
/// or a wrong type of one model's key. That must not count as a server that is absent or cannot
/// write.
fn is_the_scripts(error: &RedisError) -> bool {
    let is_coded = matches!(error.code(), Some("ERR" | "WRONGTYPE")) && !is_read_only(error);
    is_coded || error.to_string().contains("TIDEGATE")
}

/// The client of the master with this name, which has the sentinels' user, password and TLS.
fn sentinels(nodes: Vec<String>, master: &str) -> Result<SentinelClient, RedisError> {
    let nodes = nodes.into_iter().map(IntoConnectionInfo::into_connection_info);
    let mut nodes = nodes.collect::<Result<Vec<ConnectionInfo>, _>>()?;
    let mut of_master = SentinelNodeConnectionInfo::default();
    if let Some(node) = nodes.first() {
        of_master = of_master.set_redis_connection_info(node.redis_settings().clone());
        if matches!(node.addr(), ConnectionAddr::TcpTls { .. }) {
            of_master = of_master.set_tls_mode(TlsMode::Secure);
        }
    }
    // Many a sentinel has no password although its master has one, and refuses any.
    let open = nodes.iter().filter(|node| node.redis_settings().password().is_some());
    let open = open.map(|node| node.clone().set_redis_settings(RedisConnectionInfo::default()));
    nodes.extend(open.collect::<Vec<_>>());
    SentinelClient::build(nodes, master, Some(of_master), SentinelServerType::Master)
}

/// The URL without user and password, for messages.
fn without_password(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => {
            format!("{}://{}", &url[..scheme], &url[at + 1..])
        }
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        assert_eq!(without_password("rediss://user:se@cret@host:1/2"), "rediss://host:1/2");
        assert_eq!(without_password("redis://host:1"), "redis://host:1");
    }

    #[tokio::test]
    async fn a_refused_password_is_named_and_may_be_mended_at_the_server() {
        let Some(redis) = tidegate_testkit::Redis::start() else { return };
        let allow = |password: &str| {
            redis::cmd("ACL")
                .arg(&["SETUSER", "worker", "on", "resetpass", password, "~*", "&*", "+@all"])
                .exec(&mut redis.connection())
                .unwrap();
        };
        allow(">right");
        let url = redis.url.replace("redis://", "redis://worker:mistyped@");
        let connection = Connection::open(&url, Duration::from_secs(30)).unwrap();
        for _ in 0..2 {
            let refused = connection.command::<String>(&redis::cmd("PING")).await.unwrap_err();
            let text = refused.to_string();
            assert!(text.contains("refuses the user or the password"), "{text}");
            assert!(text.contains(&redis.url) && !text.contains("mistyped"), "{text}");
        }
        allow(">mistyped");
        assert_eq!(connection.command::<String>(&redis::cmd("PING")).await.unwrap(), "PONG");
    }

    /// Sends a command and runs a script, from a new connection to `url` without `password`.
    async fn is_served(url: &str, password: &str) {
        let connection = Connection::open(url, tidegate_testkit::PATIENCE).unwrap();
        assert_eq!(connection.command::<String>(&redis::cmd("PING")).await.unwrap(), "PONG");
        let beat = crate::script::Scripts::new().beat;
        let arguments = [b"worker".to_vec(), b"15".to_vec()];
        let live = connection.run(&beat, &["workers".to_owned()], &arguments).await.unwrap();
        assert_eq!(live, [Value::Int(1)]);
        let open = Connection::open(&url.replace(password, ""), tidegate_testkit::PATIENCE);
        let refused = open.unwrap().command::<String>(&redis::cmd("PING")).await.unwrap_err();
        assert!(matches!(refused, Error::Away(_)), "{refused}");
    }

    fn protect(redis: &tidegate_testkit::Redis) {
        redis::cmd("ACL")
            .arg(&["SETUSER", "default", "resetpass", ">right"])
            .exec(&mut redis.connection())
            .unwrap();
    }

    type Served = (tidegate_testkit::Redis, tempfile::TempDir);

    /// A sentinel of this master, which it calls `main`.
    fn sentinel_of(master: &tidegate_testkit::Redis) -> Served {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sentinel.conf");
        let (_, port) = master.url.rsplit_once(':').unwrap();
        let text =
            format!("sentinel monitor main 127.0.0.1 {port} 1\nsentinel auth-pass main right\n");
        std::fs::write(&file, text).unwrap();
        let arguments = [file.to_str().unwrap(), "--sentinel"];
        (tidegate_testkit::Redis::start_as(&arguments).unwrap(), folder)
    }

    #[tokio::test]
    async fn a_master_with_a_password_is_found_through_sentinels_with_and_without_one() {
        let Some(master) = tidegate_testkit::Redis::start() else { return };
        let (sentinel, _folder) = sentinel_of(&master);
        protect(&master);
        let (_, host) = sentinel.url.split_once("://").unwrap();
        let url = format!("redis+sentinel://:right@{host},{host}/main");
        is_served(&url, ":right@").await;
        protect(&sentinel);
        is_served(&url, ":right@").await;
    }

    /// A cluster of one node.
    async fn cluster() -> Option<Served> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nodes.conf");
        let node = tidegate_testkit::Redis::start_as(&[
            "--cluster-enabled",
            "yes",
            "--cluster-config-file",
            file.to_str().unwrap(),
        ])?;
        let mut connection = node.connection();
        redis::cmd("CLUSTER").arg(&["ADDSLOTSRANGE", "0", "16383"]).exec(&mut connection).unwrap();
        loop {
            let info: String = redis::cmd("CLUSTER").arg("INFO").query(&mut connection).unwrap();
            if info.contains("cluster_state:ok") {
                return Some((node, folder));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    #[tokio::test]
    async fn a_cluster_with_a_password_is_served() {
        let Some((node, _folder)) = cluster().await else { return };
        protect(&node);
        let (_, host) = node.url.split_once("://").unwrap();
        is_served(&format!("redis+cluster://:right@{host},{host}"), ":right@").await;
    }

    /// Repeats a command until its answer is as wanted.
    async fn until(connection: &Connection, command: &Cmd, wanted: impl Fn(i64) -> bool) -> i64 {
        let answered = async {
            loop {
                match connection.command(command).await {
                    Ok(answer) if wanted(answer) => return answer,
                    _ => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        };
        tokio::time::timeout(tidegate_testkit::PATIENCE, answered).await.expect("no such answer")
    }

    #[tokio::test]
    async fn a_silent_host_hides_no_other() {
        // It accepts connections and says nothing.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let silent = silent.local_addr().unwrap();
        let Some(master) = tidegate_testkit::Redis::start() else { return };
        let (sentinel, node) = (sentinel_of(&master), cluster().await.unwrap());
        let host = |(redis, _): &Served| redis.url.replace("redis://", "");
        for url in [
            format!("redis+sentinel://{silent},{}/main", host(&sentinel)),
            format!("redis+cluster://{silent},{}", host(&node)),
            format!("redis+cluster://{},{silent}", host(&node)),
        ] {
            let connection = Connection::open(&url, ANSWER_WITHIN).unwrap();
            until(&connection, redis::cmd("INCR").arg("calls"), |_| true).await;
        }
    }

    #[tokio::test]
    async fn after_a_failover_the_address_is_asked_again_but_not_by_every_caller() {
        let Some(redis) = tidegate_testkit::Redis::start() else { return };
        let connection = std::sync::Arc::new(Connection::open(&redis.url, ANSWER_WITHIN).unwrap());
        let mut id = redis::cmd("CLIENT");
        id.arg("ID");
        let old = until(&connection, &id, |_| true).await;
        let mut operator = redis.connection();
        let mut received = || -> u64 {
            let info: String = redis::cmd("INFO").arg("stats").query(&mut operator).unwrap();
            let count = info.split("total_connections_received:").nth(1).unwrap();
            count.lines().next().unwrap().parse().unwrap()
        };
        let (before, begun) = (received(), std::time::Instant::now());
        redis::cmd("CLIENT").arg("PAUSE").arg(1_000).exec(&mut redis.connection()).unwrap();
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let (connection, id) = (std::sync::Arc::clone(&connection), id.clone());
            callers.spawn(async move { connection.command::<i64>(&id).await });
        }
        callers.join_all().await;
        let silent = until(&connection, &id, |id| id != old).await;
        // One of them was the operator's.
        let made = u128::from(received() - before - 1);
        assert!(made <= begun.elapsed().as_millis() / ANSWER_WITHIN.as_millis() + 1, "{made}");

        let replica_of = |host: &[&str]| {
            redis::cmd("REPLICAOF").arg(host).exec(&mut redis.connection()).unwrap();
        };
        replica_of(&["127.0.0.1", "1"]);
        let call = crate::script::Scripts::new().beat;
        let arguments = [b"worker".to_vec(), b"15".to_vec()];
        let deadline = std::time::Instant::now() + tidegate_testkit::PATIENCE;
        while until(&connection, &id, |_| true).await == silent {
            let refused = connection.run(&call, &["workers".to_owned()], &arguments).await;
            assert!(matches!(refused, Err(Error::Away(_))), "{refused:?}");
            assert!(std::time::Instant::now() < deadline, "the connection to a replica stays");
        }
        replica_of(&["NO", "ONE"]);
        until(&connection, redis::cmd("INCR").arg("calls"), |_| true).await;
    }
}
