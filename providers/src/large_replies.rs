//! Bounds the large replies that a process holds at once.
//!
//! A reply takes several times its bytes: as it came, as JSON, as the answer, and as the result that
//! is written. So a large one waits for a share of the memory before more of it is read, which stops
//! the sender, and its call keeps the share until the answer is written. A call that has a share
//! never waits for another, so there is no deadlock.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

/// A reply of fewer bytes is not counted, and does not wait: few answers of any model have more.
pub(crate) const SMALL: usize = 1 << 20;

/// Large replies that a process holds at once.
const MAX_LARGE: usize = 4;

/// Longest wait for a share.
const MAX_WAIT: Duration = Duration::from_secs(120);

static FREE: Semaphore = Semaphore::const_new(MAX_LARGE);

tokio::task_local! {
    static OF_CALL: ReplyShare;
}

/// A call's share of the memory for large replies: none while its reply is small. The share is given
/// back when the last clone is dropped.
#[derive(Debug, Clone, Default)]
pub struct ReplyShare(Arc<Mutex<Option<SemaphorePermit<'static>>>>);

impl ReplyShare {
    /// Makes a call whose reply takes this share if it is large.
    pub async fn hold_for<T>(&self, call: impl Future<Output = T>) -> T {
        OF_CALL.scope(self.clone(), call).await
    }

    /// Gives the share back early.
    pub fn give_back(&self) {
        *self.0.lock() = None;
    }

    async fn take(self, free: &'static Semaphore, wait: Duration) -> Option<Self> {
        if self.0.lock().is_none() {
            // The semaphore is never closed.
            let permit = tokio::time::timeout(wait, free.acquire()).await.ok()?.ok()?;
            *self.0.lock() = Some(permit);
        }
        Some(self)
    }
}

/// Waits for room for a large reply. It is the call's; outside of [`ReplyShare::hold_for`], the
/// caller's. `None` if none came free in time.
pub(crate) async fn share() -> Option<ReplyShare> {
    OF_CALL.try_with(ReplyShare::clone).unwrap_or_default().take(&FREE, MAX_WAIT).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_large_reply_waits_until_another_is_written() {
        static ONE: Semaphore = Semaphore::const_new(1);
        let soon = Duration::from_millis(1);
        let first = ReplyShare::default();
        // A second reply of the same call needs no second share.
        for _ in 0..2 {
            assert!(first.clone().take(&ONE, soon).await.is_some());
        }
        assert!(ReplyShare::default().take(&ONE, soon).await.is_none());
        let waits = tokio::spawn(ReplyShare::default().take(&ONE, MAX_WAIT));
        drop(first);
        assert!(waits.await.unwrap().is_some());
    }
}
