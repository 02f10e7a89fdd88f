//! Office documents and books: a ZIP archive of parts that refer to each other.

use std::{
    collections::{HashMap, HashSet},
    io::{self, Cursor, Read, Write},
};

use zip::ZipArchive;

use crate::{
    context::Context,
    flat,
    format::Format,
    left_out::{Kind, Tally},
    unreadable::Unreadable,
    xml::{self, Element},
};

/// An open package. It unpacks at most as many bytes as the limits allow.
pub(crate) struct Package<'a> {
    parts: Parts<'a>,
    format: Format,
    most: u64,
    left: u64,
    tally: &'a Tally,
    /// Parts already counted as unread.
    broken: HashSet<String>,
}

/// The storage of a package's parts.
enum Parts<'a> {
    Archived(ZipArchive<Cursor<&'a [u8]>>),
    /// All parts in one XML file.
    Flat(flat::Parts<'a>),
}

impl Parts<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Archived(archive) => archive.len(),
            Self::Flat(parts) => parts.len(),
        }
    }

    /// Finds a part by its name; ignores case if there is no exact match, because some writers are
    /// inconsistent.
    fn place(&self, name: &str) -> Option<usize> {
        let any = |is: &dyn Fn(&str) -> bool| {
            (0..self.len()).find(|place| match self {
                Self::Archived(archive) => {
                    archive.name_for_index(*place).and_then(Result::ok).is_some_and(|it| is(&it))
                }
                Self::Flat(parts) => is(&parts[*place].0),
            })
        };
        let exact = match self {
            Self::Archived(archive) => archive.index_for_name(name),
            Self::Flat(_) => any(&|known| known == name),
        };
        // Others separate folders by backslashes.
        exact.or_else(|| any(&|known| known.replace('\\', "/").eq_ignore_ascii_case(name)))
    }

    /// Writes at most `most` bytes of a part. Bytes are counted while unpacking; sizes stated by
    /// the archive are not trusted.
    fn unpack(&mut self, place: usize, most: u64, to: &mut impl Write) -> io::Result<u64> {
        match self {
            Self::Archived(archive) => io::copy(&mut archive.by_index(place)?.take(most), to),
            Self::Flat(parts) => io::copy(&mut parts[place].1.take(most), to),
        }
    }
}

/// A reference from one part to another.
#[derive(Debug)]
pub(crate) struct Relation {
    /// The last segment of its type: `footnotes`, `officeDocument`, …
    pub(crate) kind: String,
    /// The name of the other part.
    pub(crate) target: String,
}

impl<'a> Package<'a> {
    pub(crate) fn open(
        bytes: &'a [u8],
        format: Format,
        context: &Context<'a>,
    ) -> Result<Self, Unreadable> {
        let parts = match flat::read_parts(bytes, format)? {
            Some(parts) => Parts::Flat(parts),
            None => Parts::Archived(
                ZipArchive::new(Cursor::new(bytes))
                    .map_err(|error| Unreadable::damaged(format, error))?,
            ),
        };
        let most = context.limits.unpacked_bytes;
        let (tally, broken) = (context.tally, HashSet::new());
        Ok(Self { parts, format, most, left: most, tally, broken })
    }

    /// Reads a part's bytes. Returns `None` if there is no such part.
    pub(crate) fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, Unreadable> {
        let Some(place) = self.parts.place(name) else { return Ok(None) };
        let mut bytes = Vec::new();
        let size = self
            .parts
            .unpack(place, self.left + 1, &mut bytes)
            .map_err(|error| Unreadable::damaged(self.format, error))?;
        if size > self.left {
            return Err(self.too_large(size));
        }
        self.left -= size;
        Ok(Some(bytes))
    }

    /// Unpacks every part and keeps none, for readers without bounds of their own.
    ///
    /// # Errors
    /// [`Unreadable::TooLarge`] for an archive that unpacks to more than the limits allow.
    pub(crate) fn check_unpacked_size(&mut self) -> Result<(), Unreadable> {
        for place in 0..self.parts.len() {
            // A part that cannot be unpacked takes no space.
            let size = self.parts.unpack(place, self.left + 1, &mut io::sink()).unwrap_or(0);
            if size > self.left {
                return Err(self.too_large(size));
            }
            self.left -= size;
        }
        self.left = self.most;
        Ok(())
    }

