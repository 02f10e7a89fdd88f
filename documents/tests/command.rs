//! The user's own programs that read documents.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test")]

use std::{path::PathBuf, time::Duration};

use bytes::Bytes;
use tidegate_documents::{Commands, Format, Hidden, Limits, Reader, Unreadable, left_out::Kind};

/// Makes a reader that runs a shell script for these formats.
fn reader(formats: &[&str], script: &str, limits: Limits) -> Reader {
    let command: Vec<String> = ["/bin/sh", "-c", script].map(str::to_owned).into();
    let commands = formats.iter().map(|format| ((*format).to_owned(), command.clone()));
    Reader::isolated(env!("CARGO_BIN_EXE_read-document"), [], limits)
        .with_commands(Commands::new(commands))
}

async fn read(reader: &Reader, bytes: &[u8], name: &str) -> Result<String, String> {
    let read = reader.read(Bytes::copy_from_slice(bytes), name).await.unwrap();
    read.map(|read| read.text).map_err(|error| error.to_string())
}

#[tokio::test]
async fn bytes_go_in_and_text_comes_out() {
    let script =
        "echo \"$DOCUMENT_NAME:\"; tr -cd a-z | tr a-z A-Z; test -z \"$CARGO_MANIFEST_DIR\"";
    let reader = reader(&["doc", ".JPEG"], script, Limits::default());
    let ole = b"\xd0\xcf\x11\xe0 ebb\n".as_slice();
    // The bytes take precedence over the name, and extensions may be spelled differently.
    let picture = b"\xff\xd8\xff ebb";
    for (bytes, name) in [(ole, "a.DOC"), (picture, "a.txt")] {
        let text = read(&reader, bytes, name).await.unwrap();
        assert!(
            text.starts_with(&format!("{name}:\n")) && text.trim_end().ends_with("EBB"),
            "{text}"
        );
    }
    let large = [&b"\xff\xd8\xff"[..], &[b'x'; 300_000]].concat();
    assert!(read(&reader, &large, "large.jpg").await.unwrap().len() > 300_000);
    assert_eq!(read(&reader, b"ebb", "a.txt").await.unwrap(), "ebb", "others are read as ever");
}

/// No variable of the worker but those that programs need: a provider's key is none of them.
#[tokio::test]
async fn the_process_that_reads_has_no_secret_in_its_environment() {
    let seen = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("environment-of-a-reader");
    let script = format!("cat /proc/self/environ > '{}'", seen.display());
    let reader = Reader::isolated("/bin/sh", ["-c".to_owned(), script], Limits::default());
    drop(reader.read(Bytes::from_static(b"%PDF-1.7"), "a.pdf").await);
    let seen = String::from_utf8(std::fs::read(seen).unwrap()).unwrap();
    let names: Vec<&str> =
        seen.split('\0').filter_map(|variable| Some(variable.split_once('=')?.0)).collect();
    assert!(names.contains(&"PATH"), "{names:?}");
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
}

#[tokio::test]
async fn what_a_program_writes_has_the_bounds_of_its_document() {
    let reader = reader(&["bin"], "cat", Limits::default());
    let bytes = || Bytes::from_static("ebb\u{e0064}\u{e006f} and flow".as_bytes());
    let read = reader.read(bytes(), "a.bin").await.unwrap().unwrap();
    assert_eq!(read.text, "ebb and flow");
    assert_eq!(read.left_out.count(Kind::HiddenText), 2);
    let limits = Limits { text_bytes: 5, hidden: Hidden::Mark, ..Limits::default() };
    let error = reader.read_within(bytes(), "a.bin", limits).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("at most 5 are read"), "{error}");
}

#[tokio::test]
async fn what_goes_wrong_says_which_program() {
    let small = Limits { text_bytes: 1_000, memory: 200 << 20, ..Limits::default() };
    for (script, expected) in [
        ("cat > /dev/null; exit 3", "the extractor /bin/sh (documents.command) ended with 3"),
        ("exit 0", "found no text"),
        ("kill -9 $$", "was killed"),
        ("no-such-program", "was not found; install it"),
        // It would never end.
        ("yes", "the text has 1001 bytes; at most 1000 are read"),
        // A string of 512 MB, more than the memory bound.
        (
            "awk 'BEGIN { s = \"x\"; for (i = 0; i < 29; i++) s = s s; print length(s) }' || exit 9",
            "ended with 9",
        ),
    ] {
        let error = read(&reader(&["bin"], script, small), b"ebb", "a.bin").await.unwrap_err();
        assert!(error.contains(expected), "{script}: {error}");
    }
    let missing = Commands::new([("bin".to_owned(), vec!["/no/such/program".to_owned()])]);
    let reader = reader(&[], "", small).with_commands(missing);
    let error = read(&reader, b"ebb", "a.bin").await.unwrap_err();
    assert!(error.contains("/no/such/program (documents.command) was not found"), "{error}");
}

