//! Keys of a wrong type, of another program or made by hand. A script that meets one fails at each
//! call.

use redis::cmd;

use crate::{
    error::Error,
    key::{self, ModelKeys},
    quota::Quota,
};

/// A key that the scripts cannot work with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongKey {
    /// The key's name.
    pub key: String,
    /// The key's type.
    pub is: String,
    /// The type that the scripts need.
    pub needed: &'static str,
}

impl Quota {
    /// The keys of the fleet and of all models that have a wrong type; empty without a Redis.
    ///
    /// # Errors
    /// [`Error::Away`].
    pub async fn wrong_keys(&self) -> Result<Vec<WrongKey>, Error> {
        let Some(redis) = &self.shared.redis else { return Ok(Vec::new()) };
        let prefix = &redis.prefix;
        let mut keys = vec![
            (key::workers(prefix), "zset"),
            (key::lanes(prefix), "hash"),
            (key::worker_statuses(prefix), "hash"),
            (key::holds(prefix), "hash"),
        ];
        for model in self.shared.models.values() {
            let of_model = ModelKeys::new(prefix, &model.quota_name());
            let [ledger, entries, state, leases, day] = of_model.common();
            keys.extend([
                (ledger, "zset"),
                (entries, "hash"),
                (state, "string"),
                (leases, "zset"),
                (day, "string"),
                (of_model.gate(), "string"),
                (of_model.known(), "string"),
                (of_model.log(), "list"),
                (of_model.history(&model.id), "hash"),
                (of_model.enqueued(&model.id), "hash"),
            ]);
        }
        // Models of one group share their keys.
        keys.sort_unstable();
        keys.dedup();
        let mut wrong = Vec::new();
        for (key, needed) in keys {
            let is: String = redis.connection.command(cmd("TYPE").arg(&key)).await?;
            if is != needed && is != "none" {
                wrong.push(WrongKey { key, is, needed });
            }
        }
        Ok(wrong)
    }
}
