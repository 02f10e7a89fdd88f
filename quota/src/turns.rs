//! Turns of callers without a ticket (HTTP clients), kept in Redis under a name with which they
//! come back.

use std::time::Duration;

use redis::{FromRedisValue as _, Value};

use crate::{key, quota::Quota, request::Ticket};

/// Maximum number of turns that are kept of one door's key.
pub const MAX_TURNS: u64 = 1_000;

impl Quota {
    /// Keeps a turn of this door's key under a name for `lives`. Returns false if [`MAX_TURNS`] are
    /// kept or Redis is away: the caller then starts anew.
    pub async fn keep_turn(&self, door: &str, name: &str, turn: Ticket, lives: Duration) -> bool {
        let lives = lives.as_millis().max(1).to_string();
        let (epoch, position) = (format!("{:020}", turn.epoch), format!("{:020}", turn.position));
        let reply = self.run_turns_script(door, [name, &lives, &epoch, &position]).await;
        reply.is_some_and(|reply| reply.first() == Some(&Value::Int(1)))
    }

    /// Takes the earliest turn of this door's key under a name.
    pub async fn take_turn(&self, door: &str, name: &str) -> Option<Ticket> {
        let reply = self.run_turns_script(door, [name, "0", "", ""]).await?;
        let mut numbers =
            reply.into_iter().map(|it| String::from_redis_value(it).ok()?.parse().ok());
        Some(Ticket { epoch: numbers.next()??, position: numbers.next()?? })
    }

    async fn run_turns_script(
        &self,
        door: &str,
        [name, lives, epoch, position]: [&str; 4],
    ) -> Option<Vec<Value>> {
        let redis = self.redis()?;
        let keys = key::turns(&redis.prefix, door);
        let most = MAX_TURNS.to_string();
        let arguments =
            [name, most.as_str(), lives, epoch, position].map(|it| it.as_bytes().to_vec());
        redis.run(&redis.scripts.turns, &keys, &arguments).await.ok()
    }
}