/// Processes that the program has started end with it.
#[tokio::test]
async fn time_runs_out_for_all_that_it_has_started() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("sleeper-{}", std::process::id()));
    let script = format!("sleep 600 & echo $! > {}; wait", file.display());
    // Long enough for a shell to start on a busy machine.
    let limits = Limits { time: Duration::from_secs(3), ..Limits::default() };
    let read = reader(&["bin"], &script, limits).read(Bytes::from_static(b"ebb"), "a.bin").await;
    assert_eq!(read.unwrap().unwrap_err(), Unreadable::TooSlow(limits.time));
    let process = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    std::fs::remove_file(&file).unwrap();
    let gone = || {
        let stat = std::process::Command::new("ps").args(["-o", "stat=", "-p", &process]).output();
        stat.is_ok_and(|stat| stat.stdout.is_empty() || stat.stdout.starts_with(b"Z"))
    };
    let begun = std::time::Instant::now();
    while !gone() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{process} goes on");
        tokio::task::yield_now().await;
    }
}

/// Text recognition, if it is installed.
#[tokio::test]
async fn tesseract_reads_a_picture() {
    let installed = std::process::Command::new("tesseract").arg("--version").output();
    if installed.is_err() {
        eprintln!("SKIPPED tesseract_reads_a_picture: tesseract is not installed");
        return;
    }
    let command: Vec<String> =
        ["tesseract", "stdin", "stdout", "--psm", "7"].map(str::to_owned).into();
    let reader = reader(&[], "", Limits::default())
        .with_commands(Commands::new([("pgm".to_owned(), command)]));
    let read = reader.read(Bytes::from(picture_of("HIGH TIDE")), "a.pgm").await.unwrap().unwrap();
    assert_eq!((read.text.trim(), read.format), ("HIGH TIDE", Format::Text));
}

/// Draws large letters, black on white, as a portable graymap.
fn picture_of(text: &str) -> Vec<u8> {
    const SCALE: usize = 12;
    let glyph = |letter| match letter {
        'H' => [0b10001, 0b10001, 0b10001, 0b11111, 0b10001, 0b10001, 0b10001],
        'I' => [0b01110, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110],
        'G' => [0b01110, 0b10001, 0b10000, 0b10111, 0b10001, 0b10001, 0b01110],
        'T' => [0b11111, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100],
        'D' => [0b11110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b11110],
        'E' => [0b11111, 0b10000, 0b10000, 0b11110, 0b10000, 0b10000, 0b11111],
        _ => [0; 7],
    };
    let glyphs: Vec<[u8; 7]> = text.chars().map(glyph).collect();
    let (width, height) = ((glyphs.len() * 6 + 5) * SCALE, 13 * SCALE);
    let mut picture = format!("P5 {width} {height} 255\n").into_bytes();
    for y in 0..height {
        for x in 0..width {
            let (column, row) = (x / SCALE, y / SCALE);
            let cell = column.checked_sub(3).zip(row.checked_sub(3)).and_then(|(column, row)| {
                let bits = glyphs.get(column / 6)?.get(row)?;
                Some(column % 6 < 5 && bits >> (4 - column % 6) & 1 == 1)
            });
            picture.push(if cell == Some(true) { 0 } else { 255 });
        }
    }
    picture
}

/// Slow documents take all places; another document is read meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_takes_long_holds_up_nobody_else() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let script = "read -r task; case $task in *slow*) sleep 60 ;; esac; \
                  printf '{\"Ok\":{\"text\":\"read\",\"format\":\"Pdf\",\"pages\":1}}'";
    let limits = Limits { time: Duration::from_secs(30), ..Limits::default() };
    let arguments = ["-c".to_owned(), script.to_owned()];
    let reader = Reader::isolated("/bin/sh", arguments, limits).with_max_processes(2 * cores);
    let slow: Vec<_> = (0..cores)
        .map(|number| {
            let reader = reader.clone();
            let name = format!("slow-{number}.pdf");
            tokio::spawn(async move { read(&reader, b"%PDF-1.7", &name).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(read(&reader, b"%PDF-1.7", "a.pdf").await.unwrap(), "read");
    assert!(slow.iter().all(|slow| !slow.is_finished()), "it waited for the others");
    slow.iter().for_each(tokio::task::JoinHandle::abort);
}

/// One party's files take every core; another party's file is read at once, beyond the cores.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_one_party_does_not_hold_up_another() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let script = "read -r task; case $task in *slow*) sleep 60 ;; esac; \
                  printf '{\"Ok\":{\"text\":\"read\",\"format\":\"Pdf\",\"pages\":1}}'";
    let limits = Limits { time: Duration::from_secs(30), ..Limits::default() };
    let arguments = ["-c".to_owned(), script.to_owned()];
    let reader = Reader::isolated("/bin/sh", arguments, limits).with_max_processes(cores + 1);
    let flood: Vec<_> = (0..10 * cores)
        .map(|number| {
            let reader = reader.for_party("batch");
            let name = format!("slow-{number}.pdf");
            tokio::spawn(async move { read(&reader, b"%PDF-1.7", &name).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let began = std::time::Instant::now();
    let other = reader.for_party("interactive");
    for _ in 0..5 {
        assert_eq!(read(&other, b"%PDF-1.7", "a.pdf").await.unwrap(), "read");
    }
    assert!(began.elapsed() < Duration::from_secs(3), "it waited {:?}", began.elapsed());
    flood.iter().for_each(tokio::task::JoinHandle::abort);
}
