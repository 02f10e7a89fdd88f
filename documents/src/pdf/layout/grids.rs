//! Grids of cells, formed by lines that meet.

use super::ruling::{CLOSE, Edge, Ruling};

/// Most cells of a grid.
const MAX_CELLS: usize = 40_000;
/// Lines that reach further than this beyond the outermost crossing line bound cells there, in points.
const OPEN: f64 = 10.0;

/// The cells of a table: the edges of its columns and rows, and the places that form one cell.
#[derive(Debug)]
pub(super) struct Grid {
    /// Edges of the columns, one more than there are columns.
    pub(super) x: Vec<f64>,
    /// Edges of the rows, one more than there are rows.
    pub(super) y: Vec<f64>,
    /// For each place, row by row, the first place of its cell.
    cells: Vec<usize>,
}

impl Grid {
    pub(super) fn columns(&self) -> usize {
        self.x.len().saturating_sub(1)
    }

    pub(super) fn rows(&self) -> usize {
        self.y.len().saturating_sub(1)
    }

    pub(super) fn area(&self) -> f64 {
        let length = |ends: &[f64]| ends.last().unwrap_or(&0.0) - ends.first().unwrap_or(&0.0);
        length(&self.x) * length(&self.y)
    }

    /// Returns the first place of the cell at a point.
    pub(super) fn cell_at(&self, x: f64, y: f64) -> Option<usize> {
        let place = |ends: &[f64], at: f64| {
            let place = ends.partition_point(|end| *end <= at).checked_sub(1)?;
            (place + 1 < ends.len()).then_some(place)
        };
        let (column, row) = (place(&self.x, x)?, place(&self.y, y)?);
        self.cells.get(row * self.columns() + column).copied()
    }

    /// Returns the number of cells in a row.
    pub(super) fn cells_of(&self, row: usize) -> usize {
        let places = self.cells.iter().skip(row * self.columns()).take(self.columns());
        let mut cells: Vec<usize> = places.copied().collect();
        cells.sort_unstable();
        cells.dedup();
        cells.len()
    }

    fn new(level: &[Edge], upright: &[Edge]) -> Option<Self> {
        let x = ends(upright, level);
        let y = ends(level, upright);
        let (columns, rows) = (x.len().checked_sub(1)?, y.len().checked_sub(1)?);
        if columns < 2 || rows < 1 || columns.saturating_mul(rows) > MAX_CELLS {
            return None;
        }
        let mut cells: Vec<usize> = (0..columns * rows).collect();
        for row in 0..rows {
            let middle = f64::midpoint(*y.get(row)?, *y.get(row + 1)?);
            for column in 0..columns {
                let place = row * columns + column;
                let (end, below) = (*x.get(column + 1)?, *y.get(row + 1)?);
                let center = f64::midpoint(*x.get(column)?, end);
                if column + 1 < columns && !is_drawn(upright, end, middle) {
                    join(&mut cells, place, place + 1);
                }
                if row + 1 < rows && !is_drawn(level, below, center) {
                    join(&mut cells, place, place + columns);
                }
            }
        }
        for place in 0..cells.len() {
            let first = first(&mut cells, place);
            if let Some(cell) = cells.get_mut(place) {
                *cell = first;
            }
        }
        Some(Self { x, y, cells })
    }
}

/// Returns the positions of lines, and the ends of crossing lines that reach further.
fn ends(edges: &[Edge], across: &[Edge]) -> Vec<f64> {
    let mut ends: Vec<f64> = edges.iter().map(|edge| edge.at).collect();
    ends.dedup();
    let from = across.iter().map(|edge| edge.from).fold(f64::INFINITY, f64::min);
    let to = across.iter().map(|edge| edge.to).fold(f64::NEG_INFINITY, f64::max);
    if ends.first().is_some_and(|first| from < first - OPEN) {
        ends.insert(0, from);
    }
    if ends.last().is_some_and(|last| to > last + OPEN) {
        ends.push(to);
    }
    ends
}

fn is_drawn(edges: &[Edge], at: f64, place: f64) -> bool {
    let first = edges.partition_point(|edge| edge.at < at);
    let there = edges.iter().skip(first).take_while(|edge| edge.at <= at);
    there.into_iter().any(|edge| edge.covers(place))
}

/// Returns the first place joined with this one (the root of a union-find), and shortens the path to it.
fn first(cells: &mut [usize], place: usize) -> usize {
    let mut at = place;
    while let Some(next) = cells.get(at).copied().filter(|next| *next != at) {
        let further = cells.get(next).copied().unwrap_or(next);
        if let Some(cell) = cells.get_mut(at) {
            *cell = further;
        }
        at = next;
    }
    at
}

fn join(cells: &mut [usize], a: usize, b: usize) {
    let (a, b) = (first(cells, a), first(cells, b));
    if let Some(cell) = cells.get_mut(a.max(b)) {
        *cell = a.min(b);
    }
}

/// Returns the grids of a page, the smallest first: a table may stand in a cell of another.
pub(super) fn find_grids(ruling: &Ruling) -> Vec<Grid> {
    let (level, upright) = (&ruling.level, &ruling.upright);
    // Upright lines come first. Lines that meet form one group.
    let mut groups: Vec<usize> = (0..upright.len() + level.len()).collect();
    for (number, edge) in (upright.len()..).zip(level) {
        let start = upright.partition_point(|other| other.at < edge.from - CLOSE);
        let met = upright.iter().enumerate().skip(start);
        for (other, line) in met.take_while(|(_, line)| line.at <= edge.to + CLOSE) {
            if line.covers(edge.at) {
                join(&mut groups, other, number);
            }
        }
    }
    let mut members: Vec<(Vec<Edge>, Vec<Edge>)> = Vec::new();
    members.resize_with(groups.len(), Default::default);
    for place in 0..groups.len() {
        let group = first(&mut groups, place);
        let Some(lines) = members.get_mut(group) else { continue };
        match place.checked_sub(upright.len()) {
            Some(place) => lines.0.extend(level.get(place)),
            None => lines.1.extend(upright.get(place)),
        }
    }
    let mut grids: Vec<Grid> =
        members.iter().filter_map(|(level, upright)| Grid::new(level, upright)).collect();
    grids.sort_by(|a, b| a.area().total_cmp(&b.area()));
    grids
}
