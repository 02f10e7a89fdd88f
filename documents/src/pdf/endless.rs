//! Pages that take without end: forms that draw forms draw a page of three kilobytes for years.
//!
//! The interpreter has no way to be told to stop, so it is left by unwinding, which costs the page.

use std::{any::Any, panic::resume_unwind, time::Instant};

use crate::limits::Limits;

/// Of a document's time, a page may take this part.
const PARTS_OF_TIME: u32 = 6;

/// Clips, forms and areas of a page. Maps have some ten thousand.
const MAX_CLIPS: usize = 250_000;

/// What a page may take until it is left.
#[derive(Debug, Clone)]
pub(super) struct Rest {
    end: Option<Instant>,
    text_bytes: usize,
    clips: usize,
}

/// How a page is left.
struct Endless;

impl Rest {
    pub(super) fn of(limits: &Limits) -> Self {
        let end = Instant::now().checked_add(limits.time / PARTS_OF_TIME);
        Self { end, text_bytes: limits.text_bytes, clips: MAX_CLIPS }
    }

    /// The page draws something, or what it drew is read. Unwinds when it has had its time.
    pub(super) fn go_on(&self) {
        if self.end.is_some_and(|end| Instant::now() >= end) {
            leave();
        }
    }

    /// It draws within another border, or an area that may hide something. Unwinds when there were
    /// too many.
    pub(super) fn clip(&mut self) {
        self.go_on();
        take(&mut self.clips, 1);
    }

    /// It writes a letter. Unwinds when it says more than a document may.
    pub(super) fn letter(&mut self, text: &str) {
        take(&mut self.text_bytes, text.len());
    }
}

fn take(rest: &mut usize, taken: usize) {
    match rest.checked_sub(taken) {
        Some(left) => *rest = left,
        None => leave(),
    }
}

/// No hook for panics is run: this is none.
fn leave() -> ! {
    resume_unwind(Box::new(Endless))
}

/// Whether this is how a page was left that would not end.
pub(super) fn is_endless(cause: &(dyn Any + Send)) -> bool {
    cause.is::<Endless>()
}
