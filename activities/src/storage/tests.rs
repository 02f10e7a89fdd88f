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
    std::os::unix::fs::symlink("..", root.join("up")).unwrap();
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
        uri(&root, "up/new/"),
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

/// Every kind of entry in a folder except files.
#[cfg(unix)]
#[tokio::test]
async fn one_odd_entry_costs_itself_alone() {
    use std::{
        ffi::OsStr,
        os::unix::{ffi::OsStrExt, fs::symlink, net::UnixListener},
    };
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().canonicalize().unwrap().join("data");
    std::fs::create_dir_all(root.join("sub/deeper")).unwrap();
    std::fs::write(root.join("good.md"), "good").unwrap();
    std::fs::write(root.join("sub/deeper/good.md"), "good").unwrap();
    std::fs::write(root.join("a\nb.md"), "x").unwrap();
    std::fs::write(root.join(OsStr::from_bytes(b"\xff\xfe.md")), "x").unwrap();
    std::fs::write(root.join("half.md#12"), "x").unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("../..", root.join("sub/deeper/up")).unwrap();
    symlink("nowhere", root.join("dangling.md")).unwrap();
    symlink("/etc", root.join("outside")).unwrap();
    symlink("sub/deeper", root.join("linked")).unwrap();
    let _socket = UnixListener::bind(root.join("socket")).unwrap();
    let status = std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap();
    assert!(status.success());
    // Longer than the system's limit on paths: even root cannot read it.
    let name = "d".repeat(250);
    let script = format!(
        "cd '{}' && for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do mkdir {name} && cd {name} || exit 1; done",
        root.display()
    );
    assert!(std::process::Command::new("bash").args(["-c", &script]).status().unwrap().success());

    let base = storage(&root).resolve(&uri(&root, "")).unwrap();
    let (mut files, mut odd) = (Vec::new(), Vec::new());
    let listed = base.entries(|entry| match entry {
        Entry::Object(location, _) => files.push(location.relative_to(&base)),
        Entry::Odd(entry) => odd.push(entry),
    });
    listed.await.unwrap();
    assert_eq!(files, ["good.md", "linked/good.md", "sub/deeper/good.md"]);
    let (deep, odd): (Vec<_>, Vec<_>) =
        odd.into_iter().partition(|odd| odd.path.starts_with(&name));
    assert!(deep.len() == 1 && deep[0].why.contains("too long") && deep[0].is_folder, "{deep:?}");
    let shown: Vec<_> = odd.iter().map(|odd| (odd.printable(), odd.why.as_str())).collect();
    let expected = [
        ("a\\nb.md", "its path holds control characters"),
        ("dangling.md", "it is a link that leads nowhere"),
        ("half.md#12", "its name ends in # and a number"),
        ("linked/up", "it is a link to a folder that it lies in"),
        ("loop", "it cannot be read: "),
        ("outside", "it leads out of its root by a link"),
        ("pipe", "it is a named pipe"),
        ("socket", "it is a socket"),
        ("sub/deeper/up", "it is a link to a folder that it lies in"),
        ("\\xff\\xfe.md", "its name holds bytes that are not UTF-8"),
    ];
    assert_eq!(shown.len(), expected.len(), "{shown:?}");
    for ((name, why), (expected_name, expected_why)) in shown.iter().zip(expected) {
        assert!(name == expected_name && why.starts_with(expected_why), "{name}: {why}");
    }
    assert!(odd.last().unwrap().uri.ends_with("/%FF%FE.md"), "{odd:?}");
    assert_eq!(base.child("pipe").special(), Some("a named pipe"));
    assert_eq!(base.child("good.md").special(), None);

    let mut listed = Vec::new();
    base.list(|location| listed.push(location.relative_to(&base))).await.unwrap();
    assert_eq!(listed, files);
    base.child("nowhere").list(|_| unreachable!()).await.unwrap();
    assert!(
        std::process::Command::new("rm")
            .arg("-rf")
            .arg(root.join(&name))
            .status()
            .unwrap()
            .success()
    );
}

#[tokio::test]
async fn an_id_is_an_objects_name_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let object = storage(&root).resolve(&uri(&root, "")).unwrap().child("results/a.md~2.json");
    object.create("x").await.unwrap();
    assert!(root.join("results/a.md~2.json").exists());
    assert_eq!(storage(&root).resolve(&object.uri()).unwrap().uri(), object.uri());
}

#[tokio::test]
async fn a_folder_is_removed_with_whatever_lies_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let kept = root.join("kept");
    for file in ["gone/a.json", "gone/a.json#1", "gone/deep/b", "gone-too", "kept/c"] {
        std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        std::fs::write(root.join(file), "x").unwrap();
    }
    std::os::unix::fs::symlink(&kept, root.join("gone/link")).unwrap();
    let gone = storage(&root).resolve(&uri(&root, "gone")).unwrap();
    gone.clear().await.unwrap();
    gone.clear().await.unwrap();
    assert!(!root.join("gone").exists());
    assert!(root.join("gone-too").exists() && kept.join("c").exists());
}

#[test]
fn a_resolver_follows_the_links_of_a_root_once() {
    let outer = tempfile::tempdir().unwrap();
    let outer = outer.path().canonicalize().unwrap();
    let root = outer.join("data");
    let point_to = |name: &str| {
        let _ = std::fs::remove_file(&root);
        std::fs::create_dir_all(outer.join(name)).unwrap();
        std::os::unix::fs::symlink(outer.join(name), &root).unwrap();
    };
    point_to("one");
    let storage = storage(&root);
    let mut resolver = storage.resolver();
    assert_eq!(resolver.resolve(&uri(&root, "x/a.txt")).unwrap().relative_to_root(), "x/a.txt");
    point_to("two");
    assert!(resolver.resolve(&uri(&root, "a.txt")).is_err());
    assert!(storage.resolve(&uri(&root, "a.txt")).is_ok(), "another call looks again");
}
