//! The texts of the limiter's Lua scripts, for Rust. `README.md` describes each script with its
//! keys and arguments, for clients in any language.
//!
//! A script names the parts that it needs in lines such as `--- @include "include/state"`.

#![no_std]
#![deny(missing_docs)]

macro_rules! parts {
    ($($name:literal),+ $(,)?) => {
        /// The parts that scripts may include: name and text.
        pub const PARTS: &[(&str, &str)] = &[$(($name, include_str!(concat!($name, ".lua")))),+];
    };
}

parts![
    "include/arguments",
    "include/budget",
    "include/clock",
    "include/day",
    "include/entries",
    "include/gate",
    "include/holds",
    "include/learned",
    "include/levels",
    "include/log",
    "include/numbers",
    "include/plan",
    "include/queue",
    "include/recount",
    "include/room",
    "include/state",
];

macro_rules! scripts {
    ($($constant:ident: $name:literal),+ $(,)?) => {
        $(
            #[doc = concat!("The text of `", $name, ".lua`, without its parts.")]
            pub const $constant: &str = include_str!(concat!($name, ".lua"));
        )+

        /// Every script: its name and its text, without its parts.
        pub const SCRIPTS: &[(&str, &str)] = &[$(($name, $constant)),+];
    };
}

scripts! {
    RESERVE: "reserve-7",
    SETTLE: "settle-9",
    PAUSE: "pause-6",
    PLAN: "plan-7",
    INSPECT: "inspect-8",
    LEAVE: "leave-7",
    LANES: "lanes-1",
    RENEW: "renew-1",
    BEAT: "beat-1",
    WORKERS: "workers-1",
    RETRIES: "retries-1",
    HISTORY: "history-1",
    ENQUEUE: "enqueue-1",
    BUDGET_RESERVE: "budget-reserve-1",
    BUDGET_SETTLE: "budget-settle-1",
    BUDGET_OPEN: "budget-open-1",
    BUDGET_CHECKPOINT: "budget-checkpoint-1",
    BUCKET: "bucket-1",
    TURNS: "turns-2",
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests may stop at the first fault")]
mod tests {
    extern crate std;

    use std::{fs, path::Path, string::String};

    use super::*;

    #[test]
    fn every_file_of_the_folder_is_known_and_its_lines_are_short() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (inside, known) in [("", SCRIPTS), ("include/", PARTS)] {
            let files = fs::read_dir(folder.join(inside)).unwrap();
            let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            for file in files.filter(|file| file.ends_with(".lua")) {
                let name =
                    [inside, file.trim_end_matches(".lua")].iter().copied().collect::<String>();
                let known = known.iter().find(|(known, _)| *known == name);
                let (_, text) = known.unwrap_or_else(|| panic!("{name} is not in lib.rs"));
                assert!(text.lines().all(|line| line.chars().count() <= 100), "{name}");
            }
        }
    }
}
