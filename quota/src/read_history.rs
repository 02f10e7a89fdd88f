//! Reads a model's history from Redis.

use std::{collections::BTreeMap, time::SystemTime};

use tidegate_types::{ModelId, seconds_since_1970};

use crate::{error::Error, key::ModelKeys, quota::Quota, usage_history::History};

impl Quota {
    /// A model's last hour and days, over the whole fleet; empty without a Redis.
    ///
    /// # Errors
    /// [`Error::UnknownModel`] or [`Error::Away`].
    pub async fn history(&self, model: &ModelId) -> Result<History, Error> {
        let model = self.find_model(model)?;
        let Some(redis) = &self.shared.redis else { return Ok(History::default()) };
        let keys = ModelKeys::new(&redis.prefix, &model.quota_name());
        let all = redis::Cmd::hgetall(keys.history(&model.id));
        let fields: BTreeMap<String, String> = redis.connection.command(&all).await?;
        let now = match redis.clock() {
            0 => seconds_since_1970(SystemTime::now()),
            clock => clock / 1_000_000,
        };
        Ok(History::from_fields(&fields, now))
    }
}
