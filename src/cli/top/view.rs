//! Draws the screen of `tidegate top` from a snapshot alone.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::Line,
    widgets::{Paragraph, Row, Table, TableState, Wrap},
};

use crate::cli::{
    format::{cost, count, duration, percent, plural, seconds},
    snapshot::{BatchView, ModelView, Snapshot},
};

const KEYS: &str = "↑↓ choose  enter open  p pause  r resume  s sort  q quit";

/// The maximum number of models on the screen; the others scroll into view.
const MODELS: u16 = 8;

/// The state of the screen.
#[derive(Debug, Clone, Default)]
pub(super) struct Screen {
    seen: Snapshot,
    /// The index of the choice, models before batches.
    chosen: usize,
    /// Whether the choice fills the screen.
    pub(super) open: bool,
    /// The message about the last key.
    pub(super) said: String,
    /// Whether models are sorted by use, fullest first, and not by name.
    pub(super) by_use: bool,
}

/// The chosen item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Choice<'a> {
    Model(&'a ModelView),
    Batch(&'a BatchView),
    Nothing,
}

impl Screen {
    pub(super) fn new(seen: Snapshot) -> Self {
        Self { seen, ..Self::default() }
    }

    /// Takes a new snapshot; the choice stays.
    pub(super) fn update(&mut self, seen: Snapshot) {
        let name = |choice: Choice<'_>| match choice {
            Choice::Model(model) => Some(model.model.to_string()),
            Choice::Batch(batch) => Some(batch.id().to_owned()),
            Choice::Nothing => None,
        };
        let before = name(self.choice());
        self.seen = seen;
        let last = self.length().saturating_sub(1);
        let places = 0..self.length();
        self.chosen = places
            .into_iter()
            .find(|place| before.is_some() && name(self.at(*place)) == before)
            .unwrap_or_else(|| self.chosen.min(last));
    }

    fn length(&self) -> usize {
        self.seen.models.len() + self.seen.batches.len()
    }

    /// The models in the order of the screen.
    fn models(&self) -> Vec<&ModelView> {
        let mut models: Vec<&ModelView> = self.seen.models.iter().collect();
        if self.by_use {
            let part = |model: &ModelView| model.fullest().map_or(0.0, |limit| limit.part());
            models.sort_by(|a, b| part(b).total_cmp(&part(a)));
        }
        models
    }

    fn at(&self, place: usize) -> Choice<'_> {
        let models = self.models();
        let chosen = match place.checked_sub(models.len()) {
            None => models.get(place).copied().map(Choice::Model),
            Some(place) => self.seen.batches.get(place).map(Choice::Batch),
        };
        chosen.unwrap_or(Choice::Nothing)
    }

    pub(super) fn choice(&self) -> Choice<'_> {
        self.at(self.chosen)
    }

    /// Moves the choice by one, within the list.
    pub(super) fn choose(&mut self, down: bool) {
        let last = self.length().saturating_sub(1);
        self.chosen =
            if down { (self.chosen + 1).min(last) } else { self.chosen.saturating_sub(1) };
        self.said.clear();
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let [verdict, middle, keys] =
            Layout::vertical([Constraint::Length(3), Constraint::Min(1), Constraint::Length(1)])
                .areas(frame.area());
        self.verdict(frame, verdict);
        if self.open {
            frame.render_widget(wrapped(self.detail()), middle);
        } else {
            let models = u16::try_from(self.seen.models.len()).unwrap_or(MODELS).clamp(1, MODELS);
            let [of_models, of_batches, detail] = Layout::vertical([
                Constraint::Length(models + 2),
                Constraint::Min(3),
                Constraint::Length(6),
            ])
            .areas(middle);
            self.table_of_models(frame, of_models);
            self.table_of_batches(frame, of_batches);
            frame.render_widget(wrapped(self.detail()), detail);
        }
        let said = if self.said.is_empty() { KEYS } else { self.said.as_str() };
        frame.render_widget(Line::styled(said, faint()), keys);
    }

    fn verdict(&self, frame: &mut Frame<'_>, area: Rect) {
        let [verdict, rest] =
            Layout::vertical([Constraint::Length(2), Constraint::Length(1)]).areas(area);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        frame.render_widget(
            Paragraph::new(self.seen.verdict.as_str()).style(bold).wrap(Wrap { trim: true }),
            verdict,
        );
        let (workers, at) = (self.seen.workers.len() as u64, &self.seen.at);
        let workers = plural(workers, "worker");
        frame.render_widget(Line::styled(format!("{workers} · {at}"), faint()), rest);
    }

    fn table_of_models(&self, frame: &mut Frame<'_>, area: Rect) {
        let widths = widths([16, 7, 9, 7, 14]);
        let models = self.models();
        let rows = models.iter().map(|model| {
            Row::new(of_model(model)).style(colour(model.is_closed() || model.is_down))
        });
        let head = Row::new(["MODEL", "LIMIT", "USED", "IN FLIGHT", "WAITING", "GATE"]);
        let chosen = Some(self.chosen).filter(|chosen| *chosen < models.len());
        show(frame, area, Table::new(rows, widths).header(head.style(faint())), chosen);
    }

    fn table_of_batches(&self, frame: &mut Frame<'_>, area: Rect) {
        let widths = widths([10, 15, 6, 5, 8, 8]);
        let rows = self.seen.batches.iter().map(|batch| {
            let failed = batch.progress().is_some_and(|progress| progress.totals.failed > 0);
            Row::new(of_batch(batch)).style(colour(failed))
        });
        let head = Row::new(["BATCH", "STATUS", "DONE", "FAILED", "/MIN", "ETA", "COST"]);
        let chosen = self.chosen.checked_sub(self.seen.models.len());
        show(frame, area, Table::new(rows, widths).header(head.style(faint())), chosen);
    }

    /// The details of the choice.
    fn detail(&self) -> Vec<Line<'static>> {
        let lines: Vec<String> = match self.choice() {
            Choice::Model(model) => model_lines(model),
            Choice::Batch(batch) => batch_lines(batch),
            Choice::Nothing => Vec::new(),
        };
        lines.into_iter().map(Line::from).collect()
    }
}

