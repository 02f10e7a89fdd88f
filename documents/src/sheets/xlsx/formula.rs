//! Shared formulas: written in one cell, and moved for each other cell.

/// Moves a formula by rows and columns. Relative references change.
pub(super) fn move_references(formula: &str, rows: i64, columns: i64) -> String {
    let mut text = String::with_capacity(formula.len());
    let mut rest = formula;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            // A text, or the name of a sheet.
            '"' | '\'' => {
                rest.get(1..).and_then(|it| it.find(first)).map_or(rest.len(), |at| at + 2)
            }
            _ if is_of_word(first) => rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (word, behind) = rest.split_at(length);
        // The name of a function or of a sheet may look like a cell.
        let is_name = behind.starts_with(['(', '!', '[']);
        let is_range = text.ends_with(':') || behind.starts_with(':');
        let reference = Reference::parse(word).filter(|it| !is_name && (it.is_cell() || is_range));
        match reference {
            Some(reference) => text.push_str(&reference.moved(rows, columns)),
            None => text.push_str(word),
        }
        rest = behind;
    }
    text
}

/// Returns the address of a formula that is a link: `HYPERLINK("https://…", …)`.
pub(super) fn linked_address(formula: &str) -> Option<&str> {
    const NAME: &str = "HYPERLINK(";
    let name = formula.get(..NAME.len()).filter(|name| name.eq_ignore_ascii_case(NAME))?;
    let (address, behind) = formula[name.len()..].trim().strip_prefix('"')?.split_once('"')?;
    behind.trim_start().starts_with([',', ')']).then_some(address)
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '$' | '_' | '.' | '\\')
}

/// A cell (`B$2`), or one end of a range of whole columns (`B:B`) or rows (`2:2`).
struct Reference {
    /// Whether the column is absolute, and its number from 1; the row likewise.
    column: Option<(bool, i64)>,
    row: Option<(bool, i64)>,
}

impl Reference {
    fn parse(word: &str) -> Option<Self> {
        let (is_fixed, rest) = fixed(word);
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (letters, digits) = rest.split_at(end);
        if letters.len() > 3 || (!letters.is_empty() && digits == "$") {
            return None;
        }
        let column = letters.bytes().fold(0, |column: i64, letter| {
            column * 26 + i64::from(letter.to_ascii_uppercase() - b'A') + 1
        });
        let row = |is_fixed, digits: &str| {
            let is_number = digits.len() <= 7 && digits.bytes().all(|byte| byte.is_ascii_digit());
            Some((is_fixed, is_number.then(|| digits.parse().ok())??))
        };
        let (column, row) = match (letters, digits) {
            ("", digits) => (None, Some(row(is_fixed, digits)?)),
            (_, "") => (Some((is_fixed, column)), None),
            (_, digits) => {
                let (is_fixed_row, digits) = fixed(digits);
                (Some((is_fixed, column)), Some(row(is_fixed_row, digits)?))
            }
        };
        Some(Self { column, row })
    }

    fn is_cell(&self) -> bool {
        self.column.is_some() && self.row.is_some()
    }

    fn moved(&self, rows: i64, columns: i64) -> String {
        let place = |(is_fixed, number): (bool, i64), by: i64| {
            let number = if is_fixed { number } else { number + by };
            (if is_fixed { "$" } else { "" }, number)
        };
        let mut text = String::new();
        if let Some(column) = self.column {
            let (sign, mut number) = place(column, columns);
            let mut letters = Vec::new();
            while number > 0 {
                // Below 26.
                letters.push(char::from(b'A' + ((number - 1) % 26) as u8));
                number = (number - 1) / 26;
            }
            text.push_str(sign);
            text.extend(letters.iter().rev());
        }
        if let Some(row) = self.row {
            let (sign, number) = place(row, rows);
            text.push_str(&format!("{sign}{number}"));
        }
        text
    }
}

/// Splits off a dollar sign. Returns whether there was one.
fn fixed(word: &str) -> (bool, &str) {
    word.strip_prefix('$').map_or((false, word), |rest| (true, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_references_move_and_nothing_else() {
        for (formula, right) in [
            ("A1*2", "B3*2"),
            ("$A$1+A$1+$A1", "$A$1+B$1+$A3"),
            ("SUM(A1:AZ9)/LOG10(A2)", "SUM(B3:BA11)/LOG10(B4)"),
            ("'A1 x'!B2&\"A1\"&Q1!C3", "'A1 x'!C4&\"A1\"&Q1!D5"),
            ("SUM(A:A)+SUM($2:3)+A", "SUM(B:B)+SUM($2:5)+A"),
            ("IF(TRUE,1.5E3,TAX2024RATE)", "IF(TRUE,1.5E3,TAX2024RATE)"),
            ("Größe1+z1", "Größe1+AA3"),
            ("\"open", "\"open"),
            ("DISCOUNTPERCENTAGE*A1", "DISCOUNTPERCENTAGE*B3"),
        ] {
            assert_eq!(move_references(formula, 2, 1), right);
        }
    }
}
