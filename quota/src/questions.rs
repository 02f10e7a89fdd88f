//! Questions to Redis that are under way. Calls of a model, lane, tenant and template that come
//! meanwhile are asked about together in the next one: a script call costs the server several times
//! what each further call in it does, and a caller that comes alone waits for nobody.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::asker::{Asker, Group};

/// A question is about so many calls at most: the server is busy with it for about half a
/// millisecond.
pub(crate) const MAX_CALLS: usize = 32;

/// Of each group that is asked about now, who comes next.
#[derive(Debug, Default)]
pub(crate) struct Questions(Mutex<HashMap<Group, Vec<Asker>>>);

impl Questions {
    /// Whether the caller is to ask: nobody does so for this group.
    pub(crate) fn enter(&self, asker: Asker) -> bool {
        let mut questions = self.0.lock();
        let next = questions.entry(asker.group());
        let is_first = matches!(next, std::collections::hash_map::Entry::Vacant(_));
        next.or_default().push(asker);
        is_first
    }

    /// Whom the next question is about, in the order of their turns; nobody ends it. Who is gone is
    /// left out.
    fn next(&self, group: &Group) -> Vec<Asker> {
        let mut questions = self.0.lock();
        let Some(next) = questions.get_mut(group) else { return Vec::new() };
        next.retain(|asker| !asker.answer.is_closed());
        next.sort_by_key(Asker::turn);
        let now: Vec<Asker> = next.drain(..next.len().min(MAX_CALLS)).collect();
        if now.is_empty() {
            questions.remove(group);
        }
        now
    }

    /// Those who came meanwhile have no answer: each goes on as if Redis were away.
    fn give_up(&self, group: &Group) {
        self.0.lock().remove(group);
    }
}

/// Whoever puts a group's questions. Dropped before the end, because Redis is away or because the
/// runtime ends in which the first caller was, nobody is left to wait for an answer that never comes.
pub(crate) struct Asking<'a> {
    questions: &'a Questions,
    group: &'a Group,
    ended: bool,
}

impl<'a> Asking<'a> {
    pub(crate) fn new(questions: &'a Questions, group: &'a Group) -> Self {
        Self { questions, group, ended: false }
    }

    /// Whom the next question is about; nobody ends it.
    pub(crate) fn next(&mut self) -> Option<Vec<Asker>> {
        let next = self.questions.next(self.group);
        self.ended = next.is_empty();
        (!self.ended).then_some(next)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        // After its end the group may be somebody else's already.
        if !self.ended {
            self.questions.give_up(self.group);
        }
    }
}
