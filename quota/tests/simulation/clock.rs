//! Redis under the simulation's clock. The scripts take the time as an argument. The times to live
//! that they set are read back after every step, replaced by very long ones, and carried out when
//! the simulation's clock has reached them.

use std::collections::BTreeMap;

use redis::Connection;

use crate::event::Micros;

/// Reads the times to live that the last step set, and replaces each with one that no test
/// outlives: a key that still has that one was not renewed. KEYS: none. ARGV: pattern of the keys.
const TAKE_TIMES_TO_LIVE: &str = r"
local found = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  local left = redis.call('PTTL', key)
  if left < 5000000000000 then
    found[#found + 1] = key
    found[#found + 1] = left
    redis.call('PEXPIRE', key, 10000000000000)
  end
end
return found";

/// Milliseconds that no test outlives, as in the script.
const FOR_EVER: u64 = 10_000_000_000_000;

/// Times to live are read back some milliseconds late; the scripts set tenths of seconds.
const GRAIN: u64 = 100;

/// When the simulation's clock ends each key's life.
#[derive(Default)]
pub(crate) struct Expiry {
    ends: BTreeMap<String, Micros>,
    /// Monotone, while the clock that the scripts see may step back.
    elapsed: Micros,
}

impl Expiry {
    /// Lets time pass and removes expired keys.
    pub(crate) fn advance(&mut self, connection: &mut Connection, elapsed: Micros) {
        self.elapsed = elapsed;
        let gone: Vec<String> = self
            .ends
            .iter()
            .filter(|(_, end)| **end <= elapsed)
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            redis::cmd("DEL").arg(&key).exec(connection).unwrap();
            self.ends.remove(&key);
        }
    }

    /// Takes over the times to live that the last step set. Every key must have one.
    pub(crate) fn record(&mut self, connection: &mut Connection, prefix: &str) {
        let found: Vec<(String, i64)> = redis::cmd("EVAL")
            .arg(TAKE_TIMES_TO_LIVE)
            .arg(0)
            .arg(format!("{prefix}:*"))
            .query(connection)
            .unwrap();
        for (key, left) in found {
            assert!(left >= 0, "{key} lives for ever");
            let millis = u64::try_from(left).unwrap().next_multiple_of(GRAIN);
            self.ends.insert(key, self.elapsed + millis * 1_000);
        }
    }

    /// A random key, for a server that evicts.
    pub(crate) fn some_key(&self, part: f64) -> Option<&String> {
        self.ends.keys().nth((part * self.ends.len() as f64) as usize)
    }

    /// A copy of everything, for a replica that lags behind.
    pub(crate) fn dump(&self, connection: &mut Connection) -> Vec<(String, Vec<u8>)> {
        let dump = |key: &String| -> Option<Vec<u8>> {
            redis::cmd("DUMP").arg(key).query(connection).unwrap()
        };
        let values: Vec<_> = self.ends.keys().map(dump).collect();
        let keys = self.ends.keys().cloned();
        keys.zip(values).filter_map(|(key, value)| Some((key, value?))).collect()
    }

    /// The replica takes over: Redis has exactly its data.
    pub(crate) fn restore(&mut self, connection: &mut Connection, dump: &[(String, Vec<u8>)]) {
        redis::cmd("FLUSHALL").exec(connection).unwrap();
        for (key, value) in dump {
            redis::cmd("RESTORE").arg(key).arg(FOR_EVER).arg(value).exec(connection).unwrap();
        }
        self.ends.retain(|key, _| dump.iter().any(|(there, _)| there == key));
        for (key, _) in dump {
            self.ends.entry(key.clone()).or_insert(self.elapsed + 60_000_000);
        }
    }

    pub(crate) fn forget(&mut self, key: &str) {
        self.ends.remove(key);
    }
}
