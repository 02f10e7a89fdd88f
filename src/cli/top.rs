//! `tidegate top`: the fleet on one screen, updated live.

mod view;

use std::{io::IsTerminal, sync::Arc, time::Duration};

use anyhow::Context;
use futures::FutureExt;
use ratatui::{
    DefaultTerminal,
    crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers},
};
use tokio::sync::mpsc;

use crate::config::Config;

use super::{
    actions,
    exit::{Outcome, usage},
    output,
    snapshot::{Snapshot, SnapshotCache},
};
use view::{Choice, Screen};

/// The interval of updates.
const EVERY: Duration = Duration::from_secs(2);

/// The reason of a pause from this command.
const REASON: &str = "paused in tidegate top";

/// Show the fleet live on one screen: limits, batches, gates; keys pause and resume
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print it once, as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let cache = SnapshotCache::new(config)?;
    if args.json {
        output::print_json(&*cache.get().await)?;
        return Ok(Outcome::Done);
    }
    if !std::io::stdout().is_terminal() {
        return Err(usage("this is not a terminal; use `tidegate top --json`"));
    }
    let mut terminal = ratatui::try_init().context("the terminal cannot be used")?;
    let ended = Box::pin(live(&cache, &mut terminal)).await;
    ratatui::restore();
    ended.map(|()| Outcome::Done)
}

async fn live(cache: &SnapshotCache, terminal: &mut DefaultTerminal) -> anyhow::Result<()> {
    let mut keys = keys();
    let mut screen =
        Screen::new(Snapshot { verdict: "looking …".to_owned(), ..Snapshot::default() });
    // One update at a time; keys are handled in the meantime.
    let look = || cache.get().boxed();
    let (mut looking, mut is_looking) = (look(), true);
    let mut beat = tokio::time::interval(EVERY);
    loop {
        terminal.draw(|frame| screen.draw(frame)).context("drawing")?;
        tokio::select! {
            seen = &mut looking, if is_looking => {
                screen.update(Arc::unwrap_or_clone(seen));
                is_looking = false;
            }
            _ = beat.tick(), if !is_looking => (looking, is_looking) = (look(), true),
            key = keys.recv() => match key {
                None | Some(Key::Quit) => return Ok(()),
                Some(Key::Redraw) => {}
                Some(Key::Choose { down }) => screen.choose(down),
                Some(Key::Open) => screen.open = !screen.open,
                Some(Key::Close) if !screen.open => return Ok(()),
                Some(Key::Close) => screen.open = false,
                Some(Key::Sort) => screen.by_use = !screen.by_use,
                Some(Key::Pause(pause)) => {
                    screen.said = steer(cache, screen.choice(), pause).await;
                    cache.forget().await;
                    (looking, is_looking) = (look(), true);
                }
            },
        }
    }
}

/// Pauses or resumes the choice; returns a message.
async fn steer(cache: &SnapshotCache, choice: Choice<'_>, pause: bool) -> String {
    let (what, done) = match choice {
        Choice::Model(model) => {
            let id = model.model.as_str();
            let done = match pause {
                true => {
                    actions::pause(&cache.config, &cache.quota, id, None, REASON).await.map(drop)
                }
                false => actions::resume(&cache.quota, id).await.map(drop),
            };
            (id.to_owned(), done)
        }
        Choice::Batch(batch) => {
            let signal = if pause { "pause" } else { "resume" };
            let done = async { cache.temporal().await?.signal(batch.id(), signal).await };
            (batch.id().to_owned(), done.await)
        }
        Choice::Nothing => return "nothing is chosen".to_owned(),
    };
    match (done, pause) {
        (Ok(()), true) => format!("{what} is paused until it is resumed"),
        (Ok(()), false) => format!("{what} goes on"),
        (Err(error), _) => format!("{error:#}"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Quit,
    Redraw,
    Choose {
        down: bool,
    },
    Open,
    Close,
    Sort,
    /// True: pause; false: resume.
    Pause(bool),
}

/// Reads keys on a separate thread, because reading a terminal blocks.
fn keys() -> mpsc::Receiver<Key> {
    let (sender, keys) = mpsc::channel(16);
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if let Some(key) = key(&event)
                && sender.blocking_send(key).is_err()
            {
                return;
            }
        }
    });
    keys
}

fn key(event: &Event) -> Option<Key> {
    let pressed = match event {
        Event::Resize(..) => return Some(Key::Redraw),
        Event::Key(key) if key.kind == KeyEventKind::Press => key,
        _ => return None,
    };
    let control = pressed.modifiers.contains(KeyModifiers::CONTROL);
    match pressed.code {
        KeyCode::Char('c') if control => Some(Key::Quit),
        KeyCode::Char('q') => Some(Key::Quit),
        KeyCode::Esc => Some(Key::Close),
        KeyCode::Enter => Some(Key::Open),
        KeyCode::Up | KeyCode::Char('k') => Some(Key::Choose { down: false }),
        KeyCode::Down | KeyCode::Char('j') => Some(Key::Choose { down: true }),
        KeyCode::Char('s') => Some(Key::Sort),
        KeyCode::Char('p') => Some(Key::Pause(true)),
        KeyCode::Char('r') => Some(Key::Pause(false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn keys_mean_what_the_last_line_says() {
        let press = |code| key(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)));
        let keys = [
            (KeyCode::Char('p'), Key::Pause(true)),
            (KeyCode::Char('r'), Key::Pause(false)),
            (KeyCode::Char('s'), Key::Sort),
            (KeyCode::Enter, Key::Open),
            (KeyCode::Esc, Key::Close),
            (KeyCode::Down, Key::Choose { down: true }),
            (KeyCode::Up, Key::Choose { down: false }),
            (KeyCode::Char('q'), Key::Quit),
        ];
        for (code, expected) in keys {
            assert_eq!(press(code), Some(expected), "{code:?}");
        }
        assert_eq!(press(KeyCode::Char('x')), None);
        let control = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(key(&Event::Key(control)), Some(Key::Quit));
        assert_eq!(key(&Event::Resize(80, 24)), Some(Key::Redraw));
    }
}
