//! Chooses the model that answers a document: a single one, or the best of a configured list.
//!
//! A route has steps. The first step has the first model and those marked equivalent to it: of
//! these, the model that can take the document soonest is asked. Each further model is a step of
//! its own, taken after a number of refusals in a row, or when no model of the earlier steps can be
//! asked. The caller must first show why its documents may use those models.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use futures::future::join_all;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tidegate_quota::{Quota, Snapshot};
use tidegate_types::{FailureType, Lane, ModelId};

use crate::{
    attempt::Attempt,
    failure::{Concerns, Failure, RETRIES_PER_DOCUMENT},
    guard::Guard,
};

/// Time for which a known queue length is used: one request a second, for any number of documents.
const FRESH: Duration = Duration::from_secs(1);

/// All configured routes, by name.
pub type Routes = BTreeMap<String, Route>;

/// Models in the order in which they are asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// All models; at least one.
    pub models: Vec<ModelId>,
    /// Models that answer as well as the first. Of these and the first, the one that can take a
    /// document soonest is asked.
    #[serde(default)]
    pub equivalent: Vec<ModelId>,
    /// Refusals in a row, by the provider or the quota, after which a document goes on to the next
    /// step; of the provider's at most [`RETRIES_PER_DOCUMENT`].
    pub after_refusals: u32,
    /// Prefix of stored comparisons: a document may use models that were compared for its question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<String>,
    /// Whether a document may use models that were never compared with the first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unchecked: bool,
    /// Whether a document continues at the next model when a provider refuses its content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_content_refused: bool,
    /// Whether to choose, among models that can take a document equally soon, at random in
    /// proportion to the room left; otherwise the first is asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_room: bool,
}

impl Route {
    /// A pool: members that callers see as one model.
    pub fn pool(members: Vec<ModelId>) -> Self {
        Self {
            equivalent: members.clone(),
            models: members,
            after_refusals: u32::MAX,
            by_room: true,
            ..Self::default()
        }
    }

    /// A single model.
    pub fn single(model: ModelId) -> Self {
        Self { models: vec![model], after_refusals: u32::MAX, ..Self::default() }
    }

    /// The route with only the models that `will_do` accepts.
    pub fn filter(&self, will_do: impl Fn(&ModelId) -> bool) -> Self {
        let keep = |models: &[ModelId]| models.iter().filter(|it| will_do(it)).cloned().collect();
        let (models, equivalent) = (keep(&self.models), keep(&self.equivalent));
        Self { models, equivalent, ..self.clone() }
    }

    /// The route of a model; a pool is a route under its own name.
    pub fn for_model(model: &ModelId, routes: &Routes) -> Self {
        match routes.get(model.as_str()) {
            Some(pool) => pool.clone(),
            None => Self::single(model.clone()),
        }
    }

