//! A fleet that uses the form, behind the simulation's seam: mechanism and knowledge stand for what
//! Redis keeps, and each process has the same in memory for when Redis is away.

use tidegate_quota::{Dimension, ModelQuota, PerDimension, Ticket};

use super::{
    expect::{Expected, Learned, Used},
    log::Reading,
    mechanism::{self, Asked, Decision, End, Hold, Mechanism, Setup, Units},
    numbers::Numbers,
    plan::Plan,
    policy::{Configured, Knowledge, Outcome},
};
use crate::{
    documents::{Document, MAX_OUTPUT},
    driver::{Answer, Call, Held, Limiter, Task, Told},
    event::{Micros, SECOND},
};

/// What a provider's limits are of, in seconds.
const MINUTE: f64 = 60.0;

/// Turns as a ticket's whole numbers.
const GRAIN: f64 = 1e9;

/// Which knowledge the policy goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    Candidates,
    One,
}

/// A quota and who keeps it.
struct Kept {
    mechanism: Mechanism,
    knowledge: Knowledge,
}

/// The form, as a fleet uses it.
pub(crate) struct Fleet {
    model: ModelQuota,
    configured: Configured,
    numbers: Numbers,
    variant: Variant,
    kept: Kept,
    learned: Learned,
    /// The processes' own, while Redis is away.
    alone: Vec<Kept>,
    /// Calls that ended meanwhile.
    unheard: Vec<(String, End, mechanism::Told)>,
    epochs: u64,
}

/// What a process read for the policy.
struct Read {
    reading: Reading,
    knowledge: Knowledge,
    process: Option<usize>,
}

impl Fleet {
    pub(crate) fn new(model: ModelQuota, variant: Variant, numbers: Numbers) -> Self {
        let configured = configured(&model);
        let setup = Setup {
            window: model.limits.window.as_secs_f64(),
            shares: model.lanes.iter().map(|(_, share)| share.guaranteed).collect(),
            numbers,
        };
        let mechanism = Mechanism::new(setup, Plan::NONE, 1, 0.0);
        let kept = Kept { mechanism, knowledge: Knowledge::new(variant) };
        let mut fleet = Self {
            model,
            configured,
            numbers,
            variant,
            kept,
            learned: Learned::default(),
            alone: Vec::new(),
            unheard: Vec::new(),
            epochs: 1,
        };
        fleet.kept.run(0.0, &configured, &numbers);
        fleet
    }

    fn units(&self, input: f64, output: f64) -> Units {
        let weight = self.model.charge.output_weight;
        Units { requests: 1.0, input, output, combined: input + output * weight }
    }

    fn amounts(&self, document: &Document) -> Units {
        let (estimate, bound) = (document.estimated_input as f64, MAX_OUTPUT as f64);
        match self.learned.expected(&self.numbers) {
            Some(Expected { ratio, output, cached }) => {
                let all = estimate * ratio;
                self.units((all - cached).max(1.0), output.min(bound))
            }
            None => self.units(estimate, bound * self.numbers.unknown_output),
        }
    }

    fn keeps(&mut self, alone: Option<usize>) -> Option<&mut Kept> {
        match alone {
            Some(process) => self.alone.get_mut(process),
            None if self.alone.is_empty() => Some(&mut self.kept),
            None => None,
        }
    }

    fn end(&mut self, now: Micros, held: Held, end: End, told: mechanism::Told) {
        // The provider's meter tells of all, and a process that is alone keeps a part.
        let parts = if held.alone.is_some() { self.alone.len().max(1) } else { 1 };
        let part = 1.0 / parts as f64;
        let told = mechanism::Told { used: told.used.map(|it| it.map(|it| it * part)), ..told };
        match self.keeps(held.alone) {
            Some(kept) => {
                kept.mechanism.settle(clock(now), &held.id, end, &told);
            }
            None if held.alone.is_none() => self.unheard.push((held.id, end, told)),
            None => {}
        }
    }
}

impl Kept {
    fn run(&mut self, now: f64, configured: &Configured, numbers: &Numbers) {
        let reading = self.mechanism.read(now);
        let Outcome { knowledge, plan, change } =
            self.knowledge.clone().run(&reading, configured, numbers);
        if self.mechanism.write(now, &reading, plan, &change) {
            self.knowledge = knowledge;
        }
    }
}

fn configured(model: &ModelQuota) -> Configured {
    let limits = model.limits.effective();
    Configured {
        most: limits.map(|limit| (limit > 0).then_some(limit as f64)),
        window: model.limits.window.as_secs_f64(),
        kept: model.limits.margin * MINUTE / model.limits.window.as_secs_f64(),
        bucket: model.limits.token_bucket,
        burst: model.limits.burst_max.is_none().then_some(model.limits.burst.as_secs_f64()),
    }
}

fn clock(now: Micros) -> f64 {
    now as f64 / SECOND as f64
}

fn micros(seconds: f64) -> Micros {
    (seconds * SECOND as f64).ceil() as Micros
}

