//! Supplies a lane's slots to Temporal's SDK.

use std::sync::Arc;

use temporalio_sdk_core::{
    ActivitySlotKind, SlotMarkUsedContext, SlotReleaseContext, SlotReservationContext,
    SlotSupplier, SlotSupplierPermit,
};
use tidegate_quota::Quota;
use tidegate_types::Lane;

use super::slots::Pool;

/// One lane's slots. The SDK reserves one for each open poll, before a task arrives.
#[derive(Debug)]
pub(super) struct LaneSlots {
    pool: Arc<Pool>,
    lane: usize,
    quota: Quota,
    name: Lane,
}

impl LaneSlots {
    /// The slots of the pool's lane with this index and name.
    pub(super) fn new(pool: Arc<Pool>, lane: usize, quota: Quota, name: Lane) -> Self {
        Self { pool, lane, quota, name }
    }

    fn permit(&self) -> SlotSupplierPermit {
        let (pool, quota) = (Arc::clone(&self.pool), self.quota.clone());
        SlotSupplierPermit::with_user_data(Slot { pool, lane: self.lane, quota })
    }
}

#[async_trait::async_trait]
impl SlotSupplier for LaneSlots {
    type SlotKind = ActivitySlotKind;

    async fn reserve_slot(&self, _: &dyn SlotReservationContext) -> SlotSupplierPermit {
        self.quota.wait_to_take(&self.name, || self.pool.held(self.lane)).await;
        self.pool.take(self.lane).await;
        self.permit()
    }

    fn try_reserve_slot(&self, _: &dyn SlotReservationContext) -> Option<SlotSupplierPermit> {
        self.pool.try_take(self.lane).then(|| self.permit())
    }

    fn mark_slot_used(&self, _: &dyn SlotMarkUsedContext<SlotKind = Self::SlotKind>) {}

    /// The slot is given back when its permit is dropped, directly afterwards.
    fn release_slot(&self, _: &dyn SlotReleaseContext<SlotKind = Self::SlotKind>) {}

    fn slot_supplier_kind(&self) -> String {
        "Lane".to_owned()
    }
}

/// A taken slot; dropping it gives it back.
struct Slot {
    pool: Arc<Pool>,
    lane: usize,
    quota: Quota,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.pool.give_back(self.lane);
        self.quota.notify_free_slot();
    }
}
