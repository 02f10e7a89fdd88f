//! The connection to Redis: one server, a cluster, or through sentinels, always with short
//! time-outs.

use std::{fmt, pin::Pin, time::Duration};

use parking_lot::Mutex as BriefMutex;
use redis::{
    Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, FromRedisValue, IntoConnectionInfo,
    RedisConnectionInfo, RedisError, ServerErrorKind, TlsMode, Value,
    aio::{ConnectionManager, ConnectionManagerConfig, MultiplexedConnection},
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
    sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType},
};
use tokio::sync::Mutex;

use crate::{address::Address, error::Error, script::Script};

/// The longest wait for an answer; after it the worker falls back to its own share.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_millis(250);

/// Error code of the scripts when a quota has a newer layout than theirs.
const OUTDATED: &str = "TIDEGATE-OUTDATED";

/// Boxed, because the client's futures nest so deeply that callers' crates would not compile.
type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, RedisError>> + Send + 'a>>;

/// One connection for all tasks of the process.
pub(crate) struct Connection {
    kind: Kind,
    address: String,
    answer_within: Duration,
}

enum Kind {
    Single {
        client: Box<Client>,
        config: ConnectionManagerConfig,
        manager: BriefMutex<ConnectionManager>,
    },
    Cluster {
        client: Box<ClusterClient>,
        connection: Mutex<Option<ClusterConnection>>,
    },
    Sentinel {
        client: Box<Mutex<SentinelClient>>,
        connection: Mutex<Option<MultiplexedConnection>>,
    },
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
        let kind = match Address::read(url).map_err(Error::Address)? {
            Address::Cluster(nodes) => {
                let client = ClusterClient::builder(nodes)
                    .connection_timeout(answer_within)
                    .response_timeout(answer_within)
                    .retries(0)
                    .build()
                    .map_err(bad)?;
                Kind::Cluster { client: Box::new(client), connection: Mutex::new(None) }
            }
            Address::Sentinel(nodes, master) => {
                let client = sentinels(nodes, master).map_err(bad)?;
                Kind::Sentinel {
                    client: Box::new(Mutex::new(client)),
                    connection: Mutex::new(None),
                }
            }
            Address::Single(url) => {
                let config = ConnectionManagerConfig::new()
                    .set_connection_timeout(Some(answer_within))
                    .set_response_timeout(Some(answer_within))
                    // The callers' breaker pauses. More attempts in one command would end in a
                    // time-out that hides the first error.
                    .set_number_of_retries(0);
                let client = Client::open(url).map_err(bad)?;
                let manager =
                    ConnectionManager::new_lazy_with_config(client.clone(), config.clone())
                        .map_err(bad)?;
                Kind::Single { client: Box::new(client), config, manager: BriefMutex::new(manager) }
            }
        };
        Ok(Self { kind, address: without_password(url), answer_within })
    }

    /// Runs a script: one round trip; two when the server has lost its scripts.
    pub(crate) async fn run(
        &self,
        script: &Script,
        keys: &[String],
        arguments: &[Vec<u8>],
    ) -> Result<Vec<Value>, Error> {
        self.within(Box::pin(async {
            match self.send(&script.by_hash(keys, arguments)).await {
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                    self.send(&script.by_text(keys, arguments)).await
                }
                answer => answer,
            }
        }))
        .await
    }

    /// Runs one command.
    pub(crate) async fn command<T: FromRedisValue + Send>(
        &self,
        command: &Cmd,
    ) -> Result<T, Error> {
        self.within(Box::pin(self.send(command))).await
    }

    async fn send<T: FromRedisValue + Send>(&self, command: &Cmd) -> Result<T, RedisError> {
        match &self.kind {
            Kind::Single { manager, .. } => {
                let mut manager = manager.lock().clone();
                command.query_async(&mut manager).await
            }
            Kind::Cluster { client, connection } => {
                command.query_async(&mut cluster(client, connection).await?).await
            }
            Kind::Sentinel { client, connection } => {
                let answer = command.query_async(&mut sentinel(client, connection).await?).await;
                forget_if_broken(answer.as_ref().err(), connection).await;
                answer
            }
        }
    }

    async fn within<T>(&self, answer: Answer<'_, T>) -> Result<T, Error> {
        match tokio::time::timeout(self.answer_within, answer).await {
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
            Ok(Err(error)) if is_not_let_in(&error) => {
                self.knock_again();
                Err(Error::Away(format!(
                    "{}: it refuses the user or the password ({error}); correct redis.url or TIDEGATE_REDIS__URL",
                    self.address
                )))
            }
            Ok(Err(error)) => Err(Error::Away(format!("{}: {error}", self.address))),
            Err(_) => {
                self.forget_silent();
                let within = self.answer_within;
                Err(Error::Away(format!("{}: no answer within {within:?}", self.address)))
            }
        }
    }

    /// Replaces the manager, which would keep a refusal for ever although the password may be
    /// corrected at the server.
    fn knock_again(&self) {
        if let Kind::Single { client, config, manager } = &self.kind
            && let Ok(new) =
                ConnectionManager::new_lazy_with_config((**client).clone(), config.clone())
        {
            *manager.lock() = new;
        }
    }

    /// Drops the connection to a silent master: the next command asks the sentinels for the present
    /// one.
    fn forget_silent(&self) {
        if let Kind::Sentinel { connection, .. } = &self.kind
            && let Ok(mut connection) = connection.try_lock()
        {
            *connection = None;
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
    matches!(error.code(), Some("ERR" | "WRONGTYPE")) || error.to_string().contains("TIDEGATE")
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

async fn cluster(
    client: &ClusterClient,
    slot: &Mutex<Option<ClusterConnection>>,
) -> Result<ClusterConnection, RedisError> {
    let mut slot = slot.lock().await;
    if let Some(connection) = &*slot {
        return Ok(connection.clone());
    }
    let connection = client.get_async_connection().await?;
    *slot = Some(connection.clone());
    Ok(connection)
}

async fn sentinel(
    client: &Mutex<SentinelClient>,
    slot: &Mutex<Option<MultiplexedConnection>>,
) -> Result<MultiplexedConnection, RedisError> {
    let mut slot = slot.lock().await;
    if let Some(connection) = &*slot {
        return Ok(connection.clone());
    }
    let connection = client.lock().await.get_async_connection().await?;
    *slot = Some(connection.clone());
    Ok(connection)
}

/// Drops a broken connection: after a failover the sentinels must be asked for the new master.
async fn forget_if_broken(error: Option<&RedisError>, slot: &Mutex<Option<MultiplexedConnection>>) {
    if error.is_some_and(|error| {
        error.is_unrecoverable_error() || error.is_connection_dropped() || error.is_io_error()
    }) {
        *slot.lock().await = None;
    }
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

    #[tokio::test]
    async fn a_master_with_a_password_is_found_through_sentinels_with_and_without_one() {
        let Some(master) = tidegate_testkit::Redis::start() else { return };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sentinel.conf");
        let (_, port) = master.url.rsplit_once(':').unwrap();
        let text =
            format!("sentinel monitor main 127.0.0.1 {port} 1\nsentinel auth-pass main right\n");
        std::fs::write(&file, text).unwrap();
        let sentinel = tidegate_testkit::Redis::start_as(&[file.to_str().unwrap(), "--sentinel"]);
        let sentinel = sentinel.unwrap();
        protect(&master);
        let (_, host) = sentinel.url.split_once("://").unwrap();
        let url = format!("redis+sentinel://:right@{host},{host}/main");
        is_served(&url, ":right@").await;
        protect(&sentinel);
        is_served(&url, ":right@").await;
    }

    #[tokio::test]
    async fn a_cluster_with_a_password_is_served() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nodes.conf");
        let node = tidegate_testkit::Redis::start_as(&[
            "--cluster-enabled",
            "yes",
            "--cluster-config-file",
            file.to_str().unwrap(),
        ]);
        let Some(node) = node else { return };
        let mut connection = node.connection();
        redis::cmd("CLUSTER").arg(&["ADDSLOTSRANGE", "0", "16383"]).exec(&mut connection).unwrap();
        loop {
            let info: String = redis::cmd("CLUSTER").arg("INFO").query(&mut connection).unwrap();
            if info.contains("cluster_state:ok") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        protect(&node);
        let (_, host) = node.url.split_once("://").unwrap();
        is_served(&format!("redis+cluster://:right@{host},{host}"), ":right@").await;
    }
}
