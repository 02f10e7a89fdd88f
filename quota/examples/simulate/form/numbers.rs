//! Every number of the limiter's form, in one place: nothing else in `form/` may hold one but 0, 1,
//! -1 and units.

/// Defines [`Numbers`], its defaults, and the list of names with units and reasons.
macro_rules! numbers {
    ($($name:ident = $default:literal, $variant:literal, $unit:literal, $why:literal;)*) => {
        /// The numbers, each of which can be set without a build.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub(crate) struct Numbers {
            $(#[doc = $why] pub(crate) $name: f64,)*
        }

        impl Default for Numbers {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl Numbers {
            /// Name and default; which variant needs it, unit, reason.
            pub(crate) const ALL: &'static [(&'static str, f64, [&'static str; 3])] = &[$((stringify!($name), $default, [$variant, $unit, $why]),)*];

            /// Sets one by its name; false if there is none of that name.
            pub(crate) fn set(&mut self, name: &str, value: f64) -> bool {
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
    unknown_output = 0.33, "both", "part of max_tokens", "expected output while nothing is learned";
    fade = 0.99, "both", "part", "what a call still counts for in the expectation after one more";
    enough = 3.0, "both", "calls", "so many teach an expectation";
    quiet = 0.7, "both", "s", "a call that was not refused within this time was taken: refusals come at once";
    standby = 0.2, "both", "part", "of its share of the capacity, what an idle lane may find when it comes";
    half = 0.5, "both", "part", "of a horizon that waits are spread over, of a capacity that standby may take, of a cache's gain that is believed at once";
    walk = 48.0, "both", "entries", "looked at, at most, for when a strict window has room";
    log = 64.0, "both", "observations", "kept for the policy at most";
    lease = 2.0, "both", "s", "the policy's task is handed to another caller after this time";
    pace = 0.25, "both", "s", "between two runs of the policy, at least, where nothing was refused";
    reserve = 0.1, "both", "part of the limit", "never drawn: errors of the estimates of calls under way";
    horizon = 10.0, "both", "s", "no longer wait is told while the capacity is being explored";
    unknown = 0.5, "both", "part of the limit", "deepest burst that is tried of a provider whose meter tells nothing";
    first = 2.0, "one", "s of the rate", "capacity while nothing is known";
    grow = 1.3, "one", "times", "what was seen to go well, the capacity to try next";
    unproven = 0.25, "both", "part of the limit", "capacity at most before a first call has told what estimates are worth";
    recover = 0.01, "one", "part of the limit a minute", "that a lowered rate comes back by";
    yield_ = 0.98, "one", "part", "of the rate that a refusal leaves: the measured one, or the present one";
    measured = 4.0, "one", "calls", "let through between two refusals make a measurement of the rate";
    episode = 120.0, "one", "s", "refusals further apart measure the rate anew";
    even = 3.0, "both", "readings", "of a meter that comes back evenly show a bucket";
    telling = 0.8, "both", "part of the limit", "a meter that says more than this is used shows no kind";
    close = 0.03, "both", "part of the limit", "by which a meter may differ from what it is taken for";
    depth_1 = 1.0, "candidates", "s", "first of the grid of depths";
    depth_2 = 5.0, "candidates", "s", "second";
    depth_3 = 10.0, "candidates", "s", "third";
    depth_4 = 30.0, "candidates", "s", "fourth; a minute is the fifth";
    miss = 0.5, "candidates", "times", "a candidate's weight when it was wrong";
    doubt = 0.1, "candidates", "weight", "of a rate below the configured one at first";
    credible = 0.1, "candidates", "part of the greatest weight", "from which a candidate counts";
    forget = 0.1, "candidates", "part a minute", "by which weights go back to what they were at first";
}
