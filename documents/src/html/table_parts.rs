//! Order of the parts of a table.

use std::collections::HashSet;

use ego_tree::{NodeId, NodeRef};
use scraper::{Html, Node};

/// Moves the head of each table before its body, its foot and a low caption behind it, as a page shows them.
pub(super) fn sort_table_parts(page: &mut Html, low_captions: &HashSet<NodeId>) {
    // A table has one head and one foot; further ones are bodies.
    let heads = firsts(page, "thead").into_iter().filter_map(|head| {
        let body = head.prev_siblings().filter(|it| is(*it, "tbody")).last()?;
        Some((body.id(), head.id()))
    });
    let heads: Vec<(NodeId, NodeId)> = heads.collect();
    let is_early = |foot: &NodeRef<'_, Node>| foot.next_siblings().any(|it| is(it, "tbody"));
    let is_low = |caption: &NodeRef<'_, Node>| {
        let align = caption.value().as_element().and_then(|it| it.attr("align"));
        low_captions.contains(&caption.id()) || align == Some("bottom")
    };
    let feet = firsts(page, "tfoot").into_iter().filter(is_early);
    let captions = firsts(page, "caption").into_iter().filter(is_low);
    let last: Vec<(NodeId, NodeId)> =
        feet.chain(captions).filter_map(|part| Some((part.parent()?.id(), part.id()))).collect();
    for (body, head) in heads {
        if let Some(mut body) = page.tree.get_mut(body) {
            body.insert_id_before(head);
        }
    }
    for (table, part) in last {
        if let Some(mut table) = page.tree.get_mut(table) {
            table.append_id(part);
        }
    }
}

/// Returns the first part with this name of each table.
fn firsts<'p>(page: &'p Html, name: &'static str) -> Vec<NodeRef<'p, Node>> {
    let parts = page.tree.root().descendants().filter(|node| is(*node, name));
    parts.filter(|node| !node.prev_siblings().any(|before| is(before, name))).collect()
}

fn is(node: NodeRef<'_, Node>, name: &str) -> bool {
    node.value().as_element().is_some_and(|element| element.name() == name)
}
