//! Tables whose cells are drawn. Each of their rows becomes one word at the position of the row.

use super::{
    bidi::is_right_to_left,
    blocks::{Block, Entry},
    grids::{Grid, find_grids},
    groups,
    lines::{BAR, join_lines, join_words},
    rows::group_into_rows,
    ruling::Ruling,
    words::Word,
};

/// Most lines of a cell; a taller cell is a page in a frame.
const MAX_LINES: usize = 60;
/// Most rows between two lines that are examined one by one.
const MAX_ROWS: usize = 400;
/// Smallest average width of a column, in ems. Narrower ones are a form's boxes for single letters.
const MIN_WIDTH: f64 = 1.8;

/// Returns the words of a page, with the words in drawn tables replaced by the tables' rows.
pub(super) fn replace_tables(mut words: Vec<Word>, ruling: &Ruling) -> Vec<Word> {
    for (number, grid) in find_grids(ruling).iter().enumerate() {
        if let Some((inner, rows)) = read_table(&words, grid, number) {
            let mut inner = inner.into_iter().peekable();
            let mut place = 0;
            words.retain(|_| {
                place += 1;
                inner.next_if_eq(&(place - 1)).is_none()
            });
            words.extend(rows);
        }
    }
    words
}

/// Returns the indices of the words in a table, and its rows. `None` if the grid is not a table.
fn read_table(words: &[Word], grid: &Grid, number: usize) -> Option<(Vec<usize>, Vec<Word>)> {
    let columns = grid.columns();
    let mut cells: Vec<Vec<&Word>> = vec![Vec::new(); columns * grid.rows()];
    let (mut inner, mut crossing) = (Vec::new(), 0);
    for (place, word) in words.iter().enumerate() {
        let y = word.y - 0.3 * word.size;
        let Some(cell) = grid.cell_at(f64::midpoint(word.x.0, word.x.1), y) else { continue };
        // Titles across the whole width and text in frames are lines of the page, not of the table.
        if grid.cells_of(cell / columns) == 1 {
            continue;
        }
        let end = |x: f64| grid.cell_at(x, y) == Some(cell);
        let room = (0.5 * word.size).min(0.5 * word.width());
        crossing += usize::from(!end(word.x.0 + room) || !end(word.x.1 - room));
        inner.push(place);
        cells.get_mut(cell)?.push(word);
    }
    if !is_table(&cells, grid) || crossing * 20 > inner.len() {
        return None;
    }
    let mut all = Vec::new();
    for (row, cells) in cells.chunks(columns).enumerate() {
        let lines = split_stacked_row(cells, grid);
        if lines.is_none() && grid.rows() == 1 {
            return None;
        }
        let single_row = || joined_row(cells).into_iter().collect();
        for line in lines.unwrap_or_else(single_row) {
            all.push((row, line));
        }
    }
    let used = |column: usize| {
        all.iter().any(|(_, line)| line.cells.get(column).is_some_and(|cell| !cell.is_empty()))
    };
    let used: Vec<bool> = (0..columns).map(used).collect();
    let rtl = all.iter().flat_map(|(_, line)| &line.cells).map(String::as_str).collect::<String>();
    let rtl = is_right_to_left(&rtl);
    let x = (*grid.x.first()?, *grid.x.last()?);
    let rows = all.into_iter().map(|(_, line)| {
        let cells = line.cells.into_iter().zip(&used).filter(|(_, used)| **used);
        let mut cells: Vec<String> = cells.map(|(cell, _)| cell).collect();
        if rtl {
            cells.reverse();
        }
        let text = cells.join(BAR).trim_end().to_owned();
        let (y, size) = (line.y, line.size);
        let letters = text.chars().count();
        Word {
            text,
            letters,
            x,
            y,
            size,
            space_before: false,
            space_after: false,
            table: Some(number),
        }
    });
    Some((inner, rows.collect()))
}

/// Whether at least three cells in at least two columns have text, no cell is too tall, and the columns
/// are wide enough.
fn is_table(cells: &[Vec<&Word>], grid: &Grid) -> bool {
    let columns = grid.columns();
    let mut filled: Vec<usize> = Vec::new();
    let (mut size, mut count) = (0.0, 0_u32);
    for (place, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
        filled.push(place % columns);
        for word in cell {
            size += word.size;
            count += 1;
        }
        let tallest = cell.iter().map(|word| word.size).fold(1.0, f64::max);
        let top = cell.iter().map(|word| word.y).fold(f64::INFINITY, f64::min);
        let bottom = cell.iter().map(|word| word.y).fold(f64::NEG_INFINITY, f64::max);
        if bottom - top > MAX_LINES as f64 * tallest {
            return false;
        }
    }
    let cells = filled.len();
    filled.sort_unstable();
    filled.dedup();
    let width = grid.x.last().unwrap_or(&0.0) - grid.x.first().unwrap_or(&0.0);
    let narrow = width / columns as f64 * f64::from(count) < MIN_WIDTH * size;
    cells >= 3 && filled.len() >= 2 && !narrow
}

/// A row with the text of its cells.
struct RowText {
    cells: Vec<String>,
    y: f64,
    size: f64,
}

/// Returns a row with the lines of each cell joined; `None` if all cells are empty.
fn joined_row(cells: &[Vec<&Word>]) -> Option<RowText> {
    let words = || cells.iter().flatten();
    let y = words().map(|word| word.y).fold(f64::INFINITY, f64::min);
    let size = words().map(|word| word.size).fold(0.0, f64::max);
    words().next()?;
    Some(RowText { cells: cells.iter().map(|cell| cell_text(cell)).collect(), y, size })
}

fn cell_text(cell: &[&Word]) -> String {
    if cell.iter().any(|word| word.table.is_some()) {
        // Rows of an inner table.
        let lines = group_into_rows(cell.iter().map(|word| (*word).clone()).collect());
        let lines = lines
            .iter()
            .map(|row| join_words(&row.words.iter().collect::<Vec<_>>(), |_, _, _| false));
        return lines.collect::<Vec<_>>().join("; ");
    }
    let lines = group_into_rows(cell.iter().map(|word| (*word).clone()).collect());
    join_lines(
        lines.iter().map(|row| join_words(&row.words.iter().collect::<Vec<_>>(), |_, _, _| false)),
    )
}

/// Splits a drawn row that contains several rows, as where a line is drawn only below the headings. `None`
/// unless numbers stand below each other, which are not one value.
fn split_stacked_row(cells: &[Vec<&Word>], grid: &Grid) -> Option<Vec<RowText>> {
    let inner = group_into_rows(cells.iter().flatten().map(|word| (*word).clone()).collect());
    if !(3..=MAX_ROWS).contains(&inner.len())
        || inner.iter().any(|row| row.words.iter().any(|word| word.table.is_some()))
    {
        return None;
    }
    let entries: Vec<Entry<'_>> =
        inner.iter().map(|row| Entry::new(row, grid.x.get(1..).unwrap_or_default())).collect();
    let block = Block::new(entries, grid.x.get(1..)?.to_vec());
    if !block.has_stacked_numbers() {
        return None;
    }
    let groups = groups::group_by_text(&block);
    let lines = groups.into_iter().filter_map(|lines| {
        let lines = block.entries.get(lines)?;
        let first = lines.first()?;
        Some(RowText { cells: block.cells(lines), y: first.y, size: first.size })
    });
    Some(lines.collect())
}
