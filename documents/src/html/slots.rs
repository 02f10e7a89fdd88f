//! Slots of shadow trees: a page shows the children of an element where its shadow tree has slots for them.

use std::collections::HashMap;

use ego_tree::{NodeId, NodeRef};
use scraper::{Html, Node, node::Element};

/// Moves the children of elements with a shadow tree into its slots, in place of what these hold.
pub(super) fn fill_slots(page: &mut Html) {
    let shadows = page.tree.root().descendants().filter(|node| is_shadow(*node));
    let shadows: Vec<NodeId> = shadows.map(|shadow| shadow.id()).collect();
    for shadow in shadows {
        for (slot, children) in slotted(page, shadow) {
            let within = page.tree.get(slot).into_iter().flat_map(|slot| slot.children());
            let within: Vec<NodeId> = within.map(|node| node.id()).collect();
            for node in within {
                if let Some(mut node) = page.tree.get_mut(node) {
                    node.detach();
                }
            }
            if let Some(mut slot) = page.tree.get_mut(slot) {
                for child in children {
                    slot.append_id(child);
                }
            }
        }
    }
}

/// Whether a node is the root of a shadow tree.
fn is_shadow(node: NodeRef<'_, Node>) -> bool {
    let element = node.value().as_element();
    element.is_some_and(|it| it.name() == "template" && it.attr("shadowrootmode").is_some())
}

/// Returns the slots of a shadow tree that something is put into, with that.
fn slotted(page: &Html, shadow: NodeId) -> Vec<(NodeId, Vec<NodeId>)> {
    let Some(shadow) = page.tree.get(shadow) else { return Vec::new() };
    let mut by_name: HashMap<&str, Vec<NodeRef<'_, Node>>> = HashMap::new();
    let children = shadow.parent().into_iter().flat_map(|host| host.children());
    for child in children.filter(|child| child.id() != shadow.id()) {
        let name = child.value().as_element().and_then(|it| it.attr("slot"));
        if name.is_some() || !child.value().is_comment() {
            by_name.entry(name.unwrap_or_default()).or_default().push(child);
        }
    }
    // Slots of shadow trees within this one are filled by their own elements.
    let mut open = vec![shadow];
    let nodes = std::iter::from_fn(|| {
        let node = open.pop()?;
        open.extend(node.children().rev().filter(|child| !is_shadow(*child)));
        Some(node)
    });
    let slots = nodes.filter_map(|node| {
        let slot: &Element = node.value().as_element().filter(|it| it.name() == "slot")?;
        // The first of several slots with one name.
        let children = by_name.remove(slot.attr("name").unwrap_or_default())?;
        let is_blank = |node: &NodeRef<'_, Node>| {
            node.value().as_text().is_some_and(|text| text.trim().is_empty())
        };
        let children: Vec<_> = (!children.iter().all(is_blank)).then_some(children)?;
        Some((node.id(), children.iter().map(NodeRef::id).collect()))
    });
    slots.collect()
}
