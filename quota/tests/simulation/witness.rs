//! Invariants that are checked after every step. The witness keeps its own record of admissions and
//! settlements, and reads the ledger in Redis behind the limiter's back.

use std::collections::HashMap;

use redis::Connection;
use tidegate_quota::{Amounts, Dimension, PerDimension, Snapshot};

use crate::event::Micros;

/// Sums the ledger and its entries: ids in the ledger, entries, calls in flight, then the total and
/// the unsettled part of each dimension. KEYS: ledger, entries.
const SUMS: &str = r"
local sums, ids, flying, held = { 0, 0, 0, 0 }, redis.call('ZRANGE', KEYS[1], 0, -1), 0, { 0, 0, 0, 0 }
local inside = {}
for _, id in ipairs(ids) do
  inside[id] = true
end
local entries = redis.call('HGETALL', KEYS[2])
for index = 1, #entries, 2 do
  local _, _, condition, _, _, a, b, c, d = struct.unpack('<dBBBddddd', entries[index + 1])
  local each = { a, b, c, d }
  if condition ~= 1 then
    flying = flying + 1
  end
  for dimension = 1, 4 do
    if inside[entries[index]] then
      sums[dimension] = sums[dimension] + each[dimension]
      if condition == 0 then
        held[dimension] = held[dimension] + each[dimension]
      end
    end
  end
end
return { #ids, #entries / 2, flying, sums[1], sums[2], sums[3], sums[4], held[1], held[2], held[3], held[4] }";

struct Admitted {
    at: Micros,
    amounts: Amounts,
}

/// The witness's own ledger.
#[derive(Default)]
pub(crate) struct Witness {
    calls: HashMap<String, Admitted>,
    /// Until this time Redis may have lost data, or the clock jumped.
    since: Micros,
}

impl Witness {
    /// Admissions before now are no longer in the limiter's ledger.
    pub(crate) fn forget(&mut self, now: Micros) {
        self.calls.clear();
        self.since = now;
    }

    /// Records an admission: with what is in the window it must be within the limits.
    pub(crate) fn admit(
        &mut self,
        now: Micros,
        window: Micros,
        id: &str,
        amounts: Amounts,
        limits: &PerDimension<f64>,
    ) {
        self.calls.retain(|_, call| call.at + 10 * window > now);
        assert!(!self.calls.contains_key(id), "{id} was admitted twice");
        self.calls.insert(id.to_owned(), Admitted { at: now, amounts });
        for dimension in Dimension::ALL {
            let limit = limits[dimension];
            let inside = self.calls.values().filter(|call| call.at + window > now);
            let used: u64 = inside.map(|call| call.amounts[dimension]).sum();
            assert!(
                limit <= 0.0 || used as f64 <= limit + 1.0,
                "{used} {dimension} in a window of {limit} (since {} s)",
                (now - self.since) / 1_000_000
            );
        }
    }

    /// Records what a call really used, or that it was released.
    pub(crate) fn settle(&mut self, id: &str, used: Option<Amounts>) {
        match used {
            Some(amounts) => {
                if let Some(call) = self.calls.get_mut(id) {
                    call.amounts = amounts;
                }
            }
            None => drop(self.calls.remove(id)),
        }
    }

    /// Whether this call is in the window.
    pub(crate) fn holds(&self, id: &str, window: Micros, now: Micros) -> bool {
        self.calls.get(id).is_some_and(|call| call.at + window > now)
    }

    /// A call that outlived the window is charged for its output when it ends.
    pub(crate) fn late(&mut self, now: Micros, id: &str, amounts: Amounts) {
        if let Some(call) = self.calls.get_mut(id) {
            *call = Admitted { at: now, amounts };
        }
    }
}

/// Totals equal the ledger, lanes add up, nothing is in flight without an entry.
pub(crate) fn check(connection: &mut Connection, stem: &str, seen: &Snapshot) {
    let sums: Vec<u64> = redis::cmd("EVAL")
        .arg(SUMS)
        .arg(2)
        .arg(format!("{stem}:ledger"))
        .arg(format!("{stem}:entries"))
        .query(connection)
        .unwrap();
    assert_eq!(seen.reservations, sums[0], "ids in the ledger");
    for (place, dimension) in Dimension::ALL.into_iter().enumerate() {
        let told = seen.get(dimension);
        assert_eq!(told.used, sums[3 + place], "{dimension} in all, and in the ledger");
        assert_eq!(told.held, sums[7 + place], "{dimension} not settled, and in the ledger");
        let lanes: u64 = seen.lanes.iter().map(|lane| lane.used[dimension]).sum();
        assert_eq!(told.used, lanes, "{dimension} in all, and of the lanes");
    }
    assert_eq!(seen.in_flight.used, sums[2], "calls in flight, and entries of such");
    let lanes: u64 = seen.lanes.iter().map(|lane| lane.in_flight).sum();
    assert_eq!(seen.in_flight.used, lanes, "calls in flight, and of the lanes");
}
