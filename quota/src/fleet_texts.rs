//! Texts that a fleet stores once instead of once for each worker. A worker publishes the name of a
//! text; a reader fetches the text by this name.

use std::time::Duration;

use crate::{error::Error, key, quota::Quota};

/// Life of a text after a worker last kept it.
const LIVES: Duration = Duration::from_secs(900);

impl Quota {
    /// Stores `text` for the fleet for 15 minutes under a name that no other text has. Repeat it
    /// within that time: that costs one short command. Does nothing without a Redis. The text must
    /// not contain a credential.
    ///
    /// # Errors
    /// [`Error::Away`].
    pub async fn keep_fleet_text(&self, name: &str, text: &str) -> Result<(), Error> {
        let Some(redis) = self.redis() else { return Ok(()) };
        let key = key::common(&redis.prefix, name);
        let lives = redis::Cmd::expire(&key, LIVES.as_secs().cast_signed());
        if redis.connection.command::<i64>(&lives).await? == 1 {
            return Ok(());
        }
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(text).arg("EX").arg(LIVES.as_secs());
        redis.connection.command::<Option<String>>(&set).await.map(drop)
    }

    /// The text with this name; `None` if no worker keeps it any more, or without a Redis.
    ///
    /// # Errors
    /// [`Error::Away`].
    pub async fn fleet_text(&self, name: &str) -> Result<Option<String>, Error> {
        let Some(redis) = self.redis() else { return Ok(None) };
        redis.connection.command(&redis::Cmd::get(key::common(&redis.prefix, name))).await
    }
}
