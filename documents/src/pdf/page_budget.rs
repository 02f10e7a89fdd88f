//! Limits of a page: forms that draw forms can make a page of three kilobytes draw for years.
//!
//! The interpreter cannot be told to stop, so it is left by unwinding, and the page is lost.

use std::{any::Any, panic::resume_unwind, time::Instant};

use crate::limits::Limits;

/// A page may take the time of its document divided by this.
const PARTS_OF_TIME: u32 = 6;

/// Most clips, pictures and areas of a page. Maps have some ten thousand.
const MAX_CLIPS: usize = 250_000;

/// Remaining limits of a page.
#[derive(Debug, Clone)]
pub(super) struct PageBudget {
    end: Option<Instant>,
    text_bytes: usize,
    clips: usize,
}

/// The cause of an unwinding that leaves a page.
struct BudgetExceeded;

impl PageBudget {
    pub(super) fn from_limits(limits: &Limits) -> Self {
        let end = Instant::now().checked_add(limits.time / PARTS_OF_TIME);
        Self { end, text_bytes: limits.text_bytes, clips: MAX_CLIPS }
    }

    /// Unwinds if the page's time is over. Called while it is drawn and while its letters are put in
    /// order.
    pub(super) fn check_time(&self) {
        if self.end.is_some_and(|end| Instant::now() >= end) {
            unwind_page();
        }
    }

    /// Counts a clip, a picture or an area that may hide something. Unwinds if there are too many.
    pub(super) fn take_clip(&mut self) {
        self.check_time();
        take(&mut self.clips, 1);
    }

    /// Counts the bytes of a letter. Unwinds if the page has more text than a document may.
    pub(super) fn take_text(&mut self, text: &str) {
        take(&mut self.text_bytes, text.len());
    }
}

fn take(rest: &mut usize, taken: usize) {
    match rest.checked_sub(taken) {
        Some(left) => *rest = left,
        None => unwind_page(),
    }
}

/// Unwinds without the panic hook: this is not a panic.
fn unwind_page() -> ! {
    resume_unwind(Box::new(BudgetExceeded))
}

/// Whether a page was left because it exceeded its limits.
pub(super) fn is_budget_exceeded(cause: &(dyn Any + Send)) -> bool {
    cause.is::<BudgetExceeded>()
}
