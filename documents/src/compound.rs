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
}
