//! The Lua scripts, joined from their parts when this crate is built.

use redis::{ErrorKind, RedisResult, ServerErrorKind, Value, aio::ConnectionLike};

/// One script, run by its hash; its text is sent when the server does not have it.
#[derive(Debug)]
pub(crate) struct Script {
    text: &'static str,
    hash: String,
}

macro_rules! script {
    ($name:literal, $($include:literal),+) => {
        concat!($(include_str!(concat!("../../lua/include/", $include, ".lua")),)+ include_str!(concat!("../../lua/", $name, ".lua")))
    };
}

const RESERVE: &str = script!("reserve-5", "arguments", "state", "ledger", "lanes", "gate", "learned");
const SETTLE: &str = script!("settle-5", "arguments", "state", "ledger", "gate", "learned");
const PAUSE: &str = script!("pause-4", "arguments", "state", "ledger", "gate");
const INSPECT: &str = script!("inspect-4", "arguments", "state", "ledger", "gate");

/// All scripts of the limiter.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) reserve: Script,
    pub(crate) settle: Script,
    pub(crate) pause: Script,
    pub(crate) inspect: Script,
}

impl Scripts {
    pub(crate) fn new() -> Self {
        Self {
            reserve: Script::new(RESERVE),
            settle: Script::new(SETTLE),
            pause: Script::new(PAUSE),
            inspect: Script::new(INSPECT),
        }
    }
}

impl Script {
    fn new(text: &'static str) -> Self {
        Self { text, hash: redis::Script::new(text).get_hash().to_owned() }
    }

    /// One round trip; two when the server has lost its scripts. `EVAL` and not `SCRIPT LOAD`, which some proxies block.
    pub(crate) async fn run(
        &self,
        connection: &mut impl ConnectionLike,
        keys: &[String],
        arguments: &[String],
    ) -> RedisResult<Vec<Value>> {
        match self.command("EVALSHA", &self.hash, keys, arguments).query_async(connection).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.command("EVAL", self.text, keys, arguments).query_async(connection).await
            }
            answer => answer,
        }
    }

    fn command(&self, verb: &str, body: &str, keys: &[String], arguments: &[String]) -> redis::Cmd {
        let mut command = redis::cmd(verb);
        command.arg(body).arg(keys.len()).arg(keys).arg(arguments);
        command
    }
}
