//! Sealed parts: documents that they answer are not asked, and where only they have the answers,
//! nothing is lost and nothing is bought twice.

use super::*;

/// The ids in each part, by its name.
fn parts(rig: &Rig) -> Vec<(String, Vec<String>)> {
    let names = std::fs::read_dir(rig.path("out/results")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut parts: Vec<_> = names
        .filter(|name| name.ends_with(".jsonl"))
        .map(|name| (name.clone(), ids(rig, &format!("out/results/{name}"))))
        .collect();
    parts.sort();
    parts
}

fn ids(rig: &Rig, object: &str) -> Vec<String> {
    rig.lines(object).iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect()
}

/// How many results have an object of their own.
fn alone(rig: &Rig) -> usize {
    let names = std::fs::read_dir(rig.path("out/results")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".json")).count()
}

fn part(number: u32, ids: &[&str]) -> (String, Vec<String>) {
    let ids = ids.iter().map(|id| (*id).to_owned()).collect();
    (format!("part-{number:05}.jsonl"), ids)
}

#[tokio::test]
async fn what_is_sealed_is_in_no_shard_and_each_answer_is_in_one_part() {
    let mut rig = Rig::new();
    ["a.md", "b.md", "c.md"].iter().for_each(|name| rig.document(name, name, 0));
    let first = rig.run(json!({})).await.unwrap();
    assert_eq!((first.plan.settled, first.plan.shards()), (0, 1));
    assert_eq!(parts(&rig), [part(0, &["a.md", "b.md", "c.md"])]);
    let again = rig.run(json!({})).await.unwrap();
    assert_eq!(
        (again.plan.settled, again.plan.shards()),
        (3, 0),
        "nobody looks at them one by one"
    );
    assert_eq!(again.figures(), ([0, 0, 3, 0], 0));
    assert_eq!(ids(&rig, "out/results.jsonl"), ["a.md", "b.md", "c.md"]);

    // A document that has changed since the seal is read, and asked if need be.
    rig.document("b.md", "b, changed", 5);
    let updated = rig.run(json!({})).await.unwrap();
    assert_eq!((updated.plan.settled, updated.figures()), (2, ([1, 0, 2, 1], 1)));
    assert_eq!(parts(&rig), [part(0, &["a.md", "c.md"]), part(1, &["b.md"])]);
    assert_eq!(ids(&rig, "out/results.jsonl"), ["a.md", "b.md", "c.md"], "the plan's order");
    std::fs::remove_file(rig.path("out/results/a.md.json")).unwrap();
    let mut other = rig.result("c.md");
    other["content"] = json!("0".repeat(64));
    other["source"]["size"] = json!(1_234);
    std::fs::write(rig.path("out/results/c.md.json"), other.to_string()).unwrap();
    let mended = rig.run(json!({})).await.unwrap();
    assert_eq!((mended.plan.settled, mended.figures()), (1, ([2, 0, 1, 1], 2)));
    assert_eq!(parts(&rig), [part(1, &["b.md"]), part(2, &["a.md", "c.md"])]);

    // Another question is asked about all of them.
    let other = json!({"instructions": "Translate.", "replace": true});
    let replaced = rig.run(other.clone()).await.unwrap();
    assert_eq!((replaced.plan.settled, replaced.figures()), (0, ([3, 0, 0, 0], 3)));
    assert_eq!(parts(&rig), [part(3, &["a.md", "b.md", "c.md"])]);
    assert_eq!(rig.run(other).await.unwrap().plan.settled, 3);
}

#[tokio::test]
async fn a_part_that_is_gone_says_nothing() {
    let mut rig = Rig::new();
    ["a.md", "b.md"].iter().for_each(|name| rig.document(name, name, 0));
    rig.run(json!({})).await.unwrap();
    std::fs::remove_file(rig.path("out/results/part-00000.jsonl")).unwrap();
    let again = rig.run(json!({})).await.unwrap();
    assert_eq!((again.plan.settled, again.figures()), (0, ([0, 0, 2, 0], 0)));
    assert_eq!(parts(&rig), [part(1, &["a.md", "b.md"])]);
}

