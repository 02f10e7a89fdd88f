//! Examples in the documentation are valid as written.

use std::path::{Path, PathBuf};

use clap::Parser;
use tidegate::{cli::Cli, config::Config};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every page for users.
fn pages() -> Vec<PathBuf> {
    let mut folders = vec![root().join("docs"), root().join("deploy")];
    let files =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "documents/README.md", "lua/README.md"];
    let mut pages: Vec<PathBuf> = files.iter().map(|file| root().join(file)).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// Lines of a page's fenced code blocks, of any language.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split("```").skip(1).step_by(2).flat_map(str::lines)
}

/// A shell line with each quoted text replaced by one word.
fn unquoted(line: &str) -> String {
    let part = |(number, part): (usize, &str)| {
        if number % 2 == 0 { part.to_owned() } else { "text".to_owned() }
    };
    line.split(['"', '\'']).enumerate().map(part).collect()
}

/// The anchors of a page's sections.
fn sections(text: &str) -> Vec<String> {
    let titles = text.lines().filter(|line| line.starts_with('#'));
    let slug = |title: &str| {
        let kept = title.trim_start_matches('#').trim().to_lowercase();
        let kept = kept.chars().filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'));
        kept.collect::<String>().replace(' ', "-")
    };
    titles.map(slug).collect()
}

#[test]
fn every_configuration_in_the_documentation_is_accepted() {
    let mut blocks = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), block).unwrap();
            if let Err(error) = Config::from_layers(Some(file.path()), []) {
                panic!("{}: {error}", page.display());
            }
            blocks += 1;
        }
    }
    assert!(blocks >= 7, "{blocks}");
}

#[test]
fn every_link_leads_somewhere() {
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
            .filter(|link| !link.contains("://") && !link.contains(' '))
        {
            let (file, section) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(target.exists(), "{} links to {link}", page.display());
            if !section.is_empty() && target.extension().is_some_and(|kind| kind == "md") {
                let there = sections(&std::fs::read_to_string(&target).unwrap());
                assert!(
                    there.iter().any(|it| it == section),
                    "{} links to {link}, and there is {there:?}",
                    page.display()
                );
            }
        }
    }
}

/// Lines of `docs/faq.md`; where their links lead is tried with those of all pages.
#[test]
fn every_question_has_a_verdict_and_a_link() {
    let page = std::fs::read_to_string(root().join("docs/faq.md")).unwrap();
    let lines = page.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut questions = 0;
    for line in lines {
        let question = line.strip_prefix("- ").and_then(|line| line.split_once("? "));
        let Some((_, answer)) = question else { panic!("no question: {line}") };
        let verdicts = ["**Yes**", "**In part**", "**No**"];
        let reason = verdicts.iter().find_map(|verdict| answer.strip_prefix(verdict));
        assert!(reason.is_some_and(|it| it.starts_with([':', ','])), "no verdict: {line}");
        assert!(answer.contains("]("), "no link: {line}");
        questions += 1;
    }
    assert!(questions >= 40, "{questions}");
}

#[test]
fn every_page_is_in_the_book() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    for page in pages() {
        let Ok(name) = page.strip_prefix(root().join("docs")) else { continue };
        let name = name.to_str().unwrap();
        assert!(
            name == "SUMMARY.md" || summary.contains(&format!("]({name})")),
            "docs/SUMMARY.md leaves out {name}"
        );
    }
}

/// Every command line parses. Lines with capitals, brackets or an ellipsis are skipped: the reader fills
/// them in.
#[test]
fn every_command_in_the_documentation_is_understood() {
    let mut understood = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap().replace("\\\n", " ");
        for line in code(&text) {
            let line = line.split("   #").next().unwrap().trim();
            let line = line.split_once(" -- ").map_or(line, |(_, inside)| inside);
            let line = line.replacen("docker compose run --rm worker ", "tidegate ", 1);
            if !line.starts_with("tidegate ") {
                continue;
            }
            let unquoted = unquoted(&line);
            // Redirections and a last `&` belong to the shell.
            let words = unquoted.split(" < ").next().unwrap().split(" > ").next().unwrap();
            let words = words.strip_suffix(" &").unwrap_or(words);
            if words.contains(['…', '|', '[', '$']) {
                continue;
            }
            match Cli::try_parse_from(words.split_whitespace()) {
                Ok(_) => understood += 1,
                // clap reports `--help` and `--version` as errors.
                Err(error) if error.exit_code() == 0 => understood += 1,
                Err(error) => panic!("{}: {line}\n{error}", page.display()),
            }
        }
    }
    assert!(understood >= 20, "{understood}");
}
