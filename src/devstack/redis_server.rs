//! A private Redis: in memory, on loopback, without persistence.

use std::{ffi::OsString, path::Path, time::Duration};

use anyhow::{Context, anyhow};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    child::{Child, free_ports, with_free_ports},
    server_program::REDIS,
};

/// Time limit for its start, which takes some 20 ms; a busy machine takes longer.
const READY_WITHIN: Duration = Duration::from_secs(15);

/// A running `redis-server` or `valkey-server`.
#[derive(Debug)]
pub struct RedisServer {
    pub(super) child: Child,
    port: u16,
    // Removed on drop.
    _folder: TempDir,
}

impl RedisServer {
    /// Starts one and waits until it answers.
    ///
    /// # Errors
    /// There is no such program (the error says how to install it), or it does not start.
    pub async fn start() -> anyhow::Result<Self> {
        let program = REDIS.find().with_context(|| REDIS.missing())?;
        let started = with_free_ports(async || Self::attempt(&program).await).await;
        let broken = || format!("the embedded Redis ({}) does not start", program.display());
        started.with_context(broken)
    }

    async fn attempt(program: &Path) -> anyhow::Result<Self> {
        let [port] = free_ports()?;
        let folder = tempfile::Builder::new()
            .prefix("tidegate-redis-")
            .tempdir()
            .context("no temporary folder can be made")?;
        let port_text = port.to_string();
        let fixed = [
            "--port",
            &port_text,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--maxmemory-policy",
            "noeviction",
            "--dir",
        ];
        let arguments = fixed.into_iter().map(OsString::from).chain([folder.path().into()]);
        let mut child = Child::start("redis-server", program, arguments)?;
        child.wait_until_ready(READY_WITHIN, async || ping(port).await).await?;
        Ok(Self { child, port, _folder: folder })
    }

    /// `redis://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

async fn ping(port: u16) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(b"PING\r\n").await?;
    let mut answer = [0; 7];
    stream.read_exact(&mut answer).await?;
    if &answer == b"+PONG\r\n" {
        Ok(())
    } else {
        Err(anyhow!("PING was answered by {:?}", String::from_utf8_lossy(&answer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_starts_answers_and_goes() {
        if REDIS.find().is_none() {
            tidegate_testkit::skip("no redis-server on the PATH");
            return;
        }
        let server = RedisServer::start().await.unwrap();
        let port = server.port;
        assert_eq!(server.url(), format!("redis://127.0.0.1:{port}"));
        ping(port).await.unwrap();
        server.child.stop().await;
        assert!(ping(port).await.is_err());
    }
}