#[tokio::test]
async fn parts_alone_hold_everything_and_nothing_is_bought_twice() {
    let mut rig = Rig::new();
    let parts_alone = json!({"per_document": false});
    ["a.md", "b.md", "c.md", "refused.md"].iter().for_each(|name| rig.document(name, name, 0));
    rig.document("refused.md", "refuse this", 0);
    let first = rig.run(parts_alone.clone()).await.unwrap();
    assert_eq!(first.figures(), ([3, 1, 0, 0], 4));
    assert_eq!((parts(&rig), alone(&rig)), (vec![part(0, &["a.md", "b.md", "c.md"])], 0));
    let again = rig.run(parts_alone.clone()).await.unwrap();
    assert_eq!((again.plan.settled, again.figures()), (3, ([0, 1, 3, 0], 1)));

    // A changed document counts as updated; a document that is gone keeps its answer.
    rig.document("b.md", "b, changed", 5);
    std::fs::remove_file(rig.path("in/c.md")).unwrap();
    let updated = rig.run(parts_alone.clone()).await.unwrap();
    assert_eq!((updated.plan.settled, updated.figures()), (1, ([1, 1, 1, 1], 2)));
    assert_eq!(ids(&rig, "out/results.jsonl"), ["a.md", "b.md", "c.md"]);
    assert_eq!(alone(&rig), 0);

    // Named one by one, nothing is listed; each document is looked up, and none is bought.
    let uri = |name: &str| format!("file://{}/in/{name}", rig.folder.path().display());
    let named = json!({"per_document": false, "source": {"documents": [uri("a.md"), uri("b.md")]}});
    rig.run(named.clone()).await.unwrap();
    let named = rig.run(named).await.unwrap();
    assert_eq!((named.plan.settled, named.asked.len()), (0, 0), "{:?}", named.figures());
    assert_eq!((named.figures().0, alone(&rig)), ([0, 0, 2, 0], 0));
    assert_eq!(ids(&rig, "out/results.jsonl").len(), 5, "two ids each, and the one that is gone");

    // Answers get objects of their own again, from the next one on.
    rig.document("a.md", "a, changed", 9);
    let back = rig.run(json!({})).await.unwrap();
    assert_eq!((back.figures().0, back.asked.len(), alone(&rig)), ([1, 1, 1, 1], 2, 1));
}

/// The worker died between the part, its index, and the removal of the objects.
#[tokio::test]
async fn a_seal_that_was_broken_off_is_made_good() {
    let mut rig = Rig::new();
    let parts_alone = json!({"per_document": false});
    ["a.md", "b.md", "c.md"].iter().for_each(|name| rig.document(name, name, 0));
    let first = rig.run(parts_alone.clone()).await.unwrap();
    let lines = rig.lines("out/results/part-00000.jsonl");
    let own = |place: usize| {
        let id = lines[place]["id"].as_str().unwrap();
        std::fs::write(rig.path(&format!("out/results/{id}.json")), lines[place].to_string())
    };
    // One of three objects is removed.
    own(1).unwrap();
    own(2).unwrap();
    let sealed = SealShard { job: first.plan.job.clone(), shard: 0, failures: Vec::new() };
    seal::seal(&rig.services.storage, &rig.services.shards, &sealed).await.unwrap();
    assert_eq!((parts(&rig), alone(&rig)), (vec![part(0, &["a.md", "b.md", "c.md"])], 0));
    // The part exists, its index does not, and no object is removed: the next batch finds them.
    (0..3).for_each(|place| own(place).unwrap());
    std::fs::remove_file(rig.path("out/_tidegate/sealed/index-00000.jsonl")).unwrap();
    let again = rig.run(parts_alone.clone()).await.unwrap();
    assert_eq!((again.plan.settled, again.figures()), (0, ([0, 0, 3, 0], 0)));
    assert_eq!((parts(&rig), alone(&rig)), (vec![part(0, &["a.md", "b.md", "c.md"])], 0));
    assert_eq!(rig.run(parts_alone).await.unwrap().plan.settled, 3);
}
