//! The mark: shows whether Redis has lost operators' settings.

use std::time::Duration;

use crate::{error::Error, key, quota::Quota, redis_store};

/// Life of the mark without renewal: twice that of operators' settings, so that it never ends
/// first.
const MARK_LIVES: Duration = Duration::from_secs(60 * 86_400);

impl Quota {
    /// Reads the mark: a name that Redis keeps until it loses everything, replaced whenever limits
    /// are set. `None` if Redis has lost it or never had it.
    ///
    /// # Errors
    /// [`Error::Away`]; also without a Redis.
    pub async fn mark(&self) -> Result<Option<String>, Error> {
        let (redis, key) = self.mark_key()?;
        redis.connection.command(&redis::Cmd::get(&key)).await
    }

    /// Extends the mark's life to 60 days from now, if there is one.
    ///
    /// # Errors
    /// The errors of [`Self::mark`].
    pub async fn keep_mark(&self) -> Result<(), Error> {
        let (redis, key) = self.mark_key()?;
        let lives = redis::Cmd::expire(&key, MARK_LIVES.as_secs().cast_signed());
        redis.connection.command::<i64>(&lives).await.map(drop)
    }

    /// Writes a mark, unless there is one.
    ///
    /// # Errors
    /// The errors of [`Self::mark`].
    pub async fn make_mark(&self) -> Result<(), Error> {
        self.write_mark("NX").await
    }

    /// Replaces the mark if there is one: after a loss in Redis no mark may appear.
    pub(crate) async fn renew_mark(&self) -> Result<(), Error> {
        if self.shared.redis.is_none() {
            return Ok(());
        }
        self.write_mark("XX").await
    }

    async fn write_mark(&self, only_if: &str) -> Result<(), Error> {
        let (redis, key) = self.mark_key()?;
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(format!("{:016x}", rand::random::<u64>())).arg(only_if);
        set.arg("EX").arg(MARK_LIVES.as_secs());
        redis.connection.command::<Option<String>>(&set).await.map(drop)
    }

    fn mark_key(&self) -> Result<(&redis_store::Store, String), Error> {
        let redis = self.shared.redis.as_ref();
        let redis = redis.ok_or_else(|| Error::Away("this limiter has none".to_owned()))?;
        Ok((redis, key::mark(&redis.prefix)))
    }
}
