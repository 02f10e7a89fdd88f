//! `tidegate extract`.

use std::{
    fs::File,
    io::{IsTerminal as _, Read as _},
    path::PathBuf,
};

use anyhow::Context as _;
use tidegate_activities::storage::special;
use tidegate_documents::{Unreadable, left_out::Place};

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
    let cannot =
        |error| usage(format!("{file} cannot be read: {error}; name a file that you may read"));
    let meta = args.file.metadata().map_err(cannot)?;
    // To open a named pipe waits for its writer.
    if let Some(what) = special(meta.file_type()) {
        return Err(usage(format!("{file} is {what}, and no file; name a file")));
    }
    let reader = worker::reader(config)?;
    let most = reader.limits().bytes;
    let mut bytes = Vec::new();
    if meta.len() <= most {
        // The file may grow, or state no size.
        let opened = File::open(&args.file).map_err(cannot)?;
        opened.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(cannot)?;
    }
    let size = meta.len().max(bytes.len() as u64);
    let name = args.file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let read = if size > most {
        Err(Unreadable::TooLarge { what: "file".into(), size, most })
    } else {
        let read = reader.read(bytes.into(), &name).await;
        read.context("starting the process that reads")?
    };
    let read = match read {
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

    #[cfg(unix)]
    #[tokio::test]
    async fn what_has_no_end_is_refused_unread() {
        let refused = run(Args { file: "/dev/zero".into() }, &Config::default()).await;
        let refused = refused.unwrap_err().to_string();
        assert_eq!(refused, "/dev/zero is a device, and no file; name a file");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sparse.txt");
        File::create(&file).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(run(Args { file }, &Config::default()).await.unwrap(), Outcome::Faulty);
    }

    #[test]
    fn a_terminal_is_told_nothing_by_a_document() {
        assert_eq!(harmless("a\tb\n\x1b[2Jc\r"), "a\tb\n\\u{1b}[2Jc\\r");
    }
}