/// The name's column, and the others of these widths.
fn widths<const N: usize>(others: [u16; N]) -> impl Iterator<Item = Constraint> {
    [Constraint::Min(18)].into_iter().chain(Constraint::from_lengths(others))
}

fn show(frame: &mut Frame<'_>, area: Rect, table: Table<'_>, chosen: Option<usize>) {
    let mut state = TableState::new().with_selected(chosen);
    frame.render_stateful_widget(table.row_highlight_style(reversed()), area, &mut state);
}

fn model_lines(model: &ModelView) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", model.model, model.gate())];
    lines.extend(model.trouble.clone());
    lines.extend(model.limits.iter().map(|limit| {
        let (used, most) = (count(limit.used), count(limit.effective_limit));
        let why = limit.why.join("; ");
        let why = if why.is_empty() { why } else { format!(" ({why})") };
        format!("{} {used} of {most}, {}{why}", limit.limited.title(), percent(limit.part()))
    }));
    lines.extend(model.lanes.iter().map(|lane| {
        let queue = duration(seconds(lane.queue_seconds));
        let (flight, waiting) = (count(lane.in_flight), count(lane.waiting));
        format!("lane {}: {flight} in flight, about {waiting} wait {queue}", lane.lane)
    }));
    lines
}

fn batch_lines(batch: &BatchView) -> Vec<String> {
    let why = batch.why().unwrap_or("nothing holds it back");
    let mut lines = vec![format!("{}: {why}", batch.id())];
    for failed in &batch.failed {
        let samples = failed.samples.join(", ");
        let samples = if samples.is_empty() { samples } else { format!(" ({samples})") };
        lines.push(format!("{}{samples}", failed.sentence()));
        lines.push(format!("  next: {}", failed.next(None)));
    }
    if let Some(progress) = batch.progress() {
        let spend = &progress.totals.spend;
        lines.push(format!(
            "{} calls, {} 429s, {} waits in Temporal, {} tokens in, {} out",
            count(spend.provider_calls),
            count(spend.rate_limited),
            count(spend.deferrals),
            count(spend.input_tokens),
            count(spend.output_tokens),
        ));
    }
    lines
}

fn of_model(model: &ModelView) -> Vec<String> {
    let (limit, used) = model.fullest().map_or_else(
        || ("-".to_owned(), "-".to_owned()),
        |limit| {
            let name = limit.limited.title();
            (format!("{} {name}", count(limit.effective_limit)), percent(limit.part()))
        },
    );
    let (flight, waiting) = (count(model.in_flight), count(model.waiting()));
    vec![model.model.to_string(), limit, used, flight, waiting, model.gate()]
}

fn of_batch(batch: &BatchView) -> Vec<String> {
    let running = batch.batch.is_running();
    let eta = batch.eta().map_or_else(|| if running { "unknown" } else { "" }.to_owned(), duration);
    let Some(progress) = batch.progress() else {
        return vec![batch.id().to_owned(), batch.status().to_owned()];
    };
    let totals = &progress.totals;
    vec![
        batch.id().to_owned(),
        batch.status().to_owned(),
        format!("{} of {}", count(totals.ended()), count(progress.documents)),
        count(totals.failed),
        format!("{:.0}", batch.per_minute()),
        eta,
        cost(&totals.spend),
    ]
}

