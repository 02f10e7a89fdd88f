//! The page tree: the pages that it names, and those of them that are lost.

use std::collections::HashSet;

use hayro_interpret::hayro_syntax::{
    Pdf,
    object::{Array, Dict, MaybeRef, Name, Object, ObjectIdentifier},
};

/// Trees with more leaves are not used.
const MAX_LEAVES: usize = 100_000;

/// Leaves of the page tree, in order: whether each is present.
#[derive(Debug)]
pub(super) struct PageTree {
    leaves: Vec<bool>,
    next: usize,
}

/// Walks the page tree. A tree that cannot be walked has no leaves.
pub(super) fn walk_page_tree(file: &Pdf) -> PageTree {
    let (mut leaves, mut visited) = (Vec::new(), HashSet::<ObjectIdentifier>::new());
    let xref = file.xref();
    let root = xref.get::<Dict<'_>>(xref.root_id());
    let mut stack: Vec<_> = root
        .and_then(|root| root.get::<Dict<'_>>("Pages"))
        .and_then(|pages| pages.get::<Array<'_>>("Kids"))
        .map(|kids| kids.raw_iter())
        .into_iter()
        .collect();
    while let Some(kids) = stack.last_mut() {
        let Some(kid) = kids.next() else {
            stack.pop();
            continue;
        };
        let dict = match kid {
            MaybeRef::Ref(id) => {
                let id = ObjectIdentifier::from(id);
                if !visited.insert(id) {
                    continue;
                }
                xref.get::<Dict<'_>>(id)
            }
            MaybeRef::NotRef(object) => Object::into_dict(object),
        };
        let branch = dict
            .as_ref()
            .filter(|dict| {
                dict.get::<Name<'_>>("Type").is_some_and(|name| name.as_str() == "Pages")
            })
            .map(|dict| dict.get::<Array<'_>>("Kids"));
        match branch {
            Some(Some(kids)) => stack.push(kids.raw_iter()),
            Some(None) => {}
            None => leaves.push(dict.is_some()),
        }
        if leaves.len() > MAX_LEAVES {
            return PageTree { leaves: Vec::new(), next: 0 };
        }
    }
    PageTree { leaves, next: 0 }
}

impl PageTree {
    /// Returns the numbers of the missing leaves, if the number of present ones is `found`; otherwise
    /// none.
    pub(super) fn missing_numbers(&mut self, found: usize) -> Vec<usize> {
        if self.leaves.iter().filter(|there| **there).count() != found {
            // The pages were not found by this tree.
            self.leaves = Vec::new();
        }
        (1..).zip(&self.leaves).filter(|(_, there)| !**there).map(|(number, _)| number).collect()
    }

    /// Returns the number of the next present page.
    pub(super) fn next_number(&mut self) -> usize {
        while self.leaves.get(self.next) == Some(&false) {
            self.next += 1;
        }
        self.next += 1;
        self.next
    }
}