    /// The configured route of this name.
    ///
    /// # Errors
    /// `InvalidInput`, which names the configured routes.
    pub fn named(name: &str, routes: &Routes) -> Result<Self, Failure> {
        routes.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = routes.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Failure::invalid_input(format!(
                "route \"{name}\" is not configured; configured: {known}; choose one of them, or add a [routes.{name}] section to the workers' configuration"
            ))
        })
    }

    /// The route split into levels for callers that escalate rejected answers: first the first
    /// model with its equivalents, then each other model alone.
    pub fn levels(&self) -> Vec<Self> {
        let first = Self { models: self.step(0).into_iter().cloned().collect(), ..self.clone() };
        let others = self.models.iter().filter(|model| !first.models.contains(model));
        let others = others.cloned().map(Self::single).collect::<Vec<_>>();
        [vec![first], others].concat()
    }

    /// The models of a step, in order; empty after the last step.
    pub fn step(&self, step: u32) -> Vec<&ModelId> {
        if step == 0 {
            return self
                .models
                .iter()
                .filter(|model| self.is_as_good_as_the_first(model))
                .collect();
        }
        self.others().skip(step as usize - 1).take(1).collect()
    }

    /// The models that are not marked as equivalent to the first, in order.
    pub fn others(&self) -> impl Iterator<Item = &ModelId> {
        self.models.iter().filter(|model| !self.is_as_good_as_the_first(model))
    }

    fn is_as_good_as_the_first(&self, model: &ModelId) -> bool {
        self.models.first() == Some(model) || self.equivalent.contains(model)
    }

    /// Checks a route for calls outside of batches, for which no comparison exists.
    ///
    /// # Errors
    /// `InvalidInput` if a call could go on to a model that is not equivalent to the first.
    pub fn require_equivalents(self) -> Result<Self, Failure> {
        let pair = self.models.first().zip(self.others().next());
        match pair.filter(|_| !self.unchecked) {
            Some((first, other)) => Err(Failure::invalid_input(format!(
                "the route falls back from {first} to {other}, and models are compared for the question of a batch, which a call has not; name {other} in the route's equivalent, or write unchecked = true there"
            ))),
            None => Ok(self),
        }
    }

    /// Chooses the model that this attempt asks.
    ///
    /// An attempt that comes back with a ticket keeps its model, where its turn is. If that model's
    /// gate is closed, another of the same step may be chosen.
    pub async fn choose(
        &self,
        guard: &Guard,
        queues: &Queues,
        attempt: &Attempt,
        lane: &Lane,
    ) -> Option<&ModelId> {
        if let [only] = self.models.as_slice() {
            return Some(only);
        }
        let state = attempt.state();
        let kept = state.ticket.and_then(|_| self.models.get(state.model as usize));
        let (mut step, now) = (state.step, Instant::now());
        let can_be_asked = |model: &ModelId| guard.can_be_asked(attempt, model, now);
        if let Some(kept) = kept.filter(|model| can_be_asked(model)) {
            let alone = self.step(state.step).len() < 2;
            if alone || !queues.is_closed(&guard.quota, kept, lane).await {
                return Some(kept);
            }
        }
        let chosen = loop {
            let models = self.step(step);
            if models.is_empty() {
                // No model can be asked: the failure of the first model of the document's step is
                // reported.
                break self.step(state.step).first().copied();
            }
            let open: Vec<&ModelId> =
                models.iter().copied().filter(|model| can_be_asked(model)).collect();
            match open.as_slice() {
                [] => match models
                    .into_iter()
                    .find(|model| guard.has_key_elsewhere(attempt, model, now))
                {
                    // Another worker can ask it, so a lesser model is not used.
                    Some(model) => break Some(model),
                    None => step += 1,
                },
                [only] => break Some(*only),
                several => {
                    break queues.soonest(&guard.quota, several, lane, self.by_room).await;
                }
            }
        };
        if let Some(place) = self.models.iter().position(|model| Some(model) == chosen) {
            attempt.choose_model(u32::try_from(place).unwrap_or(u32::MAX));
        }
        chosen
    }

    /// Decides the next attempt after a failed one: the same step, or the next. A document that is
    /// too large goes to the next step if a model there has more room.
    pub fn fall_back(
        &self,
        attempt: &Attempt,
        failure: Failure,
        has_more_room: impl Fn(&ModelId) -> bool,
    ) -> Failure {
        let next = self.step(attempt.state().step + 1);
        let is_for_the_next = match failure.kind {
            FailureType::TooLarge => {
                failure.concerns != Concerns::AnOperatorsLimit
                    && next.iter().any(|model| has_more_room(model))
            }
            FailureType::ContentRefused => self.after_content_refused && !next.is_empty(),
            _ => false,
        };
        if is_for_the_next {
            attempt.next_step();
            return failure.at_another_model();
        }
        let gone = failure.model_is_gone();
        // Refusals that lead to no next model are not counted.
        if !gone && (!failure.model_is_short() || next.is_empty()) {
            return failure;
        }
        let (step, refusals) = attempt.count_refusal();
        // Models equivalent to one that is gone are on the same step.
        let same_step =
            gone && step == 0 && self.step(0).len() > 1 && (refusals as usize) < self.step(0).len();
        // A refusal by the provider costs a call, so the next model comes before the document's
        // share of the batch's retry budget is spent. A wait for quota costs none.
        let enough = match failure.kind {
            FailureType::QuotaWait => self.after_refusals.into(),
            _ => u64::from(self.after_refusals).min(RETRIES_PER_DOCUMENT),
        };
        let onward = (gone || u64::from(refusals) >= enough) && !next.is_empty();
        if same_step || onward {
            if !same_step {
                attempt.next_step();
            }
            return failure.at_another_model();
        }
        failure
    }
}

/// The length of each model's queue, as last read.
#[derive(Debug, Default)]
pub struct Queues(Mutex<HashMap<(ModelId, Lane), (Instant, Queue)>>);

/// One model's queue.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Queue {
    wait: Duration,
    /// Time for which its gate stays closed.
    pause: Duration,
    /// Room left in its tightest limit.
    room: f64,
}

