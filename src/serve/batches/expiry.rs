//! Expiry of files that the client wants kept for a shorter time than `serve.keep-files`.

use std::{
    ops::RangeInclusive,
    time::{Duration, SystemTime},
};

use tidegate_types::seconds_since_1970;

use crate::serve::problem::Problem;

/// The range that OpenAI accepts, in seconds.
const ALLOWED_SECONDS: RangeInclusive<u64> = 3_600..=30 * 24 * 60 * 60;

/// A field's name and its value.
pub(super) type NamedField<'a, T> = (&'a str, Option<T>);

/// Reads the number of seconds after its creation for which a file is kept; at most `longest`.
///
/// # Errors
/// Names the invalid field.
pub(super) fn read_seconds(
    anchor: NamedField<'_, &str>,
    seconds: NamedField<'_, u64>,
    longest: Duration,
) -> Result<u64, Problem> {
    if anchor.1 != Some("created_at") {
        return Err(Problem::invalid(anchor.0, "must be created_at"));
    }
    let (least, most) = (*ALLOWED_SECONDS.start(), longest.as_secs().min(*ALLOWED_SECONDS.end()));
    seconds.1.filter(|it| (least..=most).contains(it)).ok_or_else(|| {
        let what = format!(
            "must be a number from {least} to {most}: this door keeps files for {} s (serve.keep-files)",
            longest.as_secs()
        );
        Problem::invalid(seconds.0, &what)
    })
}

/// Whether this time, in seconds since 1970, has passed.
pub(super) fn has_passed(expires_at: Option<u64>) -> bool {
    expires_at.is_some_and(|at| at <= seconds_since_1970(SystemTime::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_kept_for_longer_than_the_door_keeps_files() {
        let read = |anchor, number, days: u64| {
            let longest = Duration::from_secs(days * 24 * 60 * 60);
            read_seconds(("a", anchor), ("s", number), longest).map_err(|problem| problem.message)
        };
        let created = Some("created_at");
        assert_eq!(read(created, Some(3_600), 1), Ok(3_600));
        assert_eq!(read(created, Some(2_592_000), 90), Ok(2_592_000));
        for (number, days, says) in [
            (Some(86_401), 1, "s must be a number from 3600 to 86400"),
            (Some(2_592_001), 90, "s must be a number from 3600 to 2592000"),
            (Some(3_599), 30, "s must be"),
            (None, 30, "s must be"),
        ] {
            let refused = read(created, number, days).unwrap_err();
            assert!(refused.starts_with(says), "{refused}");
        }
        assert_eq!(read(Some("now"), Some(3_600), 30).unwrap_err(), "a must be created_at");
        assert_eq!(read(None, Some(3_600), 30).unwrap_err(), "a must be created_at");
        assert!(has_passed(Some(1)) && !has_passed(Some(u64::MAX)) && !has_passed(None));
    }
}
