//! A number of bytes as text: `"500kB"`, `"16MiB"`, `"2GiB"`.

use std::{fmt, ops::Deref, str::FromStr};

use super::as_text::read_as_text;

/// A number of bytes that is read and written with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// Largest unit first.
const UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

impl Deref for Size {
    type Target = u64;

    fn deref(&self) -> &u64 {
        &self.0
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole =
            UNITS.iter().find(|(_, bytes)| self.0 >= *bytes && self.0.is_multiple_of(*bytes));
        let (unit, bytes) = whole.unwrap_or(&("B", 1));
        write!(f, "{}{unit}", self.0 / bytes)
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = UNITS.iter().find_map(|(unit, bytes)| {
            let number = text.trim().strip_suffix(unit)?.trim_end();
            number.replace('_', "").parse::<u64>().ok()?.checked_mul(*bytes)
        });
        parsed.map(Self).ok_or_else(|| {
            let given = text.escape_debug();
            format!("is \"{given}\"; write a number of bytes with its unit, such as \"500kB\", \"16MiB\" or \"2GiB\"")
        })
    }
}

read_as_text!(Size, "a number of bytes with its unit, such as \"500kB\" or \"16MiB\"", |_, why| {
    why
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_written_and_asked_for() {
        for (text, bytes, shown) in [
            ("16MiB", 16 << 20, "16MiB"),
            ("1_500 kB", 1_500_000, "1500kB"),
            ("2048KiB", 2 << 20, "2MiB"),
            ("0B", 0, "0B"),
        ] {
            let size: Size = text.parse().unwrap();
            assert_eq!((size.0, size.to_string().as_str()), (bytes, shown));
        }
        for wrong in ["16", "16 Mb", "-1MB", "20000000000GiB", "B"] {
            assert!(wrong.parse::<Size>().unwrap_err().contains("\"16MiB\""), "{wrong}");
        }
    }
}