impl Queues {
    /// The model with the shortest queue; of several the first, or a random one in proportion to
    /// their room. An unknown queue counts as empty.
    ///
    /// The figures are up to a second old: if all documents of that second went to the model with
    /// most room, the other models would be idle.
    async fn soonest<'a>(
        &self,
        quota: &Quota,
        models: &[&'a ModelId],
        lane: &Lane,
        by_room: bool,
    ) -> Option<&'a ModelId> {
        let queue = async |model: &&'a ModelId| (*model, self.queue(quota, model, lane).await);
        let mut seen = join_all(models.iter().map(queue)).await;
        let shortest = seen.iter().map(|(_, queue)| queue.wait).min()?;
        // Waits that differ by less than the age of the figures count as equal.
        let near = if by_room { FRESH } else { Duration::ZERO };
        seen.retain(|(_, queue)| queue.wait <= shortest + near);
        let all: f64 = seen.iter().map(|(_, queue)| queue.room).sum();
        if by_room && all > 0.0 {
            let mut lot = rand::random::<f64>() * all;
            let chosen = seen.iter().find(|(_, queue)| {
                lot -= queue.room;
                lot < 0.0
            });
            if let Some((model, _)) = chosen {
                return Some(model);
            }
        }
        let (model, _) = seen.first()?;
        Some(model)
    }

    /// Whether the gate stays closed for longer than the figures are used.
    async fn is_closed(&self, quota: &Quota, model: &ModelId, lane: &Lane) -> bool {
        self.queue(quota, model, lane).await.pause > FRESH
    }

    async fn queue(&self, quota: &Quota, model: &ModelId, lane: &Lane) -> Queue {
        let key = (model.clone(), lane.clone());
        let known = self.0.lock().get(&key).copied();
        if let Some((seen, queue)) = known
            && seen.elapsed() < FRESH
        {
            return queue;
        }
        let queue = match quota.inspect(model).await {
            Ok(seen) => {
                let queue = seen
                    .lanes
                    .iter()
                    .find(|known| known.lane == *lane)
                    .map_or(Duration::ZERO, |lane| lane.queue);
                let ahead =
                    seen.dimensions.iter().map(|(_, seen)| seen.ahead).max().unwrap_or_default();
                let pause = seen.pause;
                Queue { wait: pause.max(queue).max(ahead), pause, room: room(&seen) }
            }
            Err(_) => Queue { wait: Duration::ZERO, pause: Duration::ZERO, room: 1.0 },
        };
        self.0.lock().insert(key, (Instant::now(), queue));
        queue
    }
}

