//! Compound files, the container of the older Office formats: sectors in chains ([MS-CFB]).
//!
//! In a damaged file a chain may lead back into itself. A parser that follows it never ends, and
//! takes all memory. So chains are checked before a parser reads the file.

use std::collections::HashSet;

/// First of the sector numbers with a special meaning, such as the end of a chain or a free sector.
const RESERVED: u32 = 0xffff_fffa;

/// Sectors of the table that the header lists.
const IN_HEADER: usize = 109;

/// Bytes of a directory entry.
const ENTRY: usize = 128;

/// The sectors of a file.
struct Table<'f> {
    file: &'f [u8],
    sector_size: usize,
    next: Vec<u32>,
    /// Whether a chain leads back into itself, or the table is longer than the file can need.
    is_endless: bool,
}

impl<'f> Table<'f> {
    /// Reads the table. Returns `None` if the header is cut off; the parser of the file reports
    /// that.
    fn read(file: &'f [u8]) -> Option<Self> {
        let sector_size = if read_number(file, 30)? & 0xffff == 12 { 4_096 } else { 512 };
        let mut table = Self { file, sector_size, next: Vec::new(), is_endless: false };
        let sectors = file.len() / sector_size + 1;
        // Sectors that hold the table: the header lists the first, a chain of sectors lists the
        // others.
        let mut holders: Vec<u32> = read_numbers(file.get(76..76 + 4 * IN_HEADER)?).collect();
        let mut more = read_number(file, 68)?;
        let mut seen = 0;
        while more < RESERVED
            && let Some(part) = table.sector(more)
            && !table.is_endless
        {
            seen += 1;
            table.is_endless = seen > sectors;
            holders.extend(read_numbers(part));
            more = holders.pop()?;
        }
        let held = holders.into_iter().filter(|id| *id < RESERVED);
        let mut held = held.filter_map(|id| table.sector(id));
        // The table has a number for each sector of the file. Some programs pad the header's list.
        let most = sectors / (sector_size / 4) + 1 + IN_HEADER;
        let next: Vec<u32> = held.by_ref().take(most).flat_map(read_numbers).collect();
        let is_too_long = held.next().is_some();
        table.is_endless |= is_too_long || is_endless(&next);
        table.next = next;
        Some(table)
    }

    fn sector(&self, id: u32) -> Option<&'f [u8]> {
        let start = (id as usize).checked_add(1)?.checked_mul(self.sector_size)?;
        self.file.get(start..start.checked_add(self.sector_size)?.min(self.file.len()))
    }

    /// Returns the bytes of all sectors of a chain; `None` if it leads back into itself.
    fn read_chain(&self, first: u32) -> Option<Vec<u8>> {
        let sectors = follow_chain(first, &self.next)?.into_iter().filter_map(|id| self.sector(id));
        Some(sectors.flatten().copied().collect())
    }

    /// Returns the table of the small sectors, in which small streams are stored. It is a stream
    /// itself.
    fn read_small_table(&self) -> Option<Vec<u32>> {
        Some(read_numbers(&self.read_chain(read_number(self.file, 60)?)?).collect())
    }

    fn read_directory(&self) -> Option<Vec<u8>> {
        self.read_chain(read_number(self.file, 48)?)
    }
}

/// Returns the sectors of a chain; `None` if it leads back into itself.
fn follow_chain(first: u32, table: &[u32]) -> Option<Vec<u32>> {
    let next = |id: &u32| table.get(*id as usize).copied().filter(|id| *id < RESERVED);
    let (mut chain, mut seen) = (Vec::new(), HashSet::new());
    for id in std::iter::successors(Some(first).filter(|id| *id < RESERVED), next) {
        if !seen.insert(id) {
            return None;
        }
        chain.push(id);
    }
    Some(chain)
}

/// Returns whether a chain of sectors leads back into itself.
pub(crate) fn has_endless_chain(file: &[u8]) -> bool {
    Table::read(file).is_some_and(|table| {
        table.is_endless || table.read_small_table().is_some_and(|small| is_endless(&small))
    })
}

/// Returns the names of the entries at the top of a file. Entries within a storage, such as a sheet
/// in a document, are not included.
pub(crate) fn list_entries(file: &[u8]) -> Vec<String> {
    let directory = Table::read(file).and_then(|table| table.read_directory()).unwrap_or_default();
    let entries: Vec<&[u8]> = directory.chunks_exact(ENTRY).collect();
    // The root names one top entry; each entry names up to two siblings.
    let mut open: Vec<u32> =
        entries.first().and_then(|root| read_number(root, 76)).into_iter().collect();
    let (mut names, mut seen) = (Vec::new(), HashSet::new());
    while let Some(id) = open.pop() {
        let Some(entry) = entries.get(id as usize).filter(|_| seen.insert(id)) else { continue };
        names.push(name_of(entry));
        open.extend([read_number(entry, 68), read_number(entry, 72)].into_iter().flatten());
    }
    names
}

