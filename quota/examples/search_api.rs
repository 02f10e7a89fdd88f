//! Six tasks search through an API that allows 10 calls a second, 5 of them at once.
//!
//! `cargo run -p tidegate-quota --example search_api`: a bucket of this process alone
//! `cargo run -p tidegate-quota --example search_api -- redis://127.0.0.1:6379`: start it twice,
//! both share the limit

use std::time::{Duration, Instant};

use tidegate_quota::{Bucket, BucketLimit, redis_store::Store};

const MAX_WAIT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limit = BucketLimit::new(5, 10, Duration::from_secs(1))?;
    let bucket = match std::env::args().nth(1) {
        Some(url) => Bucket::in_redis(
            Store::open(&url, "example", Duration::from_secs(300))?,
            "search",
            limit,
        ),
        None => Bucket::in_memory(limit),
    };
    let started = Instant::now();
    let tasks = (0..6).map(|task| {
        let bucket = bucket.clone();
        tokio::spawn(async move {
            for call in 0..5 {
                bucket.take(1, MAX_WAIT).await?;
                eprintln!("{:6.2?}  task {task} searches for the {call}. time", started.elapsed());
            }
            Ok::<_, tidegate_quota::bucket::BucketRefused>(())
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await??;
    }
    Ok(())
}