/// Room left in the tightest limit, in that limit's unit. Members of a pool have limits of the same
/// kinds.
fn room(seen: &Snapshot) -> f64 {
    let limits = seen.dimensions.iter().filter(|(_, seen)| seen.limit > 0);
    let left = limits.map(|(_, seen)| {
        let left = seen.limit.saturating_sub(seen.used) as f64;
        (left / seen.limit as f64, left)
    });
    left.min_by(|one, other| one.0.total_cmp(&other.0)).map_or(1.0, |(_, left)| left)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
mod tests {
    use std::sync::Arc;

    use tidegate_quota::{Charge, Dimension, Lanes, Limits, ModelQuota, Options, Refused, Ticket};

    use super::*;
    use crate::{
        attempt::CallState,
        failure::Backoff,
        failure::{REROUTED, Retry},
    };

    fn route(models: &[&str], equivalent: &[&str]) -> Route {
        let ids = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
        let (models, equivalent) = (ids(models), ids(equivalent));
        let after_content_refused = false;
        Route {
            models,
            equivalent,
            after_refusals: 2,
            compared: None,
            unchecked: false,
            after_content_refused,
            by_room: false,
        }
    }

    fn steps(route: &Route) -> Vec<Vec<String>> {
        (0..)
            .map(|step| route.step(step))
            .take_while(|step| !step.is_empty())
            .map(|step| step.iter().map(ToString::to_string).collect())
            .collect()
    }

    #[test]
    fn equivalents_share_the_first_step() {
        assert_eq!(steps(&route(&["a:1", "b:2", "c:3"], &[])), [["a:1"], ["b:2"], ["c:3"]]);
        assert_eq!(
            steps(&route(&["a:1", "b:2", "c:3"], &["c:3"])),
            [vec!["a:1", "c:3"], vec!["b:2"]]
        );
        assert_eq!(steps(&Route::single("a:1".parse().unwrap())), [["a:1"]]);
    }

    #[test]
    fn a_call_falls_back_only_to_equivalent_or_unchecked_models() {
        let two = || route(&["a:1", "b:2"], &[]);
        let refused = two().require_equivalents().unwrap_err();
        assert_eq!(refused.kind, FailureType::InvalidInput);
        assert!(refused.message.contains("from a:1 to b:2"), "{refused}");
        let compared = Route { compared: Some("file:///c/".to_owned()), ..two() };
        compared.require_equivalents().unwrap_err();
        Route { unchecked: true, ..two() }.require_equivalents().unwrap();
        route(&["a:1", "b:2"], &["b:2"]).require_equivalents().unwrap();
        Route::pool(two().models).require_equivalents().unwrap();
    }

    #[test]
    fn a_document_goes_on_after_so_many_refusals_or_when_a_model_is_gone() {
        let attempt = || Attempt::new("r".to_owned(), "b".to_owned(), CallState::default());
        let closed = Refused::GateClosed {
            model: "a:1".parse().unwrap(),
            wait: Duration::from_secs(50),
            ticket: Ticket { epoch: 1, position: 1 },
        };
        let wait = Failure::refused(&closed);
        let another = |retry| matches!(retry, Retry::After(delay) if delay <= REROUTED);
        let route = route(&["a:1", "b:2"], &[]);
        let refused = attempt();
        assert_eq!(route.fall_back(&refused, wait.clone(), |_| false), wait);
        assert!(another(route.fall_back(&refused, wait.clone(), |_| false).retry));
        assert_eq!(refused.state().step, 1);
        // The last step has no next step.
        for _ in 0..5 {
            assert_eq!(route.fall_back(&refused, wait.clone(), |_| false), wait);
        }
        let gone = Failure::never(FailureType::QuotaExhausted, "no credit");
        let exhausted = attempt();
        let next = route.fall_back(&exhausted, gone.clone(), |_| false);
        assert!(another(next.retry), "the next model is asked");
        assert_eq!(route.fall_back(&exhausted, gone.clone(), |_| false), gone, "there is no other");
        let unknown = Failure::unknown_model(&"a:1".parse().unwrap(), "404");
        assert!(
            another(route.fall_back(&attempt(), unknown.clone(), |_| false).retry),
            "another has its own"
        );
        let (pool, waited) = (Route::pool(route.models.clone()), attempt());
        for _ in 0..5 {
            assert_eq!(pool.fall_back(&waited, wait.clone(), |_| false), wait);
        }
        let other = pool.fall_back(&waited, gone.clone(), |_| false);
        assert!(another(other.retry), "a wait is no refusal of a member");
        assert_eq!(pool.fall_back(&waited, gone.clone(), |_| false), gone, "both are gone");
        let single = Route::single("a:1".parse().unwrap());
        assert_eq!(single.fall_back(&attempt(), unknown.clone(), |_| false), unknown);
        let single = Route::single("a:1".parse().unwrap());
        assert_eq!(single.fall_back(&attempt(), gone.clone(), |_| false), gone);
        let refusal = Failure::never(FailureType::ContentRefused, "no");
        let lenient = Route { after_content_refused: true, ..route.clone() };
        assert!(another(lenient.fall_back(&attempt(), refusal.clone(), |_| false).retry));
        let large = Failure::never(FailureType::TooLarge, "too long");
        assert!(another(
            route.fall_back(&attempt(), large.clone(), |next| next.provider() == "b").retry
        ));
        assert_eq!(route.fall_back(&attempt(), large.clone(), |_| false), large);
        assert_eq!(route.fall_back(&attempt(), refusal.clone(), |_| false), refusal);
    }

    /// A ticket for a member that is closed for an hour is dropped; one for an open member is kept.
    #[tokio::test]
    async fn a_turn_is_kept_while_its_member_is_open() {
        let members = ["a/east:m", "a/west:m"].map(|name| name.parse::<ModelId>().unwrap());
        let limits = Limits::default().with(Dimension::Requests, 600);
        let quotas = members.clone().map(|id| {
            ModelQuota::new(id, limits, Charge::default(), Arc::new(Lanes::single())).unwrap()
        });
        let quota = Quota::in_memory(quotas, Options::default());
        let guard = Guard::new(quota.clone(), Backoff::default());
        let pool = Route::pool(members.to_vec());
        let ticket = Some(Ticket { epoch: 1, position: 7 });
        let state = CallState { ticket, model: 1, ..CallState::default() };
        let attempt = Attempt::new("r".to_owned(), "b".to_owned(), state);
        let queues = Queues::default();
        let asked = pool.choose(&guard, &queues, &attempt, &Lane::default()).await;
        assert_eq!((asked, attempt.state().ticket), (Some(&members[1]), ticket));
        quota.pause(&members[1], Duration::from_secs(3_600), "429").await.unwrap();
        let queues = Queues::default();
        let asked = pool.choose(&guard, &queues, &attempt, &Lane::default()).await;
        assert_eq!((asked, attempt.state().ticket), (Some(&members[0]), None));
    }
}
