//! Layers (optional content groups) that a viewer does not show. The interpreter leaves out the content of
//! layers that are off. It does not know layers that are only off on a screen, expressions of several
//! layers, and layers of notes. To count what is on layers that are off, a page is drawn once more with all
//! layers on.

use std::collections::HashSet;

use hayro_interpret::hayro_syntax::{
    Pdf,
    object::{Array, Dict, MaybeRef, Name, Object, ObjectIdentifier},
    xref::XRef,
};

/// Deepest nesting of an expression.
const MAX_DEPTH: usize = 16;

/// A document without layers.
const WITHOUT_LAYERS: &[u8] = b"%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n2 0 obj <</Type/Pages/Count 1/Kids[3 0 R]>> endobj\n3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>> endobj\ntrailer <</Root 1 0 R>>\n";

/// The layers of a document.
pub(super) struct Layers<'a> {
    pub(super) xref: &'a XRef,
    /// The document from which the interpreter reads the states of layers.
    pub(super) states: &'a XRef,
    off: HashSet<ObjectIdentifier>,
}

/// Returns a document without layers, to draw pages with all layers on.
pub(super) fn without_layers() -> Option<Pdf> {
    Pdf::new(WITHOUT_LAYERS.to_vec()).ok()
}

impl<'a> Layers<'a> {
    pub(super) fn read(xref: &'a XRef) -> Self {
        let root = xref.get::<Dict<'_>>(xref.root_id());
        let all = root.and_then(|root| root.get::<Dict<'_>>("OCProperties"));
        let mut off = HashSet::new();
        if let Some((all, config)) = all.and_then(|all| Some((all.clone(), all.get("D")?))) {
            let config: Dict<'_> = config;
            if config.get::<Name<'_>>("BaseState").is_some_and(|state| state.as_str() == "OFF") {
                off.extend(identifiers(all.get("OCGs")));
            }
            for id in identifiers(config.get("ON")) {
                off.remove(&id);
            }
            off.extend(identifiers(config.get("OFF")));
            for usage in config.get::<Array<'_>>("AS").iter().flat_map(Array::iter::<Dict<'_>>) {
                set_for_screen(&usage, xref, &mut off);
            }
        }
        Self { xref, states: xref, off }
    }

    /// Returns the same layers, all on, if any is off. `states` is of a document without layers.
    pub(super) fn all_on(&self, states: &'a XRef) -> Option<Self> {
        (!self.off.is_empty()).then(|| Self { xref: self.xref, states, off: HashSet::new() })
    }

    /// Whether what belongs to a layer, or to an expression of layers, is not shown.
    pub(super) fn hides(&self, layer: &Dict<'_>) -> bool {
        if layer.get::<Name<'_>>("Type").is_none_or(|kind| kind.as_str() != "OCMD") {
            return layer.obj_id().is_some_and(|id| self.off.contains(&id));
        }
        if let Some(expression) = layer.get::<Array<'_>>("VE") {
            return self.holds(&expression, 0) == Some(false);
        }
        let several = identifiers(layer.get("OCGs"));
        let one = layer.get_ref("OCGs").map(ObjectIdentifier::from);
        let layers = if several.is_empty() { one.into_iter().collect() } else { several };
        let mut states = layers.iter().map(|id| !self.off.contains(id));
        let policy = layer.get::<Name<'_>>("P");
        let is_shown = match policy.as_ref().map(Name::as_str) {
            Some("AllOn") => states.all(|on| on),
            Some("AnyOff") => states.any(|on| !on),
            Some("AllOff") => states.all(|on| !on),
            _ => states.any(|on| on),
        };
        !layers.is_empty() && !is_shown
    }

    /// Whether a note or field belongs to a layer that is not shown.
    pub(super) fn hides_annotation(&self, note: &Dict<'_>) -> bool {
        note.get::<Dict<'_>>("OC").is_some_and(|layer| self.hides(&layer))
    }

    /// Whether an expression of layers holds. `None` if it is not one.
    fn holds(&self, expression: &Array<'_>, depth: usize) -> Option<bool> {
        let mut parts = expression.raw_iter();
        let Some(MaybeRef::NotRef(Object::Name(operator))) = parts.next() else { return None };
        let mut parts = parts.filter_map(|part| match part {
            _ if depth >= MAX_DEPTH => None,
            MaybeRef::Ref(id) => {
                let id = ObjectIdentifier::from(id);
                match self.xref.get::<Array<'_>>(id) {
                    Some(inner) => self.holds(&inner, depth + 1),
                    None => Some(!self.off.contains(&id)),
                }
            }
            MaybeRef::NotRef(Object::Array(inner)) => self.holds(&inner, depth + 1),
            MaybeRef::NotRef(_) => None,
        });
        match operator.as_str() {
            "And" => Some(parts.all(|on| on)),
            "Or" => Some(parts.any(|on| on)),
            "Not" => parts.next().map(|on| !on),
            _ => None,
        }
    }
}

/// Applies the states that layers have on a screen.
fn set_for_screen(usage: &Dict<'_>, xref: &XRef, off: &mut HashSet<ObjectIdentifier>) {
    let is_view = |name: Name<'_>| name.as_str() == "View";
    let categories = usage.get::<Array<'_>>("Category");
    if !usage.get::<Name<'_>>("Event").is_some_and(is_view)
        || !categories.iter().flat_map(Array::iter::<Name<'_>>).any(is_view)
    {
        return;
    }
    for id in identifiers(usage.get("OCGs")) {
        let state = xref
            .get::<Dict<'_>>(id)
            .and_then(|layer| layer.get::<Dict<'_>>("Usage"))
            .and_then(|usage| usage.get::<Dict<'_>>("View"))
            .and_then(|view| view.get::<Name<'_>>("ViewState"));
        match state.as_ref().map(Name::as_str) {
            Some("ON") => _ = off.remove(&id),
            Some("OFF") => _ = off.insert(id),
            _ => {}
        }
    }
}

fn identifiers(list: Option<Array<'_>>) -> Vec<ObjectIdentifier> {
    let references = list.iter().flat_map(Array::raw_iter);
    references.filter_map(|it| it.as_obj_ref().map(ObjectIdentifier::from)).collect()
}
