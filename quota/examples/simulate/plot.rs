//! Two plots as one SVG, written by hand: use over time, and the longest waits of each lane.

use std::fmt::Write;

use crate::{
    event::SECOND,
    report::{BIN, Report},
};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 52.0;
const GAP: f64 = 64.0;
const COLOURS: [&str; 3] = ["#0969da", "#cf222e", "#bf8700"];

/// A line: its name and its points, time in seconds first.
type Line = (&'static str, Vec<(f64, f64)>);

/// The scenarios' data for the plots.
#[derive(Default)]
pub(crate) struct Plots {
    use_over_time: Vec<Line>,
    waits: Vec<Line>,
}

impl Plots {
    /// A run's use of its limit in each ten seconds.
    pub(crate) fn using(&mut self, name: &'static str, report: &Report, limit: u64) {
        let seconds = BIN as f64 / SECOND as f64;
        let full = limit as f64 * seconds / 60.0;
        let bins = &report.series[..report.series.len() - 1];
        let points = bins
            .iter()
            .enumerate()
            .map(|(bin, tokens)| (bin as f64 * seconds, *tokens as f64 / full * 100.0));
        self.use_over_time.push((name, points.collect()));
    }

    /// A lane's longest wait in each ten seconds.
    pub(crate) fn waiting(&mut self, name: &'static str, report: &Report, lane: usize) {
        self.waits.push((name, report.longest_waits(lane)));
    }

    pub(crate) fn svg(&self) -> String {
        let (width, height) = (WIDTH + LEFT + 16.0, 2.0 * (HEIGHT + GAP));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        panel(&mut svg, 32.0, "Use of the limit in each ten seconds, %", &self.use_over_time);
        panel(&mut svg, 32.0 + HEIGHT + GAP, "Longest wait in each ten seconds, s", &self.waits);
        svg.push_str("</svg>\n");
        svg
    }
}

fn panel(svg: &mut String, top: f64, title: &str, lines: &[Line]) {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let end = points().map(|point| point.0).fold(1.0, f64::max);
    let most = round_up(points().map(|point| point.1).fold(1.0, f64::max));
    let x = |seconds: f64| LEFT + seconds / end * WIDTH;
    let y = |value: f64| top + HEIGHT - value / most * HEIGHT;
    let mut line = |text: String| {
        svg.push_str(&text);
        svg.push('\n');
    };
    line(format!("<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{title}</text>", top - 12.0));
    for step in 0..=4 {
        let value = most * f64::from(step) / 4.0;
        line(format!(
            "<path d=\"M{LEFT} {y:.1}h{WIDTH}\" stroke=\"#d0d7de\"/><text x=\"{x:.1}\" y=\"{text:.1}\" text-anchor=\"end\">{value}</text>",
            y = y(value),
            x = LEFT - 6.0,
            text = y(value) + 4.0,
        ));
    }
    for (place, ((name, points), colour)) in lines.iter().zip(COLOURS).enumerate() {
        let mut path = String::new();
        for (seconds, value) in points {
            let _ = write!(path, "{:.1},{:.1} ", x(*seconds), y(*value));
        }
        line(format!(
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" points=\"{}\"/>",
            path.trim_end()
        ));
        let legend = LEFT + place as f64 * 240.0;
        line(format!(
            "<text x=\"{legend}\" y=\"{:.1}\" fill=\"{colour}\">{name}</text>",
            top + HEIGHT + 30.0
        ));
    }
    for step in 0..=4 {
        let seconds = end * f64::from(step) / 4.0;
        line(format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{seconds:.0} s</text>",
            x(seconds),
            top + HEIGHT + 15.0
        ));
    }
}

/// The next 1, 2, 4 or 8 times a power of ten: an axis that divides into four round parts.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 4.0, 8.0, 10.0]
        .into_iter()
        .map(|step| step * power)
        .find(|rounded| *rounded >= value)
        .unwrap_or(value)
}
