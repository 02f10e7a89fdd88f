//! Replacement texts of structure elements (`ActualText`). The content of a tagged page refers to its
//! elements by number.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    rc::Rc,
};

use hayro_interpret::hayro_syntax::{
    Pdf,
    object::{Array, Dict, MaybeRef, Name, Object, ObjectIdentifier, Stream, String as PdfString},
    page::Page,
    xref::XRef,
};

use super::forms::{decode_text, dictionaries};

/// Most entries of the tree of pages.
const MAX_ENTRIES: usize = 1_000_000;

/// Most elements around an element.
const MAX_PARENTS: usize = 32;

/// A structure element with a replacement text.
#[derive(Debug)]
pub(super) struct Replacement {
    id: ObjectIdentifier,
    pub(super) words: String,
    /// Whether the text describes a figure, whose own letters stay.
    pub(super) is_of_figure: bool,
}

/// The structure of a document.
#[derive(Debug)]
pub(super) struct Structure<'a> {
    xref: &'a XRef,
    /// The elements of each page by number, by the page's key.
    pages: HashMap<i32, MaybeRef<Object<'a>>>,
    /// The replacement of each known element.
    known: RefCell<HashMap<ObjectIdentifier, Option<Rc<Replacement>>>>,
    /// Elements whose text is written. An element may have several pieces of content.
    written: RefCell<HashSet<ObjectIdentifier>>,
}

impl<'a> Structure<'a> {
    pub(super) fn read(file: &'a Pdf) -> Self {
        let xref = file.xref();
        let pages = read_pages(xref).unwrap_or_default();
        Self { xref, pages, known: RefCell::default(), written: RefCell::default() }
    }

    /// Returns the replacements on a page, by the numbers of the content.
    pub(super) fn replacements(&self, page: &Page<'a>) -> HashMap<i32, Rc<Replacement>> {
        let elements = page.raw().get::<i32>("StructParents").and_then(|key| self.pages.get(&key));
        let elements = match elements {
            Some(MaybeRef::Ref(id)) => self.xref.get::<Array<'_>>(ObjectIdentifier::from(*id)),
            Some(MaybeRef::NotRef(Object::Array(elements))) => Some(elements.clone()),
            _ => None,
        };
        let ids = elements.iter().flat_map(Array::raw_iter).map(|it| it.as_obj_ref());
        let replacements = (0..).zip(ids).filter_map(|(number, id)| {
            Some((number, self.replacement(ObjectIdentifier::from(id?))?))
        });
        let replacements: HashMap<i32, Rc<Replacement>> = replacements.collect();
        // The numbers of forms with elements of their own would be taken for the page's.
        if replacements.is_empty() || has_tagged_forms(page) {
            HashMap::new()
        } else {
            replacements
        }
    }

    /// Returns the text of a replacement, of its further pieces nothing.
    pub(super) fn write(&self, replacement: &Replacement) -> String {
        let is_new = self.written.borrow_mut().insert(replacement.id);
        if is_new { replacement.words.clone() } else { String::new() }
    }

    /// Returns the replacement of an element: its own, or that of an element around it.
    fn replacement(&self, id: ObjectIdentifier) -> Option<Rc<Replacement>> {
        let mut known = self.known.borrow_mut();
        let (mut below, mut next) = (Vec::new(), Some(id));
        let mut found = None;
        while let Some(id) = next.filter(|_| below.len() < MAX_PARENTS) {
            if let Some(replacement) = known.get(&id) {
                found = replacement.clone();
                break;
            }
            below.push(id);
            let Some(element) = self.xref.get::<Dict<'_>>(id) else { break };
            if let Some(words) = element.get::<PdfString<'_>>("ActualText") {
                let kind = element.get::<Name<'_>>("S");
                found = Some(Rc::new(Replacement {
                    id,
                    words: decode_text(words.as_bytes()),
                    is_of_figure: kind.is_some_and(|kind| kind.as_str() == "Figure"),
                }));
                break;
            }
            next = element.get_ref("P").map(ObjectIdentifier::from);
        }
        known.extend(below.into_iter().map(|id| (id, found.clone())));
        found
    }
}

/// Returns the entries of the tree that maps pages to their elements.
fn read_pages(xref: &XRef) -> Option<HashMap<i32, MaybeRef<Object<'_>>>> {
    let root = xref.get::<Dict<'_>>(xref.root_id())?.get::<Dict<'_>>("StructTreeRoot")?;
    let mut branches = vec![root.get::<Dict<'_>>("ParentTree")?];
    let (mut pages, mut seen) = (HashMap::new(), HashSet::new());
    while let Some(branch) = branches.pop() {
        if let Some(entries) = branch.get::<Array<'_>>("Nums") {
            let mut entries = entries.raw_iter();
            while let (Some(key), Some(elements)) = (entries.next(), entries.next()) {
                if let MaybeRef::NotRef(Object::Number(key)) = key
                    && let Ok(key) = i32::try_from(key.as_i64())
                {
                    pages.insert(key, elements);
                }
                if pages.len() >= MAX_ENTRIES {
                    return None;
                }
            }
        }
        // A cycle needs a branch with an object number.
        if let Some(kids) = branch.get::<Array<'_>>("Kids") {
            branches.extend(
                dictionaries(&kids, xref)
                    .filter(|kid| kid.obj_id().is_some_and(|id| seen.insert(id))),
            );
        }
    }
    Some(pages)
}

/// Whether a page draws forms with elements of their own.
fn has_tagged_forms(page: &Page<'_>) -> bool {
    let drawn = &page.resources().x_objects;
    drawn.keys().any(|name| {
        drawn.get::<Stream<'_>>(name).is_some_and(|it| it.dict().contains_key("StructParents"))
    })
}
