//! `tidegate top` in a terminal of 80 by 24, made by util-linux's `script`; this test draws the output.
//! With `TIDEGATE_WRITE_DOCS=1`, a picture goes into `docs/pictures/`.

use std::{
    fmt::Write as _,
    path::Path,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, Command},
};

use crate::fleet::{Fleet, MODEL, fleet_with_its_own_redis};

const COLUMNS: usize = 80;
const ROWS: usize = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    sign: char,
    strong: bool,
    faint: bool,
    reversed: bool,
}

const BLANK: Cell = Cell { sign: ' ', strong: false, faint: false, reversed: false };

/// The screen that a terminal shows for the program's output, as far as this program uses a terminal's
/// features.
struct Screen {
    cells: Vec<[Cell; COLUMNS]>,
    row: usize,
    column: usize,
    pen: Cell,
    /// The alternate screen, which leaves the main screen untouched.
    is_other: bool,
    has_cursor: bool,
    /// The whole output.
    bytes: Vec<u8>,
}

impl Screen {
    fn new() -> Self {
        Self {
            cells: vec![[BLANK; COLUMNS]; ROWS],
            row: 0,
            column: 0,
            pen: BLANK,
            is_other: false,
            has_cursor: true,
            bytes: Vec::new(),
        }
    }

    /// Redraws the whole output: a character or a sequence may arrive in two pieces.
    fn take(&mut self, bytes: &[u8]) {
        let mut all = std::mem::take(&mut self.bytes);
        all.extend_from_slice(bytes);
        *self = Self { bytes: Vec::new(), ..Self::new() };
        let text = String::from_utf8_lossy(&all).into_owned();
        let mut signs = text.chars().peekable();
        while let Some(sign) = signs.next() {
            match sign {
                '\u{1b}' if signs.next_if_eq(&'[').is_some() => {
                    let mut parameters = String::new();
                    while let Some(sign) =
                        signs.next_if(|it| it.is_ascii_digit() || "?;".contains(*it))
                    {
                        parameters.push(sign);
                    }
                    if let Some(command) = signs.next() {
                        self.obey(command, &parameters);
                    }
                }
                '\r' => self.column = 0,
                '\n' => self.row = (self.row + 1).min(ROWS - 1),
                sign if !sign.is_control() => {
                    assert!(self.column < COLUMNS, "written beyond the edge of row {}", self.row);
                    self.cells[self.row][self.column] = Cell { sign, ..self.pen };
                    self.column += 1;
                }
                _ => {}
            }
        }
        self.bytes = all;
    }

