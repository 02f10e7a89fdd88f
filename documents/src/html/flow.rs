//! How boxes stand on a page: on lines of their own, apart from their neighbours, or within a line.

use std::collections::{HashMap, HashSet};

use ego_tree::{NodeId, NodeRef};
use scraper::{Html, Node, node::Element};

use super::{
    declarations::{Property, Value},
    rules::{Style, word_value},
};

/// Elements that begin on a new line.
const BLOCKS: [&str; 41] = [
    "p",
    "div",
    "section",
    "article",
    "main",
    "header",
    "footer",
    "aside",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "dl",
    "dd",
    "dt",
    "table",
    "blockquote",
    "pre",
    "figure",
    "figcaption",
    "address",
    "hr",
    "details",
    "summary",
    "caption",
    "fieldset",
    "legend",
    "form",
    "center",
    "hgroup",
    "menu",
    "dialog",
    "search",
    "optgroup",
    "listing",
    "xmp",
    "plaintext",
];

/// How a style places an element, where that is not how its tag is usually placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// On lines of its own.
    Block,
    /// Within a line, with a space around it.
    Apart,
    /// Within a line.
    Inline,
}

/// The placement of a page's elements.
#[derive(Debug, Default)]
pub(super) struct Flows {
    by_element: HashMap<NodeId, Flow>,
    /// Elements whose children stand next to each other: `flex` and `grid`.
    rows: HashSet<NodeId>,
    /// Those of them whose children stand in reverse.
    reversed: HashSet<NodeId>,
    /// The places of such children among the others, where they are not 0.
    order: HashMap<NodeId, i64>,
}

impl Flows {
    /// Adds an element. A parent comes before its children.
    pub(super) fn add(&mut self, node: NodeRef<'_, Node>, element: &Element, style: &Style) {
        let display = word_value(style, Property::Display).unwrap_or_default();
        if display.contains("flex") || display.contains("grid") || display.ends_with("-box") {
            self.rows.insert(node.id());
            if word_value(style, Property::Direction).is_some_and(|it| it.contains("-reverse")) {
                self.reversed.insert(node.id());
            }
        }
        let is_in_row = node.parent().is_some_and(|parent| self.rows.contains(&parent.id()));
        let order = word_value(style, Property::Order).and_then(|order| order.parse().ok());
        self.order.extend(order.filter(|_| is_in_row).map(|order| (node.id(), order)));
        if is_placed_by_tag(element.name()) {
            return;
        }
        // A line of a drawing begins at a place of its own.
        let is_line = element.name() == "tspan" && element.attr("x").is_some();
        if let Some(flow) = read_flow(element.name(), style, is_in_row || is_line) {
            self.by_element.insert(node.id(), flow);
        }
    }

    /// Moves children that stand next to each other into the order in which a page shows them.
    pub(super) fn sort_children(&self, page: &mut Html) {
        let parent = |id: &NodeId| page.tree.get(*id)?.parent().map(|parent| parent.id());
        let mut rows: HashSet<NodeId> = self.order.keys().filter_map(parent).collect();
        rows.extend(&self.reversed);
        for row in rows {
            let items = page.tree.get(row).into_iter().flat_map(|row| row.children());
            let mut items: Vec<NodeId> = items.map(|item| item.id()).collect();
            items.sort_by_key(|item| self.order.get(item).copied().unwrap_or(0));
            if self.reversed.contains(&row) {
                items.reverse();
            }
            let Some(mut row) = page.tree.get_mut(row) else { continue };
            for item in items {
                row.append_id(item);
            }
        }
    }

    pub(super) fn get(&self, node: NodeId) -> Option<Flow> {
        self.by_element.get(&node).copied()
    }
}

/// Whether an element begins on a new line unless a style changes that.
pub(super) fn is_block(name: &str) -> bool {
    BLOCKS.contains(&name)
}

/// Whether an element is a line or a cell of text whatever its style is.
fn is_placed_by_tag(name: &str) -> bool {
    matches!(
        name,
        "h1" | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "li"
            | "table"
            | "tr"
            | "td"
            | "th"
            | "br"
            | "pre"
    )
}

fn read_flow(name: &str, style: &Style, is_in_row: bool) -> Option<Flow> {
    let display = word_value(style, Property::Display).unwrap_or_default();
    let is = |property| matches!(style.get(&property), Some((_, Value::Effective(true))));
    let is_apart =
        is_in_row || ["float", "margin", "padding"].iter().any(|it| is(Property::Apart(it)));
    let is_apart =
        is_apart || (display == "inline-block" && style.contains_key(&Property::Size("width")));
    match display {
        "table-cell" => Some(Flow::Apart),
        "inline" | "contents" if !is_apart => Some(Flow::Inline),
        _ if display.starts_with("inline") && is_block(name) => Some(Flow::Apart),
        "block" | "flow-root" | "list-item" | "table" | "table-row" | "table-caption" | "flex"
        | "grid" | "-webkit-flex" | "-webkit-box"
            if !is_in_row =>
        {
            Some(Flow::Block)
        }
        // Boxes that keep their lines may also stand one below the other.
        _ => (is_apart && !is_block(name)).then_some(Flow::Apart),
    }
}
