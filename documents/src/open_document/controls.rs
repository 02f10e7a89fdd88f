//! Controls of forms: a shape in the text refers to them.

use std::collections::HashMap;

use crate::{spaces::one_line, xml::Element};

/// Returns what the controls of a document show, by their ids.
pub(super) fn read_controls(content: &Element) -> HashMap<String, String> {
    let mut shown = HashMap::new();
    let mut open: Vec<&Element> = content.all("forms");
    while let Some(parent) = open.pop() {
        for control in parent.elements() {
            match (control.attribute("id"), control_text(control)) {
                (Some(id), Some(text)) => drop(shown.insert(id, text)),
                _ => open.push(control),
            }
        }
    }
    shown
}

/// Returns the label or value of a control, with the state of a box or a button.
fn control_text(control: &Element) -> Option<String> {
    let value = |names: [&str; 3]| names.iter().find_map(|name| control.attribute(name));
    let text = match &*control.name {
        "checkbox" | "radio" => {
            let state = value(["current-state", "current-selected", "state"]);
            let is_on = state.is_some_and(|state| matches!(&*state, "checked" | "true"));
            let label = control.attribute("label").unwrap_or_default();
            format!("{} {label}", if is_on { "[x]" } else { "[ ]" })
        }
        "button" | "fixed-text" | "frame" => control.attribute("label").unwrap_or_default(),
        // Its letters are covered.
        "password" | "hidden" | "file" | "image" => String::new(),
        "listbox" => {
            let options = control.elements().filter(|it| it.is_on("current-selected"));
            options.filter_map(|it| it.attribute("label")).collect::<Vec<_>>().join(", ")
        }
        "textarea" | "formatted-text" | "text" | "combobox" | "number" | "date" | "time" => {
            let lines = control.elements().filter(|it| &*it.name == "p").map(Element::text);
            let lines = lines.collect::<Vec<_>>().join(" ");
            let typed = value(["current-value", "value", "text"]).unwrap_or_default();
            if lines.is_empty() { typed } else { lines }
        }
        _ => return None,
    };
    Some(one_line(&text))
}
