//! A Redis in memory.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    server::{Server, leashed, on_path},
    skipped,
};

/// A `redis-server` or `valkey-server` on loopback that saves nothing. It ends with the value, and
/// with the test process at the latest.
#[derive(Debug)]
pub struct Redis {
    server: Option<Server>,
    program: PathBuf,
    port: u16,
    folder: TempDir,
}

impl Redis {
    /// `None`, said aloud, where none is installed: see [`skipped`].
    #[must_use]
    pub fn start() -> Option<Self> {
        let Some(program) = on_path(&["redis-server", "valkey-server"]) else {
            return skipped(
                "neither redis-server nor valkey-server is on the PATH; install one, or run `make setup`",
            );
        };
        let folder = tempfile::tempdir().unwrap();
        let command = |[port]: &[u16; 1]| command(&program, *port, folder.path());
        let (server, [port]) = Server::on_free_ports(command, |[port]| answers(*port));
        Some(Self { server: Some(server), program, port, folder })
    }

    /// One for all tests of a process, each of which takes key prefixes of its own
    /// ([`unique`](crate::unique)).
    #[must_use]
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Redis>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    /// `redis://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}:{}", Ipv4Addr::LOCALHOST, self.port)
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
        let command = command(&self.program, self.port, self.folder.path());
        let server = Server::start(command, || answers(self.port));
        self.server = Some(server.expect("its port is free"));
    }
}

fn command(program: &Path, port: u16, folder: &Path) -> Command {
    let mut command = leashed(program);
    command.args(["--bind", &Ipv4Addr::LOCALHOST.to_string(), "--port", &port.to_string()]);
    command.args(["--save", "", "--appendonly", "no", "--dir"]).arg(folder);
    command
}

fn answers(port: u16) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 7];
        stream.read_exact(&mut answer)?;
        std::io::Result::Ok(&answer == b"+PONG\r\n")
    };
    ask().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_answers_ends_and_starts_again_where_it_was() {
        let Some(mut redis) = Redis::start() else { return };
        let port = redis.port;
        assert!(answers(port));
        redis.kill();
        assert!(!answers(port));
        redis.restart();
        assert!(answers(port));
        drop(redis);
        assert!(!answers(port));
    }
}
