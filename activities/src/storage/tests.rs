use super::*;

fn storage(folder: &FilePath) -> Storage {
    Storage::new([Url::from_directory_path(folder).unwrap().as_str()]).unwrap()
}

fn uri(folder: &FilePath, rest: &str) -> String {
    format!("{}{rest}", Url::from_directory_path(folder).unwrap())
}

#[tokio::test]
async fn uris_lead_back_to_where_they_came_from() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in ["a.txt", "with space.md", "überblick.md", "sub/deep/x.md", "a=b&c.txt"] {
        let file = root.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, name).unwrap();
    }
    let storage = storage(&root);
    let base = storage.resolve(&uri(&root, "")).unwrap();
    let mut found = Vec::new();
    base.list(|location| found.push(location)).await.unwrap();
    assert_eq!(found.len(), 5);
    for location in found {
        let again = storage.resolve(&location.uri()).unwrap();
        assert_eq!(again.uri(), location.uri());
        assert_eq!(
            String::from_utf8(again.read().await.unwrap().to_vec()).unwrap(),
            location.relative_to(&base)
        );
    }
}

#[test]
fn nothing_leads_out_of_a_root() {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().canonicalize().unwrap().join("data");
    std::fs::create_dir_all(&root).unwrap();
    std::fs::create_dir_all(outer.path().join("database")).unwrap();
    std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
    let storage = storage(&root);
    assert!(storage.resolve(&uri(&root, "new/folder/")).is_ok());
    assert!(
        storage
            .resolve(Url::from_directory_path(&root).unwrap().as_str().trim_end_matches('/'))
            .is_ok()
    );
    for bad in [
        uri(&root, "../secret"),
        uri(&root, "%2e%2e/secret"),
        uri(&root, "..%2fsecret"),
        uri(&root, "a%00b"),
        uri(&root, "link/passwd"),
        uri(&root, "link"),
        format!(
            "{}database/x",
            Url::from_directory_path(outer.path().canonicalize().unwrap()).unwrap()
        ),
        "file:///etc/passwd".to_owned(),
        "s3://bucket/x".to_owned(),
        "/etc/passwd".to_owned(),
        "nonsense".to_owned(),
        String::new(),
        "http://user:hunter2@host/x".to_owned(),
    ] {
        let error = storage.resolve(&bad).expect_err(&bad).to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn an_object_is_created_once() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let object = storage(&root).resolve(&uri(&root, "out/results/a.json")).unwrap();
    assert_eq!(object.size().await.unwrap(), None);
    object.create("first").await.unwrap();
    assert!(matches!(object.create("second").await, Err(Error::Exists(_))));
    assert_eq!(object.read().await.unwrap().as_ref(), b"first");
    let left: Vec<_> = std::fs::read_dir(root.join("out/results")).unwrap().collect();
    assert_eq!(left.len(), 1, "no half-written file stays behind: {left:?}");
}
