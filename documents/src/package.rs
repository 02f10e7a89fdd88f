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

/// An open package, of which no more is unpacked than the limits allow.
pub(crate) struct Package<'a> {
    parts: Parts<'a>,
    format: Format,
    most: u64,
    left: u64,
    tally: &'a Tally,
    /// Parts that are counted as unread.
    broken: HashSet<String>,
}

/// Where a package's parts are.
enum Parts<'a> {
    Archived(ZipArchive<Cursor<&'a [u8]>>),
    /// All in one file of XML.
    Flat(flat::Parts<'a>),
}

impl Parts<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Archived(archive) => archive.len(),
            Self::Flat(parts) => parts.len(),
        }
    }

    /// Some writers disagree with themselves about capitals.
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
        exact.or_else(|| any(&|known| known.eq_ignore_ascii_case(name)))
    }

    /// Writes a part, and no more than so many bytes of it. Counted while it is unpacked: what an archive
    /// says of its size is not believed.
    fn unpack(&mut self, place: usize, most: u64, to: &mut impl Write) -> io::Result<u64> {
        match self {
            Self::Archived(archive) => io::copy(&mut archive.by_index(place)?.take(most), to),
            Self::Flat(parts) => io::copy(&mut parts[place].1.take(most), to),
        }
    }
}

/// What one part says of another.
#[derive(Debug)]
pub(crate) struct Relation {
    /// The last word of its type: `footnotes`, `officeDocument`, …
    pub(crate) kind: String,
    /// The other part's name.
    pub(crate) target: String,
}

impl<'a> Package<'a> {
    pub(crate) fn open(
        bytes: &'a [u8],
        format: Format,
        context: &Context<'a>,
    ) -> Result<Self, Unreadable> {
        let parts = match flat::parts(bytes, format)? {
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

    /// A part's bytes, if there is one of this name.
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

    /// Unpacks every part and keeps none: for those whose reader knows no bounds.
    ///
    /// # Errors
    /// [`Unreadable::TooLarge`] for an archive that unpacks to more than the limits allow.
    pub(crate) fn check(&mut self) -> Result<(), Unreadable> {
        for place in 0..self.parts.len() {
            // What cannot be unpacked does not grow either.
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

    /// Whether there is a part of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.parts.place(name).is_some()
    }

    /// A part's tree, if there is one of this name.
    pub(crate) fn xml(&mut self, name: &str) -> Result<Option<Element>, Unreadable> {
        self.read(name)?.map(|bytes| xml::parse(&bytes, self.format)).transpose()
    }

    /// The same of a part without which there is a document all the same: one that cannot be read is
    /// counted.
    ///
    /// # Errors
    /// [`Unreadable::TooLarge`] for an archive that unpacks to more than the limits allow.
    pub(crate) fn optional(&mut self, name: &str) -> Result<Option<Element>, Unreadable> {
        match self.xml(name) {
            Ok(tree) => Ok(tree),
            Err(too_large @ Unreadable::TooLarge { .. }) => Err(too_large),
            Err(_) => {
                if self.broken.insert(name.to_owned()) {
                    self.tally.in_part(Kind::UnreadParts, 1, name);
                }
                Ok(None)
            }
        }
    }

    /// What a part refers to, by its ids; the archive itself is the part "".
    pub(crate) fn relations(
        &mut self,
        part: &str,
    ) -> Result<HashMap<String, Relation>, Unreadable> {
        let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
        let name = resolved(folder, &format!("_rels/{file}.rels"));
        let Some(tree) = self.optional(&name)? else { return Ok(HashMap::new()) };
        let relations = tree.all("Relationship").into_iter().filter_map(|relation| {
            if relation.attribute("TargetMode").as_deref() == Some("External") {
                return None;
            }
            let kind = relation.attribute("Type")?.rsplit('/').next()?.to_owned();
            let target = resolved(folder, &relation.attribute("Target")?);
            Some((relation.attribute("Id")?, Relation { kind, target }))
        });
        Ok(relations.collect())
    }

    /// Addresses outside of the archive that a part refers to, by their ids.
    pub(crate) fn links(&mut self, part: &str) -> Result<HashMap<String, String>, Unreadable> {
        let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
        let Some(tree) = self.optional(&resolved(folder, &format!("_rels/{file}.rels")))? else {
            return Ok(HashMap::new());
        };
        let links = tree.all("Relationship").into_iter().filter_map(|relation| {
            let is_outside = relation.attribute("TargetMode").as_deref() == Some("External");
            is_outside.then(|| Some((relation.attribute("Id")?, relation.attribute("Target")?)))?
        });
        Ok(links.collect())
    }

    /// The part that the archive is about.
    pub(crate) fn main(&mut self, usual: &str) -> Result<String, Unreadable> {
        let relations = self.relations("")?;
        let named = relations.into_values().find(|relation| relation.kind == "officeDocument");
        Ok(named
            .map(|relation| relation.target)
            .filter(|name| self.has(name))
            .unwrap_or_else(|| usual.to_owned()))
    }
}

/// A name that is relative to a folder, as one from the root of the archive.
pub(crate) fn resolved(folder: &str, name: &str) -> String {
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