impl Limiter for Fleet {
    fn reserve(&mut self, now: Micros, process: usize, calls: Vec<Call<'_>>) -> Vec<Answer> {
        let alone = (process < self.alone.len()).then_some(process);
        let answer = |call: Call<'_>| {
            let ticket = call.ticket.map(|it| (it.epoch, it.position as f64 / GRAIN));
            let amounts = self.amounts(call.document);
            let asked =
                Asked { id: call.id, lane: call.lane, tenant: call.tenant, amounts, ticket };
            let kept = match alone {
                Some(process) => &mut self.alone[process],
                None => &mut self.kept,
            };
            match kept.mechanism.reserve(clock(now), &asked) {
                Decision::Granted => Answer::Granted(Held { id: asked.id, alone, at: now }),
                Decision::Wait { seconds, hold, turn } => {
                    let position = (turn * GRAIN) as u64;
                    let ticket = Ticket { epoch: kept.mechanism.epoch, position };
                    let wait = micros(seconds);
                    if hold == Hold::Pause {
                        return Answer::Paused { wait, ticket: Some(ticket) };
                    }
                    Answer::Wait { wait, ticket }
                }
                // Larger than a process's share: it waits for Redis.
                Decision::Never => Answer::Wait {
                    wait: micros(self.numbers.quiet),
                    ticket: call.ticket.unwrap_or(Ticket { epoch: 0, position: 0 }),
                },
            }
        };
        calls.into_iter().map(answer).collect()
    }

    fn settle(&mut self, now: Micros, held: Held, document: &Document, told: Told) -> Micros {
        let cached = if self.model.charge.cached_input { 0 } else { told.cached };
        let (input, output) = (document.input as f64, document.output as f64);
        self.learned.learn(
            &Used {
                estimated: document.estimated_input as f64,
                input,
                output,
                cached: cached as f64,
                seconds: clock(now - held.at),
            },
            &self.numbers,
        );
        let mut meter = mechanism::Told::default();
        if let Some((used, reset)) = told.meter {
            meter.used[Dimension::Combined] = Some(used as f64);
            meter.reset[Dimension::Combined] = reset.map(clock);
        }
        let used = self.units(input - cached as f64, output);
        self.end(now, held, End::Used(used), meter);
        0
    }

    fn refused(&mut self, now: Micros, held: Held, retry: Micros) {
        let unused = PerDimension {
            requests: f64::from(u8::from(self.model.charge.failed_calls)),
            ..Units::default()
        };
        let end = End::Refused { unused, retry: clock(retry) };
        self.end(now, held, end, mechanism::Told::default());
    }

    fn pace_of(&self, document: &Document) -> Micros {
        let amounts = self.amounts(document);
        let pace = self.kept.mechanism.plan.work_of(&amounts) * self.configured.window;
        micros(pace)
    }

    fn pause(&mut self, now: Micros, length: Micros) {
        self.kept.mechanism.pause(clock(now), clock(length));
    }

    fn set_limit(&mut self, now: Micros, combined: u64) {
        let limit = self.model.limits.with_margin(combined) as f64;
        self.configured.most[Dimension::Combined] = Some(limit);
        self.kept.run(clock(now), &self.configured, &self.numbers);
    }

    fn leave(&mut self, _now: Micros, lane: usize, tenant: u64) {
        self.kept.mechanism.leave(lane, tenant);
    }

    fn flush(&mut self, now: Micros, remembered: bool) {
        self.epochs += 1;
        let old = &self.kept.mechanism;
        let (setup, plan, levels) = (old.setup.clone(), old.plan, old.levels());
        if remembered {
            self.kept.mechanism = Mechanism::new(setup, plan, self.epochs, clock(now));
            self.kept.mechanism.restore(levels);
        } else {
            let mechanism = Mechanism::new(setup, Plan::NONE, self.epochs, clock(now));
            self.kept = Kept { mechanism, knowledge: Knowledge::new(self.variant) };
            self.kept.run(clock(now), &self.configured, &self.numbers);
        }
    }

    fn away(&mut self, now: Micros, processes: Option<usize>) {
        let clock = clock(now);
        if let Some(processes) = processes {
            let part = 1.0 / processes as f64;
            let levels = self.kept.mechanism.levels().map(|drawn| drawn * part);
            let own = |_| {
                let setup = self.kept.mechanism.setup.clone();
                let plan = self.kept.mechanism.plan.part(part);
                let mut mechanism = Mechanism::new(setup, plan, self.epochs, clock);
                mechanism.restore(levels);
                Kept { mechanism, knowledge: self.kept.knowledge.part(part) }
            };
            self.alone = (0..processes).map(own).collect();
            return;
        }
        let mut levels = Units::default();
        for (process, own) in std::mem::take(&mut self.alone).iter().enumerate() {
            let used = own.mechanism.used();
            self.kept.mechanism.charge(clock, &format!("alone-{process}-{now}"), 0, &used);
            let drawn = own.mechanism.levels();
            levels = PerDimension::from_fn(|it| levels[it] + drawn[it]);
        }
        self.kept.mechanism.restore(levels);
        for (id, end, told) in std::mem::take(&mut self.unheard) {
            self.kept.mechanism.settle(clock, &id, end, &told);
        }
    }

    fn read(&mut self, now: Micros, process: usize) -> Option<Task> {
        let process = (process < self.alone.len()).then_some(process);
        let kept = self.keeps(process)?;
        kept.mechanism.task(clock(now)).then(|| {
            let reading = kept.mechanism.read(clock(now));
            Box::new(Read { reading, knowledge: kept.knowledge.clone(), process }) as Task
        })
    }

    fn write(&mut self, now: Micros, task: Task) -> Micros {
        let Ok(read) = task.downcast::<Read>() else { return 0 };
        let Read { reading, knowledge, process } = *read;
        let mut configured = self.configured;
        if process.is_some() {
            let part = 1.0 / self.alone.len().max(1) as f64;
            configured.most = configured.most.map(|most| most.map(|most| most * part));
        }
        let numbers = self.numbers;
        let Some(kept) = self.keeps(process) else { return 0 };
        let Outcome { knowledge, plan, change } = knowledge.run(&reading, &configured, &numbers);
        let room = kept.mechanism.room();
        if kept.mechanism.write(clock(now), &reading, plan, &change) {
            kept.knowledge = knowledge;
        }
        let more = kept.mechanism.room();
        if more > room { micros(more) } else { 0 }
    }
}
