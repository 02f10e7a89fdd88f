//! A sample first, and the whole batch later.

use super::*;

/// Each name has two rows, so that ids are given before the sample is drawn, which takes the rows from
/// different pages.
#[tokio::test]
async fn the_whole_does_not_buy_its_sample_again() {
    let mut rig = Rig::new();
    let row = |row: u32| format!("ship-{:02},note {row}\n", row % 20);
    rig.document("log.csv", &format!("ship,note\n{}", (0..40).map(row).collect::<String>()), 0);
    rig.room = Some(Room::of(7));
    let records = json!({"records": {"id": "ship", "text": "note"}});
    let sampled = json!({"records": {"id": "ship", "text": "note"}, "sample": 9});

    assert_eq!(plan::forecast(&rig.services, &rig.job(&sampled)).await.unwrap().documents, 9);
    let sample = rig.run(sampled.clone()).await.unwrap();
    assert_eq!(sample.figures(), ([9, 0, 0, 0], 9));
    assert_eq!(rig.run(sampled).await.unwrap().figures(), ([0, 0, 9, 0], 0), "the same ones");
    let whole = rig.run(records).await.unwrap();
    assert_eq!(whole.figures(), ([31, 0, 9, 0], 31));
    assert!(whole.asked.iter().all(|asked| !sample.asked.contains(asked)), "{:?}", sample.asked);
}
