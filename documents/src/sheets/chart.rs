//! Charts: titles and figures, as stored when the chart was drawn.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::cells::format_by_code;
use crate::{drawing::write_paragraphs, xml::Element};

/// Returns the text of a chart and its figures.
pub(crate) fn chart_text(chart: &Element) -> String {
    let mut text = String::new();
    write_paragraphs(chart, &mut text);
    write_figures(chart, &mut text);
    text
}

/// Writes titles that come from cells, and the series with their figures.
fn write_figures(chart: &Element, text: &mut String) {
    for title in chart.all("title").into_iter().filter(|title| title.all("t").is_empty()) {
        let words = joined_values(title);
        if !words.is_empty() {
            text.push_str(&format!("{words}\n"));
        }
    }
    let is_1904 = chart.all("date1904").first().is_some_and(|it| !it.is_off("val"));
    for series in chart.all("ser") {
        let points = |names: [&str; 2]| {
            let part = names.iter().find_map(|name| series.child(name));
            part.map(|part| Points::read(part, is_1904)).unwrap_or_default()
        };
        let (names, figures) = (points(["cat", "xVal"]), points(["val", "yVal"]));
        // Sizes of bubbles, and labels from cells.
        let labels = series.all_with_extensions("dlblRangeCache").first().copied();
        let others = [series.child("bubbleSize"), labels].into_iter().flatten();
        let others = others.map(|part| Points::read(part, is_1904)).collect();
        let name = series.child("tx").map(joined_values).unwrap_or_default();
        write_series(&name, &[vec![names, figures], others].concat(), text);
    }
    write_newer_series(chart, is_1904, text);
}

/// Writes the series of a kind of chart that came later, such as a waterfall (namespace `cx`). Its
/// figures are stored separately from its series.
fn write_newer_series(chart: &Element, is_1904: bool, text: &mut String) {
    let mut names: HashMap<String, String> = HashMap::new();
    for series in chart.all("series") {
        let id = series.child("dataId").and_then(|id| id.attribute("val"));
        if let (Some(id), Some(name)) = (id, series.child("tx")) {
            names.entry(id).or_insert_with(|| joined_values(name));
        }
    }
    for data in chart.all("data") {
        let name = data.attribute("id").and_then(|id| names.remove(&id)).unwrap_or_default();
        let labels = data.child("strDim").map(|part| Points::read(part, is_1904));
        let figures = data.elements().filter(|part| &*part.name == "numDim");
        let figures = figures.map(|part| Points::read(part, is_1904));
        let all: Vec<Points> = [labels.unwrap_or_default()].into_iter().chain(figures).collect();
        write_series(&name, &all, text);
    }
}

/// Writes a series: its name, then each point with its label, its figure, and further ones in
/// brackets. A label without a figure stands alone.
fn write_series(name: &str, all: &[Points], text: &mut String) {
    let places: BTreeSet<usize> = all.iter().flat_map(Points::places).collect();
    let points = places.into_iter().map(|place| {
        let mut values = all.iter().map(|points| points.at(place));
        let (label, figure) = (values.next().flatten(), values.next().flatten());
        let label = label.map(|label| format!("{label}: ")).unwrap_or_default();
        let others: Vec<String> = values.flatten().collect();
        let others =
            if others.is_empty() { others.concat() } else { format!(" ({})", others.join(", ")) };
        format!("{label}{}{others}", figure.unwrap_or_default()).trim().to_owned()
    });
    let name = Some(name.to_owned()).filter(|name| !name.is_empty());
    let line = name.into_iter().chain(points).collect::<Vec<_>>().join(" | ");
    text.push_str(&line);
    text.push('\n');
}

/// Returns the stored values below an element, as one text.
fn joined_values(part: &Element) -> String {
    let values = part.all("v");
    values.iter().map(|value| value.text()).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Labels or figures by the numbers of their points. A point without a value is missing.
#[derive(Clone, Default)]
struct Points {
    /// Labels may have levels, the innermost first.
    levels: Vec<BTreeMap<usize, String>>,
}

impl Points {
    fn read(part: &Element, is_1904: bool) -> Self {
        let levels = part.all("lvl");
        let levels = if levels.is_empty() { vec![part] } else { levels };
        let points = |level: &&Element| {
            let code = level.all("formatCode").first().map(|code| code.text());
            let code = code.or_else(|| level.attribute("formatCode"));
            let points = level.all("pt");
            let point = |(place, point): (usize, &&Element)| {
                let number = point.attribute("idx").and_then(|number| number.parse().ok());
                let code = point.attribute("formatCode").or_else(|| code.clone());
                (number.unwrap_or(place), format_value(point, code.as_deref(), is_1904))
            };
            points.iter().enumerate().map(point).collect()
        };
        Self { levels: levels.iter().map(points).collect() }
    }

    fn places(&self) -> impl Iterator<Item = usize> {
        self.levels.first().into_iter().flat_map(|level| level.keys().copied())
    }

    /// Returns the value of a point. A label of an outer level is valid up to the next one.
    fn at(&self, place: usize) -> Option<String> {
        let (inner, outer) = self.levels.split_first()?;
        let outer = outer.iter().rev().filter_map(|level| level.range(..=place).next_back());
        let outer = outer.map(|(_, label)| &**label);
        let labels: Vec<&str> = outer.chain(inner.get(&place).map(|label| &**label)).collect();
        Some(labels.join(" ").trim().to_owned()).filter(|label| !label.is_empty())
    }
}

/// Returns the value of a point in the format of its number.
fn format_value(point: &Element, code: Option<&str>, is_1904: bool) -> String {
    let value = point.child("v").unwrap_or(point).text().trim().to_owned();
    match (value.parse(), code) {
        (Ok(number), Some(code)) => format_by_code(number, code, is_1904),
        _ => value,
    }
}
