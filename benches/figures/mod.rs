//! Measurements that two benchmarks of a fleet share.

use std::time::Duration;

use tidegate_simulator::ModelAccount;

/// Limiter calls for each admission, over all workers, from their metrics pages.
pub(crate) async fn questions(pages: &[String]) -> f64 {
    let (mut asked, mut admitted) = (0.0, 0.0);
    for page in pages {
        let text = reqwest::get(format!("http://{page}/metrics")).await.unwrap();
        let text = text.text().await.unwrap();
        let sum = |name: &str| -> f64 {
            let lines = text.lines().filter(|line| line.starts_with(name));
            lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
        };
        asked += sum("tidegate_quota_questions_total{");
        admitted += sum("tidegate_quota_wait_seconds_count{");
    }
    asked / admitted
}

/// The used fraction of a limit in tokens a minute, from 30 s after the first admission to the last 15 s;
/// `None` if the run is too short.
pub(crate) fn steady(account: &ModelAccount, limit: u64) -> Option<f64> {
    let (first, last) = (account.first_admission?, account.last_admission?);
    let from = Duration::from_secs_f64(first.ceil() + 30.0);
    let to = Duration::from_secs_f64((last.floor() - 15.0).max(0.0));
    (to > from).then(|| {
        let tokens = account.tokens_between(from, to).tokens as f64;
        tokens / (to - from).as_secs_f64() / (limit as f64 / 60.0)
    })
}
