//! The connection to Redis: one server, a cluster, or through sentinels, always with short
//! time-outs.

use std::{fmt, pin::Pin, time::Duration};

use parking_lot::Mutex as BriefMutex;
use redis::{
    Client, Cmd, ErrorKind, FromRedisValue, RedisError, Value,
    aio::{ConnectionManager, ConnectionManagerConfig, MultiplexedConnection},
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
    sentinel::{SentinelClient, SentinelServerType},
};
use tokio::sync::Mutex;

use crate::{error::Error, script::Script};

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

/// Checks whether [`Connection::open`] can use a URL.
pub(crate) fn check_url(url: &str) -> Result<(), String> {
    let nodes = match url.split_once("://") {
        Some(("redis+cluster", nodes)) => nodes,
        Some(("redis+sentinel", rest)) => sentinels_and_master(rest)?.0,
        _ => return Client::open(url).map(drop).map_err(|error| error.to_string()),
    };
    nodes.split(',').try_for_each(|node| check_url(&format!("redis://{node}")))
}

fn sentinels_and_master(rest: &str) -> Result<(&str, &str), String> {
    rest.split_once('/')
        .filter(|(_, master)| !master.is_empty())
        .ok_or_else(|| "write redis+sentinel://host:port,host:port/master-name".to_owned())
}

impl Connection {
    /// Opens `redis://`, `rediss://`, `unix://`, `redis+cluster://host:port,host:port` or
    /// `redis+sentinel://host:port,host:port/master-name`. Connects at the first use, so that a
    /// worker may start while Redis is away.
    pub(crate) fn open(url: &str, answer_within: Duration) -> Result<Self, Error> {
        let bad = |error: RedisError| Error::Address(error.to_string());
        let kind = if let Some(nodes) = url.strip_prefix("redis+cluster://") {
            let client =
                ClusterClient::builder(nodes.split(',').map(|node| format!("redis://{node}")))
                    .connection_timeout(answer_within)
                    .response_timeout(answer_within)
                    .retries(0)
                    .build()
                    .map_err(bad)?;
            Kind::Cluster { client: Box::new(client), connection: Mutex::new(None) }
        } else if let Some(rest) = url.strip_prefix("redis+sentinel://") {
            let (nodes, master) = sentinels_and_master(rest).map_err(Error::Address)?;
            let nodes: Vec<String> =
                nodes.split(',').map(|node| format!("redis://{node}")).collect();
            let client = SentinelClient::build(nodes, master, None, SentinelServerType::Master)
                .map_err(bad)?;
            Kind::Sentinel { client: Box::new(Mutex::new(client)), connection: Mutex::new(None) }
        } else {
            let config = ConnectionManagerConfig::new()
                .set_connection_timeout(Some(answer_within))
                .set_response_timeout(Some(answer_within))
                // The callers' breaker pauses. More attempts in one command would end in a time-out
                // that hides the first error.
                .set_number_of_retries(0);
            let client = Client::open(url).map_err(bad)?;
            let manager = ConnectionManager::new_lazy_with_config(client.clone(), config.clone())
                .map_err(bad)?;
            Kind::Single { client: Box::new(client), config, manager: BriefMutex::new(manager) }
        };
        Ok(Self { kind, address: without_password(url), answer_within })
    }

    /// Runs a script.
    pub(crate) async fn run(
        &self,
        script: &Script,
        keys: &[String],
        arguments: &[Vec<u8>],
    ) -> Result<Vec<Value>, Error> {
        self.within(Box::pin(async {
            match &self.kind {
                Kind::Single { manager, .. } => {
                    let mut manager = manager.lock().clone();
                    script.run(&mut manager, keys, arguments).await
                }
                Kind::Cluster { client, connection } => {
                    let mut connection = cluster(client, connection).await?;
                    script.run(&mut connection, keys, arguments).await
                }
                Kind::Sentinel { client, connection } => {
                    let answer =
                        script.run(&mut sentinel(client, connection).await?, keys, arguments).await;
                    forget_if_broken(answer.as_ref().err(), connection).await;
                    answer
                }
            }
        }))
        .await
    }

    /// Runs one command.
    pub(crate) async fn command<T: FromRedisValue + Send>(
        &self,
        command: &Cmd,
    ) -> Result<T, Error> {
        self.within(Box::pin(async {
            match &self.kind {
                Kind::Single { manager, .. } => {
                    let mut manager = manager.lock().clone();
                    command.query_async(&mut manager).await
                }
                Kind::Cluster { client, connection } => {
                    command.query_async(&mut cluster(client, connection).await?).await
                }
                Kind::Sentinel { client, connection } => {
                    let answer =
                        command.query_async(&mut sentinel(client, connection).await?).await;
                    forget_if_broken(answer.as_ref().err(), connection).await;
                    answer
                }
            }
        }))
        .await
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
}
