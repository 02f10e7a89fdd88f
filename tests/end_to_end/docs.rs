//! What the documentation shows can be used as it stands.

use std::path::{Path, PathBuf};

use tidegate::config::Config;

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let providers =
        std::fs::read_dir(root.join("docs/providers")).unwrap().map(|page| page.unwrap().path());
    providers.chain([root.join("README.md")]).collect()
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
fn every_link_to_a_file_leads_somewhere() {
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
            .filter(|link| !link.contains("://"))
        {
            let target = page.parent().unwrap().join(link.split('#').next().unwrap());
            assert!(target.exists(), "{} links to {link}", page.display());
        }
    }
}
