//! Documents within a text: formulas, charts and tables in their own folders.

use std::collections::HashMap;

use crate::{
    left_out::{Kind, Tally},
    math,
    package::{Package, resolve_path},
    unreadable::Unreadable,
    xml::Element,
};

/// The objects of a document, by the names of their folders.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) formulas: HashMap<String, String>,
    /// Contents of other documents. Each is taken out when it is read.
    pub(super) documents: HashMap<String, Element>,
}

impl Objects {
    /// Reads all objects. Unreadable ones are counted.
    ///
    /// # Errors
    /// [`Unreadable::TooLarge`] for an archive that unpacks to more than the limits allow.
    pub(super) fn read(
        package: &mut Package<'_>,
        content: &Element,
        tally: &Tally,
    ) -> Result<Self, Unreadable> {
        let mut objects = Self::default();
        let others = content.all("object-ole");
        for object in content.all("object").into_iter().chain(others) {
            let Some(folder) = folder(object) else { continue };
            match package.optional(&format!("{folder}/content.xml"))? {
                Some(tree) => match tree.child("math") {
                    Some(formula) => drop(objects.formulas.insert(folder, formula_text(formula))),
                    None => drop(objects.documents.insert(folder, tree)),
                },
                // `optional` has counted a broken one.
                None if !package.has(&format!("{folder}/content.xml")) => {
                    tally.add_in_part(Kind::UnreadParts, 1, &folder);
                }
                None => {}
            }
        }
        Ok(objects)
    }
}

/// Returns the folder of an object.
pub(super) fn folder(object: &Element) -> Option<String> {
    object.attribute("href").map(|name| resolve_path("", &name))
}

/// Returns a formula's text: from its tree, or else as it was typed.
pub(super) fn formula_text(formula: &Element) -> String {
    let read = math::formula_text(formula);
    let typed = || formula.all("annotation").first().map(|typed| typed.text().trim().to_owned());
    let read = if read.is_empty() { typed().unwrap_or_default() } else { read };
    if read.is_empty() { "[Formula without text]".to_owned() } else { read }
}
