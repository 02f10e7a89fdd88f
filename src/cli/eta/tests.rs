use std::sync::Arc;

use tidegate_quota::{
    Dimension, Lanes, Limits, Share,
    snapshot::{DimensionSnapshot, LaneSnapshot},
};
use tidegate_workflows::contract::Totals;

use super::*;

const WINDOW: f64 = 60.5;

/// A model of admissions over time: a full bucket at once, then an even rate.
#[derive(Debug, Clone, Copy)]
struct Flow {
    documents: f64,
    tokens: f64,
    limit: f64,
    /// The fraction of the limit that may be used at once.
    burst: f64,
    seconds: f64,
}

impl Flow {
    /// Calls admitted within this many seconds.
    fn admitted(&self, at: f64) -> f64 {
        let calls = (self.limit * self.burst + self.limit / WINDOW * at.max(0.0)) / self.tokens;
        if at < 0.0 { 0.0 } else { calls.floor().min(self.documents) }
    }

    fn done(&self, at: f64) -> f64 {
        self.admitted(at - self.seconds)
    }

    fn ends(&self) -> f64 {
        let admitted = (self.documents * self.tokens / self.limit - self.burst).max(0.0) * WINDOW;
        admitted + self.seconds
    }

    fn progress(&self, at: f64) -> Progress {
        let (worked, admitted) = (whole(self.done(at)), whole(self.admitted(at)));
        let documents = whole(self.documents);
        let mut totals = Totals { succeeded: worked, ..Totals::default() };
        totals.in_flight = (documents - worked).min(2 * admitted);
        totals.spend.provider_calls = worked;
        totals.spend.input_tokens = whole(self.tokens * 0.75) * worked;
        totals.spend.output_tokens = whole(self.tokens * 0.25) * worked;
        let rest = at * (self.documents - self.done(at)) / self.done(at);
        let eta = (worked > 0).then(|| format::rfc3339(clock(at + rest)));
        let started_at = Some(format::rfc3339(clock(0.0)));
        Progress { documents, totals, started_at, eta, ..Progress::default() }
    }

    fn quota(&self, at: f64) -> (ModelQuota, Snapshot) {
        let burst = (self.burst <= 0.1).then_some(Duration::from_secs(1));
        let limits = Limits { burst, ..Limits::default() };
        let limits = limits.with(Dimension::Combined, whole(self.limit));
        let lanes = Arc::new(Lanes::single());
        let id = "openai:m".parse().unwrap();
        let model = ModelQuota::new(id, limits, Charge::default(), lanes).unwrap();
        let in_window = self.admitted(at) - self.admitted(at - WINDOW);
        let calls = self.admitted(at) - self.done(at);
        let mut seen = Snapshot { factor: 1.0, ..Snapshot::default() };
        seen.latency = Duration::from_secs_f64(self.seconds);
        seen.dimensions.requests = used(0, in_window, calls);
        let (tokens, held) = (in_window * self.tokens, calls * self.tokens);
        seen.dimensions.combined = used(whole(self.limit), tokens, held);
        let spent =
            self.limit * (self.burst + at / WINDOW) <= self.admitted(at) * self.tokens * 1.1;
        let left = whole(self.documents - self.admitted(at));
        seen.lanes = vec![lane("batch", Share::ALL, if spent { left } else { 0 }, whole(calls))];
        (model, seen)
    }

    fn outlook(&self, at: f64) -> Option<Estimate> {
        let (model, seen) = self.quota(at);
        Estimate::from_progress(&Class::default(), &self.progress(at), (&model, &seen), clock(at))
    }
}

fn whole(amount: f64) -> u64 {
    format!("{amount:.0}").parse().unwrap()
}

fn clock(seconds: f64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs_f64(1_000_000.0 + seconds)
}

fn used(limit: u64, used: f64, held: f64) -> DimensionSnapshot {
    DimensionSnapshot { limit, used: whole(used), held: whole(held), ..Default::default() }
}

fn lane(name: &str, share: Share, waiting: u64, in_flight: u64) -> LaneSnapshot {
    LaneSnapshot {
        lane: name.to_owned().try_into().unwrap(),
        share,
        elsewhere: false,
        waiting,
        queue: Duration::ZERO,
        in_flight,
        used: Default::default(),
    }
}

#[test]
fn a_batch_that_begins_with_a_burst_takes_the_quotas_time_for_the_rest() {
    // A thousand documents of 2,000 tokens at 400,000 a minute: a full bucket admits 200 of them, and the
    // others take 242 s. After 16 s, the pace alone estimates 49 s.
    let flow =
        Flow { documents: 1_000.0, tokens: 2_000.0, limit: 400_000.0, burst: 1.0, seconds: 4.0 };
    let by_pace = flow.progress(16.0);
    let by_pace = format::parse_time(by_pace.eta.as_deref()).unwrap();
    let by_pace = by_pace.duration_since(clock(16.0)).unwrap().as_secs();
    let left = flow.outlook(16.0).unwrap().time_left([]).as_secs();
    assert_eq!((by_pace, whole(flow.ends() - 16.0)), (50, 230));
    assert!((225..=235).contains(&left), "{left}");
}

