//! A prompt for each row of a table.

use minijinja::Value;

use super::template::{Text, Variables};

/// Variable that holds all cells of a row by their columns, for columns whose names cannot be
/// written in a template: `{{ row["Company name"] }}`. A column of this name takes precedence.
const ROW: &str = "row";

/// The prompt's place, for messages.
const PLACE: &str = "--prompt";

/// A text in which `{{ column }}` stands for a row's cell.
#[derive(Debug, Clone)]
pub struct RowPrompt(String);

impl RowPrompt {
    /// Checks a prompt for the rows of a table with these columns.
    ///
    /// # Errors
    /// A sentence that names the place of a syntax error, or the name that is not a column.
    pub fn new(text: String, columns: &[&str]) -> Result<Self, String> {
        let names = Text { place: PLACE, text: &text }.names()?;
        let all = || columns.join(", ");
        if let Some(name) =
            names.iter().find(|name| *name != ROW && !columns.contains(&name.as_str()))
        {
            return Err(format!("{PLACE}: there is no column \"{name}\"; the columns: {}", all()));
        }
        if names.is_empty() {
            return Err(format!(
                "{PLACE} names no column, and each row would be asked the same; write {{{{ column }}}}; the columns: {}",
                all()
            ));
        }
        Ok(Self(text))
    }

    /// Fills in these cells, by their columns.
    ///
    /// # Errors
    /// A sentence that states the fault and its line.
    pub fn fill<'a>(
        &self,
        cells: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    ) -> Result<String, String> {
        let mut variables = Variables::from([(ROW, Value::from_pairs(cells.clone()))]);
        variables.extend(cells.map(|(column, cell)| (column, Value::from(cell))));
        Text { place: PLACE, text: &self.0 }.fill(&variables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [&str; 2] = ["city", "Company name"];

    fn fill(text: &str) -> Result<String, String> {
        let cells = COLUMNS.into_iter().zip(["Husum", "a, \"b\""]);
        RowPrompt::new(text.to_owned(), &COLUMNS)?.fill(cells)
    }

    #[test]
    fn cells_stand_where_their_columns_are_named() {
        let text = "{{ city|upper }}: {{ row[\"Company name\"] }}";
        assert_eq!(fill(text).unwrap(), "HUSUM: a, \"b\"");
    }

    #[test]
    fn a_name_that_is_no_column_is_refused_before_a_row_is_read() {
        let unknown = fill("{{ town }}").unwrap_err();
        assert_eq!(
            unknown,
            "--prompt: there is no column \"town\"; the columns: city, Company name"
        );
        assert!(fill("Sum up.").unwrap_err().contains("names no column"));
        assert!(fill("{{ city").unwrap_err().contains("line 1: syntax error"));
        assert!(fill("{{ row.town }}").unwrap_err().contains("not known"));
    }
}