fn name_of(entry: &[u8]) -> String {
    let (units, _) = entry[..64].as_chunks::<2>();
    let units = units.iter().map(|unit| u16::from_le_bytes(*unit)).take_while(|unit| *unit != 0);
    String::from_utf16_lossy(&units.collect::<Vec<_>>())
}

/// Reads a stream by its name.
pub(crate) fn read_stream(file: &[u8], name: &str) -> Option<Vec<u8>> {
    const SMALL: usize = 64;
    let table = Table::read(file)?;
    let directory = table.read_directory()?;
    let entry = directory.chunks_exact(ENTRY).find(|entry| name_of(entry) == name)?;
    let (first, length) = (read_number(entry, 116)?, read_number(entry, 120)? as usize);
    let mut bytes = if length >= read_number(file, 56)? as usize {
        table.read_chain(first)?
    } else {
        let all = table.read_chain(read_number(&directory, 116)?)?;
        let part = |id: u32| {
            let start = (id as usize).checked_mul(SMALL)?;
            all.get(start..start.checked_add(SMALL)?.min(all.len()))
        };
        follow_chain(first, &table.read_small_table()?)?
            .into_iter()
            .filter_map(part)
            .flatten()
            .copied()
            .collect()
    };
    bytes.truncate(length);
    Some(bytes)
}

/// Returns whether a chain of the table leads back into itself.
fn is_endless(table: &[u32]) -> bool {
    // For each position the walk that visited it first; 0 for none.
    let mut walked = vec![0_usize; table.len()];
    (0..table.len()).any(|start| {
        let (walk, mut at) = (start + 1, start);
        loop {
            match walked.get_mut(at) {
                Some(first) if *first == 0 => *first = walk,
                // Every earlier walk has ended, so only the same walk can close a circle.
                other => return other.is_some_and(|first| *first == walk),
            }
            at = table[at] as usize;
        }
    })
}

fn read_number(file: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?))
}

fn read_numbers(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).filter_map(|four| Some(u32::from_le_bytes(four.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_wherever_they_begin() {
        const END: u32 = 0xffff_fffe;
        for (table, expected) in [
            (&[1, 2, END][..], false),
            (&[2, 2, END], false),
            (&[0], true),
            (&[END, 2, 3, 1], true),
            (&[1, 2, 1], true),
            (&[7, END], false),
            (&[], false),
        ] {
            assert_eq!(is_endless(table), expected, "{table:?}");
        }
        assert!(!has_endless_chain(b"cut off"));
        assert!(!has_endless_chain(include_bytes!("../tests/fixtures/ports.xls")));
    }

    /// A file whose directory leads back into itself and whose header lists one sector of the table
    /// again and again, as do the sectors that list further ones.
    fn looping_file(sectors: usize) -> Vec<u8> {
        const SIZE: usize = 4_096;
        let mut file = vec![0; sectors * SIZE];
        let mut put =
            |at: usize, number: u32| file[at..at + 4].copy_from_slice(&number.to_le_bytes());
        put(0, 0xe011_cfd0);
        put(30, 12);
        put(48, 2);
        put(60, 0xffff_fffe);
        put(68, 1);
        (0..SIZE).step_by(4).for_each(|at| put(SIZE + at, u32::MAX));
        put(SIZE + 8, 2);
        // The sector 1 lists the sector 0 for all of the table, and itself as the next list.
        put(3 * SIZE - 4, 1);
        file
    }

    #[test]
    fn a_directory_that_leads_back_into_itself_is_refused() {
        const SECTORS: usize = 1_024;
        let file = looping_file(SECTORS);
        let table = Table::read(&file).unwrap();
        assert!(table.is_endless);
        let most = SECTORS + 1_024 * (IN_HEADER + 2);
        assert!(table.next.len() <= most, "{} numbers", table.next.len());
        assert_eq!(table.read_directory(), None);
        assert!(list_entries(&file).is_empty());
        assert_eq!(follow_chain(0, &[1, 2, 1]), None);
        assert_eq!(follow_chain(0, &[1, 2, 0xffff_fffe]), Some(vec![0, 1, 2]));
    }

    #[test]
    fn names_at_the_top_are_told_from_those_within() {
        let names = list_entries(include_bytes!("../tests/fixtures/ports.xls"));
        assert!(names.iter().any(|name| name == "Workbook"), "{names:?}");
        assert!(list_entries(b"cut off").is_empty());
    }

    #[test]
    fn a_stream_is_found_by_its_name() {
        let file = include_bytes!("../tests/fixtures/ports.xls");
        let book = read_stream(file, "Workbook").unwrap();
        assert_eq!(book.get(..4), Some(&[9, 8, 16, 0][..]), "it begins with a record of that kind");
        assert_eq!(read_stream(file, "Work"), None);
    }
}
