//! A Redis in memory.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::Duration,
};

use redis::{Client, Connection, RedisResult};
use tempfile::TempDir;

use crate::{
    server::{Server, leashed, on_path},
    skip,
};

/// A `redis-server` or `valkey-server` on loopback that saves nothing. It ends with the value, and
/// with the test process at the latest.
#[derive(Debug)]
pub struct Redis {
    /// `redis://127.0.0.1:<port>`.
    pub url: String,
    server: Option<Server>,
    program: PathBuf,
    arguments: Vec<String>,
    port: u16,
}

impl Redis {
    /// `None` if none is installed: see [`skip`].
    pub fn start() -> Option<Self> {
        Self::start_as(&[])
    }

    /// As [`Self::start`], with arguments before the usual ones: a configuration file, the mode of a
    /// cluster's node or of a sentinel.
    pub fn start_as(arguments: &[&str]) -> Option<Self> {
        let Some(program) = on_path(&["redis-server", "valkey-server"]) else {
            skip(
                "neither redis-server nor valkey-server is on the PATH; install one, or run `make setup`",
            );
            return None;
        };
        let folder = folder();
        let arguments = arguments.iter().map(ToString::to_string).collect::<Vec<_>>();
        let command = |[port]: &[u16; 1]| command(&program, &arguments, *port, &folder);
        let (server, [port]) = Server::on_free_ports(command, |[port]| answers(&url(*port)));
        Some(Self { url: url(port), server: Some(server), program, arguments, port })
    }

    /// One for all tests of a process, each of which takes key prefixes of its own
    /// ([`unique`](crate::unique)).
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Redis>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    /// A connection of its own.
    ///
    /// # Panics
    /// It does not answer.
    pub fn connection(&self) -> Connection {
        connect(&self.url).unwrap()
    }

    /// Processor time that it has taken so far; `None` where the system does not say.
    pub fn processor_time(&self) -> Option<Duration> {
        self.server.as_ref()?.processor_time()
    }

    /// Ends it now, and with it all that it held.
    pub fn kill(&mut self) {
        self.server = None;
    }

    /// Starts it again, empty, on the port that it had.
    ///
    /// # Panics
    /// Another program has taken the port.
    pub fn restart(&mut self) {
        self.kill();
        let folder = folder();
        let command = command(&self.program, &self.arguments, self.port, &folder);
        let server = Server::start(command, || answers(&self.url));
        self.server = Some(server.expect("its port is free"));
    }
}

/// An empty one, so that there is nothing to load. Nothing is saved there either, so that it can go
/// when the server has started; a `static` would never remove it.
fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn command(program: &Path, arguments: &[String], port: u16, folder: &TempDir) -> Command {
    let mut command = leashed(program);
    command.args(arguments);
    command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
    command.args(["--save", "", "--appendonly", "no", "--dir"]).arg(folder.path());
    command
}

fn url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

fn connect(url: &str) -> RedisResult<Connection> {
    Client::open(url)?.get_connection()
}

fn answers(url: &str) -> bool {
    connect(url).and_then(|mut connection| redis::cmd("PING").exec(&mut connection)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_answers_ends_and_starts_again_where_it_was() {
        let Some(mut redis) = Redis::start() else { return };
        let url = redis.url.clone();
        assert!(answers(&url));
        redis.kill();
        assert!(!answers(&url));
        redis.restart();
        assert!(answers(&url));
        drop(redis);
        assert!(!answers(&url));
    }
}