    fn obey(&mut self, command: char, parameters: &str) {
        let numbers: Vec<usize> = parameters.split(';').filter_map(|it| it.parse().ok()).collect();
        match (command, parameters) {
            ('H', _) => {
                let at = |place: usize| numbers.get(place).map_or(0, |number| number - 1);
                (self.row, self.column) = (at(0), at(1));
                assert!(self.row < ROWS && self.column < COLUMNS, "{parameters} is off the screen");
            }
            ('J', _) => self.cells = vec![[BLANK; COLUMNS]; ROWS],
            ('h' | 'l', "?1049") => self.is_other = command == 'h',
            ('h' | 'l', "?25") => self.has_cursor = command == 'h',
            ('m', _) => {
                let mut numbers = numbers.into_iter();
                while let Some(number) = numbers.next() {
                    match number {
                        // A colour by its number does not count as a style.
                        38 | 48 => drop(numbers.nth(1)),
                        0 => self.pen = BLANK,
                        1 => self.pen.strong = true,
                        2 => self.pen.faint = true,
                        7 => self.pen.reversed = true,
                        22 => (self.pen.strong, self.pen.faint) = (false, false),
                        27 => self.pen.reversed = false,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn text(&self) -> String {
        let row = |row: &[Cell; COLUMNS]| row.iter().map(|cell| cell.sign).collect::<String>();
        self.cells.iter().map(row).map(|row| row.trim_end().to_owned() + "\n").collect()
    }

    /// A picture, with one element for each run of equal style.
    fn svg(&self) -> String {
        let (wide, high) = (9, 18);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"14\">\n\
             <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#14181d\"/>\n",
            (COLUMNS + 2) * wide,
            (ROWS + 1) * high
        );
        for (number, row) in self.cells.iter().enumerate() {
            let top = high / 2 + number * high;
            let alike = |a: &Cell, b: &Cell| {
                (a.strong, a.faint, a.reversed) == (b.strong, b.faint, b.reversed)
            };
            let mut column = 0;
            for run in row.chunk_by(alike) {
                let text: String = run.iter().map(|cell| cell.sign).collect();
                let (left, width) = ((column + 1) * wide, run.len() * wide);
                column += run.len();
                let Cell { strong, faint, reversed, .. } = run[0];
                if reversed {
                    let _ = writeln!(
                        svg,
                        "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{high}\" fill=\"#d5dae0\"/>"
                    );
                }
                if text.trim().is_empty() {
                    continue;
                }
                let fill = if reversed {
                    "#14181d"
                } else if faint {
                    "#8a939e"
                } else {
                    "#d5dae0"
                };
                let weight = if strong { " font-weight=\"bold\"" } else { "" };
                let text = text.replace('&', "&amp;").replace('<', "&lt;");
                let _ = writeln!(
                    svg,
                    "<text x=\"{left}\" y=\"{}\" textLength=\"{width}\" xml:space=\"preserve\" fill=\"{fill}\"{weight}>{text}</text>",
                    top + high * 3 / 4
                );
            }
        }
        svg + "</svg>\n"
    }
}

/// The program in a terminal.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: Arc<Mutex<Screen>>,
}

impl Terminal {
    fn start(fleet: &Fleet) -> Option<Self> {
        let command = format!(
            "stty cols {COLUMNS} rows {ROWS}; exec '{}' top --config '{}'",
            env!("CARGO_BIN_EXE_tidegate"),
            fleet.path("tidegate.toml").display()
        );
        let started = Command::new("script")
            .args(["-qefc", &command, "/dev/null"])
            .env("TERM", "xterm-256color")
            .env("SIMULATED_KEY", "sk-simulated-secret")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let Ok(mut child) = started else {
            eprintln!(
                "SKIPPED: no `script` (util-linux) on the PATH; `top` was not tried in a terminal"
            );
            return None;
        };
        let screen = Arc::new(Mutex::new(Screen::new()));
        let (keys, mut shown) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let seen = Arc::clone(&screen);
        tokio::spawn(async move {
            let mut bytes = vec![0; 1 << 16];
            while let Ok(count @ 1..) = shown.read(&mut bytes).await {
                seen.lock().take(&bytes[..count]);
            }
        });
        Some(Self { child, keys, screen })
    }

    async fn key(&mut self, key: &str) {
        self.keys.write_all(key.as_bytes()).await.unwrap();
        self.keys.flush().await.unwrap();
    }

    async fn until(&self, what: &str, seen: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let text = self.screen.lock().text();
            if seen(&text) {
                return text;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "never: {what}; it shows\n{text}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Presses `q` and checks that the terminal is restored.
    async fn quit(mut self) {
        self.key("q").await;
        let ended = tokio::time::timeout(Duration::from_secs(20), self.child.wait()).await;
        assert!(ended.expect("q ends it").unwrap().success());
        let began = Instant::now();
        while self.screen.lock().is_other && began.elapsed() < Duration::from_secs(10) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let screen = self.screen.lock();
        assert!(!screen.is_other && screen.has_cursor, "the terminal is left as it was found");
        let said = String::from_utf8_lossy(&screen.bytes).into_owned();
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_works_in_a_terminal_and_leaves_it_clean_whatever_dies() {
    let settings = format!("[models.\"{MODEL}\"]\nrpm = 60\nitpm = 40_000\n");
    let simulator = "[latency]\nbase = \"2s\"\n";
    let Some(mut fleet) = fleet_with_its_own_redis(simulator, &settings).await else { return };
    fleet.documents(80, 400);
    fleet.worker();
    fleet.start("quarterly-reports", &fleet.batch("out")).await;
    let Some(mut top) = Terminal::start(&fleet) else { return };
    let text = top
        .until("a batch on its way", |text| {
            text.contains("quarterly-reports")
                && text.contains(" of 80")
                && text.contains("sonnet-5")
        })
        .await;
    assert!(top.screen.lock().is_other && !top.screen.lock().has_cursor);
    assert!(text.lines().last().unwrap().contains("q quit"), "{text}");
    let busy =
        |text: &str| text.lines().any(|line| line.contains("requests") && line.contains('%'));
    top.until("use of a limit", busy).await;
    if std::env::var_os("TIDEGATE_WRITE_DOCS").is_some() {
        // Some documents are done, and the limit binds.
        top.until("a batch on its way", |text| !text.contains(" 0 of 80")).await;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures");
        std::fs::write(folder.join("top.svg"), top.screen.lock().svg()).unwrap();
    }
    // The batch is the row below the model: Enter shows it on the whole screen, Escape goes back.
    top.key("\u{1b}[B").await;
    top.key("\r").await;
    let opened = top.until("another view", |text| !text.contains("MODEL  ")).await;
    assert!(opened.contains("quarterly-reports"), "{opened}");
    top.key("\u{1b}").await;
    top.until("the list again", |text| text.contains("MODEL  ")).await;

    // First its Redis goes away, then its worker.
    drop(fleet.own_redis.take());
    fleet.kill_worker(0).await;
    top.until("that something is away", |text| {
        let first = text.lines().next().unwrap_or_default();
        first.contains("Redis") || first.contains("worker")
    })
    .await;
    top.key("s").await;
    top.quit().await;
    fleet.stop().await;
}
