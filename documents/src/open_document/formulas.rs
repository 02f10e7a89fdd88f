//! Formulas, which are documents of their own within a text.

use std::collections::HashMap;

use crate::{
    math,
    package::{Package, resolved},
    xml::Element,
};

/// Formulas by the names of their folders.
pub(super) fn formulas(package: &mut Package<'_>, content: &Element) -> HashMap<String, String> {
    let mut formulas = HashMap::new();
    for object in content.all("object") {
        let Some(folder) = object.attribute("href").map(|name| resolved("", &name)) else {
            continue;
        };
        // One that cannot be read is named where it stands.
        if let Ok(Some(tree)) = package.xml(&format!("{folder}/content.xml"))
            && let Some(formula) = tree.child("math")
        {
            formulas.insert(folder, formula_text(formula));
        }
    }
    formulas
}

/// A formula's text: of its tree, or else as it was typed.
pub(super) fn formula_text(formula: &Element) -> String {
    let read = math::text(formula);
    let typed = || formula.all("annotation").first().map(|typed| typed.text().trim().to_owned());
    let read = if read.is_empty() { typed().unwrap_or_default() } else { read };
    if read.is_empty() { "[Formula without text]".to_owned() } else { read }
}
