//! Bounds the bytes of documents that a worker holds at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A document of fewer bytes is not counted, and does not wait.
pub(crate) const SMALL: u64 = 1 << 20;

/// Memory that a document takes for each of its bytes: itself, and a copy on its way to a parser or a
/// provider.
const COPIES: u64 = 3;

/// Bytes of one permit.
const UNIT: u64 = 1 << 16;

/// Limits the bytes of documents in memory. A document that does not fit waits, in turn, before it
/// is fetched. A document never waits while it holds a share, so there is no deadlock.
#[derive(Debug, Clone)]
pub struct Memory {
    free: Arc<Semaphore>,
    units: u32,
}

/// A share of the memory, given back when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct MemoryShare(Option<OwnedSemaphorePermit>);

impl Memory {
    /// A limit of this many bytes.
    pub fn new(bytes: u64) -> Self {
        let units = u32::try_from((bytes / UNIT).max(1)).unwrap_or(u32::MAX >> 4);
        Self { free: Arc::new(Semaphore::new(units as usize)), units }
    }

    /// Waits for a share for a document of this size; a document larger than the limit takes the whole
    /// of it.
    pub(crate) async fn hold(&self, bytes: u64) -> MemoryShare {
        if bytes < SMALL {
            return MemoryShare(None);
        }
        let units = units(bytes).min(self.units);
        // The semaphore is never closed.
        MemoryShare(Arc::clone(&self.free).acquire_many_owned(units).await.ok())
    }
}

impl Default for Memory {
    /// 1 GiB.
    fn default() -> Self {
        Self::new(1 << 30)
    }
}

impl MemoryShare {
    /// Gives back the memory that the document no longer needs at this size.
    pub(crate) fn shrink(&mut self, bytes: u64) {
        let needed = if bytes < SMALL { 0 } else { units(bytes) as usize };
        if let Some(held) = &mut self.0 {
            drop(held.split(held.num_permits().saturating_sub(needed)));
        }
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.saturating_mul(COPIES).div_ceil(UNIT)).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn what_does_not_fit_waits_for_what_is_given_back() {
        let memory = Memory::new(12 << 20);
        let mut first = memory.hold(3 << 20).await;
        assert!(memory.hold(2 << 20).now_or_never().is_none(), "9 of 12 MiB are taken");
        assert!(memory.hold(SMALL - 1).now_or_never().is_some(), "small ones never wait");
        first.shrink(1 << 20);
        let second = memory.hold(2 << 20).now_or_never().unwrap();
        drop((first, second));
        let all = memory.hold(1 << 40).now_or_never().unwrap();
        assert!(memory.hold(SMALL).now_or_never().is_none());
        drop(all);
        assert!(memory.hold(SMALL).now_or_never().is_some());
    }
}