    fn too_large(&self, size: u64) -> Unreadable {
        Unreadable::TooLarge {
            what: format!("unpacked {}", self.format).into(),
            size: self.most - self.left + size,
            most: self.most,
        }
    }

    /// Returns whether there is a part with this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.parts.place(name).is_some()
    }

    /// Reads a part's tree. Returns `None` if there is no such part.
    pub(crate) fn xml(&mut self, name: &str) -> Result<Option<Element>, Unreadable> {
        self.read(name)?.map(|bytes| xml::parse(&bytes, self.format)).transpose()
    }

    /// Reads the tree of a part that the document can do without. An unreadable one is counted, and
    /// `None` is returned.
    ///
    /// # Errors
    /// [`Unreadable::TooLarge`] for an archive that unpacks to more than the limits allow.
    pub(crate) fn optional(&mut self, name: &str) -> Result<Option<Element>, Unreadable> {
        match self.xml(name) {
            Ok(tree) => Ok(tree),
            Err(too_large @ Unreadable::TooLarge { .. }) => Err(too_large),
            Err(_) => {
                if self.broken.insert(name.to_owned()) {
                    self.tally.add_in_part(Kind::UnreadParts, 1, name);
                }
                Ok(None)
            }
        }
    }

    /// Returns the references of a part by their ids. The archive itself is the part "".
    pub(crate) fn relations(
        &mut self,
        part: &str,
    ) -> Result<HashMap<String, Relation>, Unreadable> {
        let (folder, _) = split_name(part);
        let inside = self.references(part)?.into_iter().filter(|(.., is_outside)| !is_outside);
        let resolved = inside.map(|(id, Relation { kind, target }, _)| {
            (id, Relation { kind, target: resolve_path(folder, &target) })
        });
        Ok(resolved.collect())
    }

    /// Returns the external addresses that a part refers to, by their ids.
    pub(crate) fn links(&mut self, part: &str) -> Result<HashMap<String, String>, Unreadable> {
        let outside = self.references(part)?.into_iter().filter(|(.., is_outside)| *is_outside);
        Ok(outside.map(|(id, relation, _)| (id, relation.target)).collect())
    }

    /// Counts the documents and objects in other files that a part shows.
    pub(crate) fn count_linked_objects(&mut self, part: &str) -> Result<(), Unreadable> {
        for (_, Relation { kind, target }, is_outside) in self.references(part)? {
            if is_outside && matches!(&*kind, "oleObject" | "package") {
                self.tally.add_in_part(Kind::UnreadParts, 1, &target);
            }
        }
        Ok(())
    }

    /// Returns the references of a part: their ids, their targets as they are written, and whether these lie
    /// outside of the archive.
    fn references(&mut self, part: &str) -> Result<Vec<(String, Relation, bool)>, Unreadable> {
        let (folder, file) = split_name(part);
        let name = resolve_path(folder, &format!("_rels/{file}.rels"));
        let tree = self.optional(&name)?.unwrap_or_default();
        let references = tree.all("Relationship").into_iter().filter_map(|it| {
            let kind = it.attribute("Type")?.rsplit('/').next()?.to_owned();
            let is_outside = it.attribute("TargetMode").as_deref() == Some("External");
            let relation = Relation { kind, target: it.attribute("Target")? };
            Some((it.attribute("Id")?, relation, is_outside))
        });
        Ok(references.collect())
    }

    /// Returns the main part of the archive, or else `usual`.
    pub(crate) fn main_part(&mut self, usual: &str) -> Result<String, Unreadable> {
        let relations = self.relations("")?;
        let named = relations.into_values().find(|relation| relation.kind == "officeDocument");
        Ok(named
            .map(|relation| relation.target)
            .filter(|name| self.has(name))
            .unwrap_or_else(|| usual.to_owned()))
    }
}

/// Splits the name of a part into its folder and its name there.
fn split_name(part: &str) -> (&str, &str) {
    part.rsplit_once('/').unwrap_or(("", part))
}

/// Resolves a name relative to a folder. Returns the name from the root of the archive.
pub(crate) fn resolve_path(folder: &str, name: &str) -> String {
    let (base, name) = name.strip_prefix('/').map_or((folder, name), |name| ("", name));
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(name.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
