//! Twenty tasks share a limit of 300 calls a minute, without Temporal and without any provider.
//!
//! `cargo run -p tidegate-quota --example share_a_limit -- redis://127.0.0.1:6379` (start it twice:
//! both share the limit)

use std::{sync::Arc, time::Instant};

use tidegate_quota::{Charge, Dimension, Lanes, Limits, ModelQuota, Options, Quota, Request};
use tidegate_types::Usage;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let limits = Limits::default().with(Dimension::Requests, 300);
    let model = ModelQuota::new(
        "search:web".parse()?,
        limits,
        Charge::default(),
        Arc::new(Lanes::single()),
    )?;
    let quota = Quota::with_redis(&url, [model.clone()], Options::default())?;
    // While Redis is away, each process that is counted here keeps to its part of the limit.
    let (beats, name) = (quota.clone(), format!("example-{}", std::process::id()));
    tokio::spawn(async move { beats.keep_alive(&name, std::future::pending()).await });
    let started = Instant::now();

    let tasks = (0..20).map(|task| {
        let (quota, model) = (quota.clone(), model.id.clone());
        tokio::spawn(async move {
            for call in 0..3 {
                let id = format!("{}-{task}-{call}", std::process::id());
                let mut permit = quota.admit(&Request::new(model.clone(), id)).await?;
                permit.sent();
                eprintln!("{:6.2?}  task {task:2} makes call {call}", started.elapsed());
                permit.settle(&Usage::default()).await;
            }
            Ok::<_, tidegate_quota::Refused>(())
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await??;
    }
    Ok(())
}