#[test]
fn forecasts_lie_within_a_factor_of_one_and_a_half() {
    let flow =
        Flow { documents: 900.0, tokens: 2_000.0, limit: 400_000.0, burst: 1.0, seconds: 4.0 };
    let flows = [
        flow,
        Flow { burst: 0.016, ..flow },
        Flow { burst: 0.3, ..flow },
        Flow { seconds: 20.0, ..flow },
        Flow { seconds: 20.0, burst: 0.016, ..flow },
        Flow { documents: 250.0, ..flow },
        Flow { documents: 20_000.0, seconds: 1.0, ..flow },
    ];
    for flow in flows {
        let (mut worst, mut asked) = ([1.0_f64, 1.0_f64], 0);
        let mut at = flow.seconds + 1.0;
        // At the end, the difference is a few seconds.
        while at < flow.ends() - flow.seconds - 5.0 {
            let truth = flow.ends() - at;
            let outlook = flow.outlook(at).unwrap();
            let pace = outlook.by_pace.unwrap().as_secs_f64();
            let ratio = |left: f64| (left / truth).max(truth / left);
            worst[0] = worst[0].max(ratio(outlook.time_left([]).as_secs_f64()));
            worst[1] = worst[1].max(ratio(pace.max(0.1)));
            asked += 1;
            at += 1.0;
        }
        println!(
            "{flow:?}: {asked} asked, off by {:.2}; the pace so far by {:.2}",
            worst[0], worst[1]
        );
        assert!(asked > 5 && worst[0] <= 1.5, "{flow:?}: {worst:?}");
    }
}

#[test]
fn batches_of_one_model_share_what_it_admits() {
    let flow =
        Flow { documents: 1_000.0, tokens: 2_000.0, limit: 400_000.0, burst: 0.0, seconds: 1.0 };
    let small = Flow { documents: 400.0, ..flow };
    let (all, some) = (flow.outlook(30.0).unwrap(), small.outlook(30.0).unwrap());
    let (alone, beside) = (all.time_left([]).as_secs_f64(), all.time_left([&some]).as_secs_f64());
    // 901 calls of one batch and 301 of the other remain, at 3.3 a second.
    assert!((beside - alone - 301.0 / 3.306).abs() < 2.0, "{alone} {beside}");
    let (alone, beside) = (some.time_left([]).as_secs_f64(), some.time_left([&all]).as_secs_f64());
    assert!((beside / alone - 2.0).abs() < 0.05, "{alone} {beside}: each has half");
    // In a lane with nine tenths guaranteed, the other batch waits.
    let first =
        Estimate { lane: "interactive".to_owned().try_into().unwrap(), share: 0.9, ..some.clone() };
    let later = Estimate { share: 0.1, ..all };
    let ahead = first.time_left([&later]).as_secs_f64();
    assert!((ahead / alone - 10.0 / 9.0).abs() < 0.05, "{alone} {ahead}");
    let elsewhere = Estimate { quota: "openai:other".to_owned(), ..some.clone() };
    assert_eq!(
        some.time_left([&elsewhere]),
        some.time_left([]),
        "another model's quota is another"
    );
}

#[test]
fn a_closed_gate_is_waited_for_first_and_nothing_is_known_before_the_first_answer() {
    let flow =
        Flow { documents: 300.0, tokens: 2_000.0, limit: 400_000.0, burst: 0.2, seconds: 4.0 };
    assert_eq!(flow.outlook(2.0), None);
    let (model, mut seen) = flow.quota(20.0);
    let progress = flow.progress(20.0);
    let left = |seen: &Snapshot| {
        Estimate::from_progress(&Class::default(), &progress, (&model, seen), clock(20.0))
            .unwrap()
            .time_left([])
    };
    let open = left(&seen);
    seen.pause = Duration::from_secs(90);
    assert_eq!(left(&seen), open + seen.pause);
    // The provider's batch API is used, which has no quota here.
    seen.dimensions = Default::default();
    seen.lanes[0].waiting = 0;
    let idle = Estimate::from_progress(&Class::default(), &progress, (&model, &seen), clock(20.0));
    assert_eq!(idle, None);
}

#[test]
fn what_a_call_uses_is_the_batchs_own_unless_the_bound_on_output_counts() {
    let spend = Spend {
        provider_calls: 10,
        input_tokens: 10_000,
        cached_input_tokens: 4_000,
        output_tokens: 2_000,
        ..Spend::default()
    };
    let mut seen = Snapshot::default();
    seen.dimensions.requests = used(0, 14.0, 4.0);
    seen.dimensions.combined = used(400_000, 62_000.0, 12_000.0);
    let of = |charge: Charge| use_of_a_call(&spend, &charge, &seen).unwrap().combined;
    let charge = Charge { cached_input: true, output_weight: 1.0, ..Charge::default() };
    assert!(charge.unused_returns);
    assert_eq!(of(charge), 1_200.0);
    assert_eq!(of(Charge { cached_input: false, ..charge }), 800.0);
    assert_eq!(of(Charge { output_weight: 5.0, ..charge }), 2_000.0);
    assert_eq!(
        of(Charge { unused_returns: false, ..charge }),
        5_000.0,
        "of calls that are settled"
    );
}

#[test]
fn batches_of_other_models_do_not_count_among_those_that_are_asked() {
    let running: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    let class = |number: usize| {
        let model = if number.is_multiple_of(3) { "a:b" } else { "c:d" };
        let mut class = Class::default();
        class.models.push(model.parse().unwrap());
        class
    };
    let unread = 3;
    let read = (0..40).filter(|number| *number != unread);
    let classes = read.map(|number| (number.to_string(), class(number))).collect();
    let asked = of_models(&running, &classes, |model| model.as_str() == "a:b");
    let asked: Vec<&str> = asked.into_iter().map(|(id, _)| id).collect();
    assert_eq!(asked, ["0", "6", "9", "12", "15", "18", "21", "24"]);
}
