//! The work of matching a selector with an element. A match may walk through all siblings of the
//! element, or all descendants, so that some rules on a page of many elements would take minutes.

use std::collections::HashMap;

use ego_tree::NodeId;
use scraper::Html;

/// Most steps on a page: about six seconds, at ten nanoseconds for a step to the next sibling.
const MAX_STEPS: u64 = 600_000_000;

/// Steps of a match that walks nowhere, so that a page has at most a million of them.
const STEPS_OF_MATCH: u64 = 600;

/// The walks that a selector makes for one element.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Walks {
    /// Parts that walk through siblings and count them, such as `:nth-child`.
    counts: u64,
    /// Whether there is a `~`, which tries each sibling before.
    tries_siblings: bool,
    /// Parts that walk through descendants: `:has`.
    descents: u64,
}

impl Walks {
    /// Reads a selector. A `~` within a text counts too.
    pub(super) fn of_selector(selector: &str) -> Self {
        let count = |part: &str| selector.matches(part).count() as u64;
        Self {
            counts: count(":nth-") + count("-of-type"),
            tries_siblings: count("~") > count("~="),
            descents: count(":has("),
        }
    }

    /// Returns the steps for an element of this kin on a page of this many elements, at most.
    fn steps(self, kin: u64, elements: u64) -> u64 {
        // A walk leads to one side, so that it is half as long for most.
        let kin = kin.div_ceil(2);
        let counts = kin.saturating_mul(self.counts).max(1);
        let tries = if self.tries_siblings { kin.max(1) } else { 1 };
        let descents = elements.saturating_mul(self.descents).max(1);
        counts.saturating_mul(tries).saturating_mul(descents).saturating_add(STEPS_OF_MATCH)
    }
}

/// The steps that are left for a page.
#[derive(Debug)]
pub(super) struct StepBudget {
    left: u64,
    nodes: u64,
    /// By the parent: the siblings of an element and of the elements around it.
    kin: HashMap<NodeId, u64>,
    /// Whether a match was left out.
    pub(super) is_exceeded: bool,
}

impl StepBudget {
    pub(super) fn new(page: &Html) -> Self {
        let (mut kin, mut nodes) = (HashMap::new(), 0);
        // A parent comes before its children.
        for node in page.tree.root().descendants().filter(|node| node.has_children()) {
            let children = node.children().count() as u64;
            let around = node.parent().and_then(|parent| kin.get(&parent.id()).copied());
            kin.insert(node.id(), around.unwrap_or(0) + children);
            nodes += children;
        }
        Self { left: MAX_STEPS, nodes, kin, is_exceeded: false }
    }

    /// Takes the steps of a match with a child of `parent`. Returns whether they are left.
    pub(super) fn take(&mut self, walks: Walks, parent: Option<NodeId>) -> bool {
        let kin = parent.and_then(|parent| self.kin.get(&parent)).copied().unwrap_or(1);
        let left = self.left.checked_sub(walks.steps(kin, self.nodes));
        self.is_exceeded |= left.is_none();
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_selector_walks_is_counted() {
        for (selector, kin, steps) in [
            ("p.a > b", 1_000, 1),
            ("[class~=a]", 1_000, 1),
            ("h1 ~ p", 1_000, 500),
            ("p:nth-child(2n):nth-last-of-type(3n)", 1_000, 1_500),
            ("p:nth-child(2) ~ p", 1_000, 250_000),
            ("p:has(b)", 1_000, 5_000),
            ("p:has(~ p ~ p)", 1_000, 2_500_000),
        ] {
            let walked = Walks::of_selector(selector).steps(kin, 5_000) - STEPS_OF_MATCH;
            assert_eq!(walked, steps, "{selector}");
        }
    }

    #[test]
    fn a_page_gives_out_no_more_steps_than_it_has() {
        let page = Html::parse_document(&format!("<body>{}", "<p>x</p>".repeat(20_000)));
        let mut budget = StepBudget::new(&page);
        let parent = page.tree.nodes().find(|node| node.children().nth(10_000).is_some());
        let parent = parent.map(|parent| parent.id());
        let mut take = |selector: &str| {
            let walks = Walks::of_selector(selector);
            (0..20_000).filter(|_| budget.take(walks, parent)).count()
        };
        assert!(take("p:has(~p ~p ~p)") < 10);
        assert!(
            (100..20_000).contains(&take("p:nth-child(2n):nth-of-type(3n):nth-last-of-type(5n)"))
        );
        assert!(budget.is_exceeded);
        // What is left is enough for a rule that walks nowhere.
        assert!(budget.take(Walks::of_selector("p"), parent));
    }
}
