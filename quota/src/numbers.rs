//! Every number of the limiter: the mechanism (`lua/` and its twin in memory), the policy and the
//! controller (`intake.rs`) hold no other but 0, 1, -1 and units. Those that the scripts need stand in `lua/include/numbers.lua` once
//! more, which a test compares.

/// A second in the limiter's unit of time.
pub(crate) const SECOND: f64 = 1e6;

/// What providers' limits are of.
pub(crate) const MINUTE: f64 = 60.0 * SECOND;

/// A day.
pub(crate) const DAY: f64 = 1_440.0 * MINUTE;

/// A turn as a ticket's whole number: billionths of a limit.
pub(crate) const GRAIN: f64 = 1e9;

/// Defines [`Numbers`], its defaults, and the list of names with units and reasons.
macro_rules! numbers {
    ($($name:ident = $default:expr, $unit:literal, $why:literal;)*) => {
        /// The numbers, each of which can be set without a build by the simulation. Times are in
        /// microseconds.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct Numbers {
            $(#[doc = $why] pub $name: f64,)*
        }

        impl Numbers {
            /// As they are.
            pub const DEFAULT: Self = Self { $($name: $default,)* };

            /// Each: its name, its value, the unit and the reason.
            pub const ALL: &'static [(&'static str, f64, &'static str, &'static str)] =
                &[$((stringify!($name), $default, $unit, $why),)*];

            /// Sets one by its name; false if there is none of that name.
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
    fade = 0.99, "part", "what a call still counts for in a mean after one more";
    quiet = 0.7 * SECOND, "µs", "a call that was not refused within this time was taken: refusals come at once";
    standby = 0.2, "part", "of its share of the capacity, what a lane finds that had a call in the window; another finds room for a mean call";
    half = 0.5, "part", "of a horizon that waits are spread over, of a cache's gain that is believed at once, of the calls at once after an overload, of a window in which times to live are set once";
    walk = 48.0, "entries", "looked at, at once, for what leaves a window";
    logged = 48.0, "observations", "kept for the policy at most";
    lease = 2.0 * SECOND, "µs", "the policy's task is handed to another caller after this time";
    pace = 0.25 * SECOND, "µs", "between two runs of the policy, and two questions of a caller that waits for a call to end, at least";
    regain = 0.05, "part", "of the calls at once that an overload took, that come back each time all have been round";
    reserve = 0.1, "part of the limit", "never drawn: errors of the estimates of calls under way";
    horizon = 5.0 * SECOND, "µs", "no longer wait is told while the capacity is being explored";
    unknown = 0.6, "part of the limit", "deepest burst that is tried of a provider that shows no bucket";
    first = 2.5 * SECOND, "µs of the rate", "capacity while nothing is known";
    grow = 1.3, "times", "what was seen to go well, the capacity to try next";
    unproven = 0.25, "part of the limit", "capacity at most before a first call has told what estimates are worth";
    yields = 0.025, "part of the limit", "that the rate yields to a refusal where nothing was measured, and that comes back in the time of an episode";
    measured = 4.0, "calls", "let through between two refusals make a measurement of the rate";
    episode = 120.0 * SECOND, "µs", "refusals further apart measure the rate anew; a limit that a provider has not stated for so long is as configured";
    even = 3.0, "readings", "of a meter that comes back evenly show a bucket";
    telling = 0.8, "part of the limit", "a meter that says more than this is used shows no kind";
    close = 0.03, "part of the limit", "by which a meter may differ from what it is taken for";
    target = 0.25, "part of the longest wait in place", "how long documents are to wait in their slots";
    far = MINUTE, "µs", "a longer wait counts as so long: limits are raised and gates opened, and the next document may be another model's; a model that nobody has asked for as long does not open its lane";
    first_documents = 2.0, "documents", "on their way at once before a call is admitted; while nobody has to wait each admission lets one more be";
}

/// The numbers, with those of `TIDEGATE_NUMBERS` in place of their own: `make mutate` sets it.
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

    /// What the scripts call a number that has another name here.
    const NAMES: [(&str, &str); 1] = [("MOST_LOGGED", "logged")];

    /// Units, and how long things are kept.
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
