//! Compound files, which Office's older formats are: sectors in chains ([MS-CFB]).
//!
//! Who follows a chain that a damaged file leads back into itself never ends, and takes all memory
//! on the way. So chains are looked at before a parser follows them.

/// Numbers of sectors from here on mean something else: the end of a chain, a free sector.
const RESERVED: u32 = 0xffff_fffa;

/// Sectors that are named in the header.
const IN_HEADER: usize = 109;

/// Whether a chain of sectors leads back into itself.
pub(crate) fn has_endless_chain(file: &[u8]) -> bool {
    endless(file).unwrap_or(false)
}

/// Nothing where the header is cut off: who reads such a file says so.
fn endless(file: &[u8]) -> Option<bool> {
    let size = if number(file, 30)? & 0xffff == 12 { 4_096 } else { 512 };
    let sectors = file.len() / size + 1;
    let sector = |id: u32| {
        let start = (id as usize + 1).checked_mul(size)?;
        file.get(start..(start + size).min(file.len()))
    };
    // Which sectors hold the table: the first in the header, more in a chain of their own.
    let mut holders: Vec<u32> = numbers(file.get(76..76 + 4 * IN_HEADER)?).collect();
    let mut more = number(file, 68)?;
    let mut seen = 0;
    while more < RESERVED
        && let Some(part) = sector(more)
    {
        seen += 1;
        if seen > sectors {
            return Some(true);
        }
        holders.extend(numbers(part));
        more = holders.pop()?;
    }
    let held = holders.into_iter().filter(|id| *id < RESERVED).take(sectors);
    let table: Vec<u32> = held.filter_map(sector).flat_map(numbers).collect();
    if is_endless(&table) {
        return Some(true);
    }
    // Small streams lie in sectors of their own, whose table is a stream.
    let mut small = Vec::new();
    let mut next = number(file, 60)?;
    while let Some(part) = sector(next).filter(|_| next < RESERVED) {
        small.extend(numbers(part));
        next = *table.get(next as usize)?;
    }
    Some(is_endless(&small))
}

/// A stream by its name. For files without an endless chain.
pub(crate) fn stream(file: &[u8], name: &str) -> Option<Vec<u8>> {
    const ENTRY: usize = 128;
    const SMALL: usize = 64;
    let size = if number(file, 30)? & 0xffff == 12 { 4_096 } else { 512 };
    let sector = |id: u32| {
        let start = (id as usize).checked_add(1)?.checked_mul(size)?;
        file.get(start..start.checked_add(size)?.min(file.len()))
    };
    let holders = numbers(file.get(76..76 + 4 * IN_HEADER)?);
    let mut holders: Vec<u32> = holders.filter(|id| *id < RESERVED).collect();
    let mut more = number(file, 68)?;
    while let Some(part) = sector(more).filter(|_| more < RESERVED && holders.len() < file.len()) {
        holders.extend(numbers(part));
        more = holders.pop()?;
    }
    holders.retain(|id| *id < RESERVED);
    let table: Vec<u32> = holders.into_iter().filter_map(sector).flat_map(numbers).collect();
    let chain = |first: u32, table: &[u32]| {
        let next = |id: &u32| table.get(*id as usize).copied().filter(|id| *id < RESERVED);
        std::iter::successors(Some(first).filter(|id| *id < RESERVED), next)
            .take(table.len())
            .collect::<Vec<_>>()
    };
    let whole = |first: u32| -> Vec<u8> {
        chain(first, &table).into_iter().filter_map(sector).flatten().copied().collect()
    };
    let wanted: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let entries = whole(number(file, 48)?);
    let entry = entries.chunks_exact(ENTRY).find(|entry| {
        entry.get(..wanted.len()) == Some(&*wanted)
            && entry.get(wanted.len()..wanted.len() + 2) == Some(&[0; 2])
    })?;
    let (first, length) = (number(entry, 116)?, number(entry, 120)? as usize);
    let mut bytes = if length >= number(file, 56)? as usize {
        whole(first)
    } else {
        let small: Vec<u32> = numbers(&whole(number(file, 60)?)).collect();
        let all = whole(number(&entries, 116)?);
        let part = |id: u32| {
            let start = (id as usize).checked_mul(SMALL)?;
            all.get(start..start.checked_add(SMALL)?.min(all.len()))
        };
        chain(first, &small).into_iter().filter_map(part).flatten().copied().collect()
    };
    bytes.truncate(length);
    Some(bytes)
}

/// Whether somebody who goes from each place to the one that it names comes back.
fn is_endless(table: &[u32]) -> bool {
    // The walk that came by first; 0 for none.
    let mut walked = vec![0_usize; table.len()];
    (0..table.len()).any(|start| {
        let (walk, mut at) = (start + 1, start);
        loop {
            match walked.get_mut(at) {
                Some(first) if *first == 0 => *first = walk,
                // Where an earlier walk has been, it came to an end.
                other => return other.is_some_and(|first| *first == walk),
            }
            at = table[at] as usize;
        }
    })
}

fn number(file: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?))
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> {
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

    #[test]
    fn a_stream_is_found_by_its_name() {
        let file = include_bytes!("../tests/fixtures/ports.xls");
        let book = stream(file, "Workbook").unwrap();
        assert_eq!(book.get(..4), Some(&[9, 8, 16, 0][..]), "it begins with a record of that kind");
        assert_eq!(stream(file, "Work"), None);
    }
}