fn wrapped(lines: Vec<Line<'static>>) -> Paragraph<'static> {
    Paragraph::new(lines).wrap(Wrap { trim: true })
}

fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn reversed() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

fn colour(bad: bool) -> Style {
    if bad { Style::new().fg(Color::Yellow) } else { Style::new() }
}

#[cfg(test)]
mod tests {
    use ratatui::{Terminal, backend::TestBackend, buffer::Cell};

    use super::*;
    use crate::cli::snapshot::busy;

    fn drawn(screen: &Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        let cells = terminal.backend().buffer().content();
        let lines = cells.chunks(usize::from(width)).map(|cells| {
            let line: String = cells.iter().map(Cell::symbol).collect();
            line.trim_end().to_owned() + "\n"
        });
        lines.collect()
    }

    #[test]
    fn a_busy_fleet_fits_into_80_by_24() {
        let mut screen = Screen::new(busy());
        let shown = drawn(&screen, 80, 24);
        let lines: Vec<&str> = shown.lines().collect();
        let verdict = "running at 97.0 % of openai:gpt-4.1-mini; tokens bind; done in 15m 3";
        assert!(lines[0].starts_with(verdict), "{shown}");
        let has = |words: &[&str]| {
            let is_there = |line: &&str| words.iter().all(|word| line.contains(word));
            assert!(lines.iter().any(is_there), "{words:?}: {shown}");
        };
        has(&["1 worker · 2026-11-20T18:50:00Z"]);
        has(&["MODEL", "LIMIT", "USED", "IN FLIGHT", "WAITING", "GATE"]);
        has(&["openai:gpt-4.1-mini", "392,000 tokens", "97.0 %", "42", "120", "open"]);
        has(&["contracts-2026", "running", "1,250 of 5,000", "3", "15m 3", "$4.25"]);
        has(&["invoices-2026", "completed", "800 of 800"]);
        has(&["requests 312 of 4,900", "(margin 0.98)"]);
        assert!(lines[23].contains("p pause") && lines[23].contains("q quit"), "{shown}");
        screen.choose(true);
        let batch = drawn(&screen, 80, 24);
        assert!(
            batch.contains("contracts-20261120-184530-03f9a: it waits for quota: tokens: 97.0")
        );
        assert!(batch.contains("3 × TooLarge: the document is too long (annex-b.pdf)"), "{batch}");
        // Opened, it has the room.
        screen.open = true;
        let open = drawn(&screen, 80, 24);
        assert!(open.contains("0 calls, 0 429s") && !open.contains("MODEL"), "{open}");
    }

    #[test]
    fn a_closed_gate_is_seen_and_the_fullest_goes_first_on_demand() {
        let mut seen = busy();
        let mut other = seen.models[0].clone();
        other.model = "anthropic:claude-sonnet-5".parse().unwrap();
        other.limits[1].used = 0;
        other.paused_seconds = 30.0;
        other.paused_until_resume = true;
        seen.models.insert(0, other);
        let mut screen = Screen::new(seen);
        let place = |screen: &Screen, word: &str| drawn(screen, 100, 30).find(word).unwrap();
        assert!(place(&screen, "claude") < place(&screen, "gpt-4.1-mini  "));
        assert!(drawn(&screen, 100, 30).contains("paused until i"));
        screen.by_use = true;
        assert!(place(&screen, "gpt-4.1-mini  ") < place(&screen, "claude"));
        let Choice::Model(model) = screen.choice() else { panic!("{:?}", screen.choice()) };
        assert_eq!(model.model.as_str(), "openai:gpt-4.1-mini");
    }

    #[test]
    fn an_empty_fleet_and_a_small_screen_are_no_fault() {
        for (width, height) in [(80, 24), (20, 5), (1, 1)] {
            for screen in [Screen::default(), Screen::new(busy())] {
                let lines = drawn(&screen, width, height);
                assert_eq!(
                    lines.lines().count(),
                    usize::from(height),
                    "{width} × {height}: {lines}"
                );
            }
        }
    }

    #[test]
    fn the_choice_stays_on_what_was_chosen() {
        let mut screen = Screen::new(busy());
        let id = |screen: &Screen| match screen.choice() {
            Choice::Model(model) => model.model.to_string(),
            Choice::Batch(batch) => batch.id().to_owned(),
            Choice::Nothing => String::new(),
        };
        for _ in 0..9 {
            screen.choose(true);
        }
        assert!(id(&screen).starts_with("invoices"), "{}", id(&screen));
        let mut seen = busy();
        seen.batches.insert(0, seen.batches[0].clone());
        screen.update(seen);
        assert!(id(&screen).starts_with("invoices"), "a new batch came before it");
        screen.update(Snapshot::default());
        assert_eq!(screen.choice(), Choice::Nothing);
    }
}
