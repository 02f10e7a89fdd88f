//! `tidegate extract`.

use std::{
    fs::File,
    io::{IsTerminal as _, Read as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use bytes::Bytes;
use tidegate_activities::{Storage, storage::special};
use tidegate_documents::{Unreadable, left_out::Place};

use super::{
    exit::{Outcome, usage},
    output::{self, BAD, FAINT, styled},
};
use crate::{config::Config, worker};

/// Print a document's text as a model would see it; stderr counts what was left out
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The document: a path, or a URI of a store
    file: PathBuf,
}

pub(super) async fn run(args: Args, config: &Config) -> anyhow::Result<Outcome> {
    let file = args.file.display();
    let reader = worker::reader(config)?;
    let most = reader.limits().bytes;
    let fetched = match args.file.to_str().filter(|file| file.contains("://")) {
        Some(uri) => fetch(uri, most).await?,
        None => read_file(&args.file, most)?,
    };
    let name = args.file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let read = match fetched {
        Fetched::Whole(bytes) => {
            let read = reader.read(bytes, &name).await;
            read.context("starting the process that reads")?
        }
        Fetched::TooLarge(size) => Err(Unreadable::TooLarge { what: "file".into(), size, most }),
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

/// A document's bytes; or its size, if that is too large.
enum Fetched {
    Whole(Bytes),
    TooLarge(u64),
}

fn read_file(file: &Path, most: u64) -> anyhow::Result<Fetched> {
    let shown = file.display();
    let cannot =
        |error| usage(format!("{shown} cannot be read: {error}; name a file that you may read"));
    let meta = file.metadata().map_err(cannot)?;
    // To open a named pipe waits for its writer.
    if let Some(what) = special(meta.file_type()) {
        return Err(usage(format!("{shown} is {what}, and no file; name a file")));
    }
    if meta.len() > most {
        return Ok(Fetched::TooLarge(meta.len()));
    }
    // The file may grow, or state no size.
    let (opened, mut bytes) = (File::open(file).map_err(cannot)?, Vec::new());
    opened.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(cannot)?;
    let size = bytes.len() as u64;
    Ok(if size > most { Fetched::TooLarge(size) } else { Fetched::Whole(bytes.into()) })
}

/// Fetches a document of any store that this shell's credentials may read.
async fn fetch(uri: &str, most: u64) -> anyhow::Result<Fetched> {
    let location = Storage::for_access_test(uri).and_then(|storage| storage.resolve(uri))?;
    if let Some(what) = location.special() {
        return Err(usage(format!("{uri} is {what}, and no file; name a document")));
    }
    let Some(stamp) = location.stamp().await? else {
        return Err(usage(format!("{uri} does not exist; name a document")));
    };
    if stamp.size > most {
        return Ok(Fetched::TooLarge(stamp.size));
    }
    Ok(Fetched::Whole(location.read_at_most(most).await?.0))
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

    #[cfg(unix)]
    #[tokio::test]
    async fn a_document_of_a_store_is_read_by_its_uri() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        std::fs::write(folder.join("a.md"), "# A\n").unwrap();
        let uri = format!("file://{}/a.md", folder.display());
        let read = run(Args { file: uri.into() }, &Config::default()).await;
        assert_eq!(read.unwrap(), Outcome::Done);
        let absent = format!("file://{}/b.md", folder.display());
        for (uri, reason) in [
            (absent.as_str(), "b.md does not exist; name a document"),
            ("file:///dev/zero", "file:///dev/zero is a device, and no file; name a document"),
        ] {
            let refused = run(Args { file: uri.into() }, &Config::default()).await.unwrap_err();
            assert!(refused.to_string().ends_with(reason), "{refused}");
        }
    }

    #[test]
    fn a_terminal_is_told_nothing_by_a_document() {
        assert_eq!(harmless("a\tb\n\x1b[2Jc\r"), "a\tb\n\\u{1b}[2Jc\\r");
    }
}
