//! `tidegate extract`.

use std::{io::IsTerminal as _, path::PathBuf};

use anyhow::Context as _;
use tidegate_documents::left_out::Place;

use super::{
    exit::{Outcome, usage},
    output::{self, BAD, FAINT, styled},
};
use crate::{config::Config, worker};

/// Print a document's text as a model would see it; stderr counts what was left out
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The document
    file: PathBuf,
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let file = args.file.display();
    let bytes = std::fs::read(&args.file).map_err(|error| {
        usage(format!("{file} cannot be read: {error}; name a file that you may read"))
    })?;
    let name = args.file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let reader = worker::reader(config)?;
    let read = reader.read(bytes.into(), &name).await;
    let read = match read.context("starting the process that reads")? {
        Ok(read) => read,
        Err(unreadable) => {
            output::print_message(&format!("{} {file}: {unreadable}", styled(BAD, "error:")));
            return Ok(Outcome::Faulty);
        }
    };
    match std::io::stdout().is_terminal() {
        true => output::print_data(&harmless(&read.text))?,
        false => output::print_plain(&read.text)?,
    }
    for (number, picture) in (1..).zip(&read.pictures) {
        let (width, height) = (picture.width, picture.height);
        output::print_message(&styled(
            FAINT,
            format!("picture {number}: {width} × {height}, is sent as it is seen"),
        ));
    }
    for (kind, count) in read.left_out.iter() {
        let places: Vec<String> = count.places.iter().map(place).collect();
        let places =
            if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) };
        output::print_message(&format!("{}: {}{places}", kind.as_str(), count.count));
    }
    Ok(Outcome::Done)
}

fn place(place: &Place) -> String {
    match place {
        Place::Page(page) => format!("page {page}"),
        Place::Part(part) => part.clone(),
    }
}

/// Escapes characters that control a terminal.
fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => shown.push(letter),
            letter if letter.is_control() => shown.extend(letter.escape_debug()),
            letter => shown.push(letter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_no_file_says_what_to_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().to_owned();
        let refused = run(Args { file }, &Config::default()).await.unwrap_err().to_string();
        assert!(refused.contains("cannot be read") && refused.contains("name a file"), "{refused}");
    }

    #[test]
    fn a_terminal_is_told_nothing_by_a_document() {
        assert_eq!(harmless("a\tb\n\x1b[2Jc\r"), "a\tb\n\\u{1b}[2Jc\\r");
    }
}
