//! Things that were taken in, by number, the newest of them.

use std::collections::BTreeMap;

use super::page::Page;

/// How many of a kind are kept.
const MAX_ENTRIES: usize = 1_000;

/// How many bytes of a kind are kept, as they were sent: five files of the largest size.
const MAX_BYTES: usize = 1 << 30;

#[derive(Debug)]
pub(crate) struct BoundedStore<T> {
    /// Each with the bytes that it was sent in.
    things: BTreeMap<u64, (usize, T)>,
    bytes: usize,
}

impl<T> Default for BoundedStore<T> {
    fn default() -> Self {
        Self { things: BTreeMap::new(), bytes: 0 }
    }
}

impl<T> BoundedStore<T> {
    /// Keeps a thing, and lets go of the oldest ones if it must. The number is larger than any
    /// before.
    pub(crate) fn put(&mut self, number: u64, bytes: usize, thing: T) {
        self.bytes += bytes;
        self.things.insert(number, (bytes, thing));
        while self.things.len() > MAX_ENTRIES || (self.bytes > MAX_BYTES && self.things.len() > 1) {
            let Some((_, (bytes, _))) = self.things.pop_first() else { return };
            self.bytes -= bytes;
        }
    }

    /// The thing of a name that begins so and ends in its number.
    pub(crate) fn get(&mut self, prefix: &str, name: &str) -> Option<&mut T> {
        self.things.get_mut(&number(prefix, name)?).map(|(_, thing)| thing)
    }

    /// Lets go of a thing.
    pub(crate) fn remove(&mut self, prefix: &str, name: &str) -> Option<T> {
        let (bytes, thing) = self.things.remove(&number(prefix, name)?)?;
        self.bytes -= bytes;
        Some(thing)
    }

    /// The newest things and their names, the newest first: those that are older than the one of
    /// this name, if there is one. Whether there are more.
    pub(crate) fn newest(
        &self,
        prefix: &str,
        Page { most, after }: &Page<'_>,
    ) -> (Vec<(String, &T)>, bool) {
        let before = after.and_then(|after| number(prefix, after)).unwrap_or(u64::MAX);
        let mut older = self.things.range(..before).rev();
        let page = older
            .by_ref()
            .take(*most)
            .map(|(number, (_, thing))| (name(prefix, *number), thing))
            .collect();
        (page, older.next().is_some())
    }

    pub(crate) fn all(&mut self) -> impl Iterator<Item = &mut T> {
        self.things.values_mut().map(|(_, thing)| thing)
    }
}

/// The name of what has this number.
pub(crate) fn name(prefix: &str, number: u64) -> String {
    format!("{prefix}{number:016x}")
}

fn number(prefix: &str, name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix(prefix)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_have_names_and_the_oldest_go_first() {
        let mut bounded_store = BoundedStore::default();
        (0..1_001).for_each(|n| bounded_store.put(n, 1, n));
        assert_eq!(bounded_store.get("a_", &name("a_", 1_000)), Some(&mut 1_000));
        assert_eq!(bounded_store.get("a_", &name("a_", 0)), None);
        let newest = bounded_store.newest("a_", &Page { most: 2, after: None });
        assert_eq!(newest, (vec![(name("a_", 1_000), &1_000), (name("a_", 999), &999)], true));
        let after = name("a_", 2);
        let oldest = bounded_store.newest("a_", &Page { most: 2, after: Some(&after) });
        assert_eq!(oldest, (vec![(name("a_", 1), &1)], false));
        for name in ["b_1", "a_x", ""] {
            assert_eq!(bounded_store.get("a_", name), None);
        }
        assert_eq!(
            (
                bounded_store.remove("a_", &name("a_", 1_000)),
                bounded_store.remove("a_", &name("a_", 1_000))
            ),
            (Some(1_000), None)
        );
        bounded_store.put(2_000, MAX_BYTES, 7);
        assert_eq!(bounded_store.all().collect::<Vec<_>>(), [&7], "one that fills all of it");
    }
}
