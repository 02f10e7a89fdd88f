//! What all workers of a fleet have in common, kept once instead of by each of them: a worker names
//! it, and whoever wants to know it asks for it by the name.

use std::time::Duration;

use crate::{error::Error, key, quota::Quota};

/// After the last worker that kept it.
const LIVES: Duration = Duration::from_secs(900);

impl Quota {
    /// Keeps `text` for the fleet, for a quarter of an hour from now on, under a name that no other
    /// text has. To be repeated within that time, which takes one short command. Without a Redis
    /// there is no fleet. No credential belongs into it.
    ///
    /// # Errors
    /// [`Error::Away`].
    pub async fn keep_common(&self, name: &str, text: &str) -> Result<(), Error> {
        let Some(redis) = self.redis() else { return Ok(()) };
        let key = key::common(&redis.prefix, name);
        let mut lives = redis::cmd("EXPIRE");
        lives.arg(&key).arg(LIVES.as_secs());
        if redis.connection.command::<i64>(&lives).await? == 1 {
            return Ok(());
        }
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(text).arg("EX").arg(LIVES.as_secs());
        redis.connection.command::<Option<String>>(&set).await.map(drop)
    }

    /// What is kept under this name; `None` where nobody keeps it any more.
    ///
    /// # Errors
    /// [`Error::Away`].
    pub async fn common(&self, name: &str) -> Result<Option<String>, Error> {
        let Some(redis) = self.redis() else { return Ok(None) };
        let mut get = redis::cmd("GET");
        redis.connection.command(get.arg(key::common(&redis.prefix, name))).await
    }
}
