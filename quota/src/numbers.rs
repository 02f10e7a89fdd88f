//! Every number of the limiter. The mechanism (`lua/` and its twin in memory), the policy and the
//! controller (`intake.rs`) contain no others except 0, 1, -1 and units. `lua/include/numbers.lua`
//! repeats those that the scripts need; a test compares them.

/// A second in the limiter's unit of time.
pub(crate) const SECOND: f64 = 1e6;

/// A minute, the period of providers' limits.
pub(crate) const MINUTE: f64 = 60.0 * SECOND;

/// A day.
pub(crate) const DAY: f64 = 1_440.0 * MINUTE;

/// Turns in tickets are whole billionths of a limit.
pub(crate) const GRAIN: f64 = 1e9;

/// Defines [`Numbers`], its defaults, and the list of names with units and reasons.
macro_rules! numbers {
    ($($name:ident = $default:expr, $unit:literal, $why:literal;)*) => {
        /// The numbers. The simulation can set each without a build. Times are in microseconds.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct Numbers {
            $(#[doc = $why] pub $name: f64,)*
        }

        impl Numbers {
            /// The numbers in force.
            pub const DEFAULT: Self = Self { $($name: $default,)* };

            /// Name, value, unit and reason of each.
            pub const ALL: &'static [(&'static str, f64, &'static str, &'static str)] =
                &[$((stringify!($name), $default, $unit, $why),)*];

            /// Sets a number by its name. Returns false if there is none of that name.
            pub fn set(&mut self, name: &str, value: f64) -> bool {
                match name {
                    $(stringify!($name) => self.$name = value,)*
                    _ => return false,
                }
                true
            }
        }
    };
}

numbers! {
    unknown_output = 0.33, "part of what is likely at most", "expected output while nothing is learned";
    fade = 0.99, "part", "weight of past calls in a mean after one more";
    quiet = 0.7 * SECOND, "µs", "a call that is not refused within this time was accepted: refusals come at once";
    standby = 0.2, "part", "of its share of the capacity: room kept for a lane with calls in the window; for a lane without, room for a mean call";
    half = 0.5, "part", "of the horizon: long waits are spread over it; of a cache's gain: believed at once; of the calls at once: left after an overload; of a window: between renewals of times to live; of the tokens reserved for calls under way: margin for wrong estimates, in a bucket";
    walk = 48.0, "entries", "looked at in one script call for what leaves a window";
    logged = 48.0, "observations", "kept for the policy at most";
    task_lease = 2.0 * SECOND, "µs", "then the policy's task is handed to another caller";
    pace = 0.25 * SECOND, "µs", "at least, between two runs of the policy, and between two questions of a caller that waits for a call to end";
    regain = 0.05, "part", "of the calls at once before an overload: regained each time all calls in flight have ended once";
    never_drawn = 0.1, "part of the capacity", "largest margin for wrong estimates of calls under way; and of the limit, in tokens: margin for a day after a refusal";
    horizon = 5.0 * SECOND, "µs", "longest wait given while the capacity is explored";
    blind_burst = 0.6, "part of the limit", "deepest burst tried with a provider that shows no bucket";
    first_burst = 2.5 * SECOND, "µs of the rate", "capacity while nothing is known";
    grow = 1.3, "times", "the deepest burst that went well: the capacity to try next";
    unproven = 0.25, "part of the limit", "largest capacity before a first answer has checked the estimates";
    yields = 0.025, "part of the limit", "lost by the rate at a refusal without a measurement, and regained in the time of an episode";
    measured = 4.0, "calls", "let through between two refusals measure the rate";
    episode = 120.0 * SECOND, "µs", "refusals further apart start a new measurement of the rate; a limit that the provider has not stated for this long is as configured";
    even = 3.0, "readings", "of a meter that refills evenly show a bucket";
    telling = 0.8, "part of the limit", "a meter above this use does not show its kind";
    close = 0.03, "part of the limit", "tolerance when a meter is compared";
    target = 0.25, "part of the longest wait in place", "how long documents should wait in their slots; longest wait for the batch of an earlier caller";
    far = MINUTE, "µs", "a longer wait counts as this: limits may be raised, gates opened, and the next document may be another model's; a model without a call for this long does not open its lane";
    first_documents = 2.0, "documents", "on their way at once before a call is admitted; while no call has to wait, each admission allows one more";
}

/// The numbers, as changed by `TIDEGATE_NUMBERS`, which `make mutate` sets.
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may stop at the first fault")]
pub(crate) fn numbers() -> Numbers {
    let mut numbers = Numbers::DEFAULT;
    for set in std::env::var("TIDEGATE_NUMBERS").iter().flat_map(|all| all.split_whitespace()) {
        let (name, value) = set.split_once('=').unwrap();
        assert!(numbers.set(name, value.parse().unwrap()), "there is no number {name}");
    }
    numbers
}

impl Default for Numbers {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers with another name in the scripts.
    const NAMES: [(&str, &str); 1] = [("MOST_LOGGED", "logged")];

    /// Units and times to live.
    const UNITS: [&str; 7] = ["MILLISECOND", "MINUTE", "HOUR", "DAY", "MONTH", "GRAIN", "MILLION"];

    #[test]
    fn the_scripts_have_the_same() {
        let (_, text) =
            tidegate_lua::PARTS.iter().find(|(name, _)| *name == "include/numbers").unwrap();
        let mut compared = 0;
        let lines = text.lines().filter_map(|line| line.strip_prefix("local "));
        for (names, values) in lines.map(|line| line.split_once(" = ").unwrap()) {
            for (name, value) in names.split(", ").zip(values.split(", ")) {
                if UNITS.contains(&name) {
                    continue;
                }
                let named = NAMES.iter().find(|(lua, _)| *lua == name).map(|(_, rust)| *rust);
                let ours = named.map_or_else(|| name.to_lowercase(), str::to_owned);
                let known = Numbers::ALL.iter().find(|(known, ..)| *known == ours);
                let (_, known, ..) = known.unwrap_or_else(|| panic!("{name} has no reason here"));
                let value: f64 = value.parse().unwrap();
                assert!((value - known).abs() < 1e-12 * known, "{name} is {value}, and {known}");
                compared += 1;
            }
        }
        assert!(compared >= 9, "{compared}");
        assert!(Numbers::ALL.len() <= 25, "{} numbers", Numbers::ALL.len());
    }

    #[test]
    fn each_can_be_set_by_its_name() {
        for (name, value, ..) in Numbers::ALL {
            let mut numbers = Numbers::DEFAULT;
            assert!(numbers.set(name, *value));
            assert_eq!(numbers, Numbers::DEFAULT);
            assert!(numbers.set(name, 2.0 * value) && numbers != Numbers::DEFAULT, "{name}");
        }
        assert!(!Numbers::default().set("none", 1.0));
    }
}
