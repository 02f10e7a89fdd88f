//! Makes the connection to Redis, in a task of its own: a caller that waits no longer does not end
//! it, and there is one attempt at a time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, RedisError,
    aio::MultiplexedConnection, cluster::ClusterClient, cluster_async::ClusterConnection,
    sentinel::SentinelClient,
};
use tokio::sync::watch;

/// What makes connections.
pub(crate) enum Source {
    Single(Box<Client>, AsyncConnectionConfig),
    Cluster(Box<ClusterClient>),
    Sentinel(Box<tokio::sync::Mutex<SentinelClient>>),
}

impl Source {
    async fn connect(&self) -> Result<Live, RedisError> {
        Ok(match self {
            Self::Single(client, config) => {
                Live::Server(client.get_multiplexed_async_connection_with_config(config).await?)
            }
            Self::Cluster(client) => Live::Cluster(client.get_async_connection().await?),
            Self::Sentinel(client) => {
                Live::Server(client.lock().await.get_async_connection().await?)
            }
        })
    }
}

/// A connection for all tasks of the process.
#[derive(Clone)]
pub(crate) enum Live {
    Server(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Live {
    pub(crate) async fn send<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisError> {
        match self.clone() {
            Self::Server(mut server) => command.query_async(&mut server).await,
            Self::Cluster(mut cluster) => command.query_async(&mut cluster).await,
        }
    }
}

/// A connection and the time when it was made.
type Made = Result<(Live, Instant), RedisError>;

/// An attempt to connect, and its end.
#[derive(Clone)]
pub(crate) struct Attempt(watch::Receiver<Option<Made>>);

impl Attempt {
    fn start(source: Arc<Source>) -> Self {
        let (end, attempt) = watch::channel(None);
        tokio::spawn(async move {
            let made = source.connect().await.map(|live| (live, Instant::now()));
            end.send_replace(Some(made));
        });
        Self(attempt)
    }

    /// Waits for the end of the attempt.
    pub(crate) async fn connection(&self) -> Result<Live, RedisError> {
        let mut attempt = self.0.clone();
        match attempt.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(made)) => made.clone().map(|(live, _)| live),
            _ => Err(RedisError::from((ErrorKind::Io, "the program ends"))),
        }
    }

    fn has_failed(&self) -> bool {
        match &*self.0.borrow() {
            Some(made) => made.is_err(),
            None => self.0.has_changed().is_err(),
        }
    }

    /// Whether the connection must be replaced after this error; `None` for no answer in time. One
    /// that has just been made is given `patience` first: another would not answer sooner.
    fn is_useless(&self, error: Option<&RedisError>, patience: Duration) -> bool {
        let end = self.0.borrow();
        let Some(Ok((live, made))) = &*end else { return false };
        match error.filter(|error| !error.is_timeout() && !is_read_only(error)) {
            None => made.elapsed() >= patience,
            // A cluster's client connects to its nodes again by itself.
            Some(error) => {
                matches!(live, Live::Server(_))
                    && (error.is_io_error() || error.is_unrecoverable_error())
            }
        }
    }
}

/// Whether the server is a replica: after a failover the address may lead to another.
pub(crate) fn is_read_only(error: &RedisError) -> bool {
    // Redis 6 names it only in the text of a script's error.
    error.code() == Some("READONLY") || error.to_string().contains("READONLY")
}

/// The present attempt or connection.
pub(crate) struct Present {
    source: Arc<Source>,
    attempt: Mutex<Option<Attempt>>,
}

impl Present {
    pub(crate) fn new(source: Source) -> Self {
        Self { source: Arc::new(source), attempt: Mutex::default() }
    }

    /// The present attempt; a new one if there is none or it has failed.
    pub(crate) fn attempt(&self) -> Attempt {
        let mut present = self.attempt.lock();
        if let Some(attempt) = present.as_ref().filter(|attempt| !attempt.has_failed()) {
            return attempt.clone();
        }
        present.insert(Attempt::start(Arc::clone(&self.source))).clone()
    }

    /// Drops the attempt's connection if it is useless: the next command makes another.
    pub(crate) fn replace_useless(
        &self,
        attempt: &Attempt,
        error: Option<&RedisError>,
        patience: Duration,
    ) {
        let mut present = self.attempt.lock();
        if present.as_ref().is_some_and(|present| present.0.same_channel(&attempt.0))
            && attempt.is_useless(error, patience)
        {
            *present = None;
        }
    }
}
