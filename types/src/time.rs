//! Time in its stored form.

use std::time::SystemTime;

/// Whole seconds since 1970; 0 for earlier times.
pub fn seconds_since_1970(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}
