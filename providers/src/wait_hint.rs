//! The wait that a provider asks callers for.
//!
//! The first readable source in this order counts; zero, negative and unreadable values are
//! ignored:
//!
//! | source | grammar |
//! |---|---|
//! | `retry-after-ms`, `x-ms-retry-after-ms` | decimal number, milliseconds |
//! | `retry-after`; `x-retry-after`; `x-ai-ratelimit-retry-after` (Kong); `llm_provider-retry-after` (`LiteLLM`) | decimal number, seconds; an HTTP date; "1m30s"; RFC 3339; seconds or milliseconds since 1970 |
//! | `RetryInfo.retryDelay` in the body | protobuf duration: "26s", "45.578569677s" |
//! | `retry_after`, `retryAfter`, `retry_after_seconds`, `resets_in_seconds`, `reset_seconds` in the body | seconds |
//! | `x-amz-retry-after` | decimal number, milliseconds |
//! | `x-ratelimit-reset-after` | decimal number, seconds |
//! | message | "try again in 41.724s", "retry in 6m0s", "retry after: 7 seconds", "wait for 7 seconds", "resets in ~7s", "reset after 42h1m20s" |
//! | message | "resets at 2026-12-01T12:00:00Z", "resets at: 2026-12-01 12:00:00 UTC" |
//! | message | "regain access on 2026-12-01 at 00:00 UTC" |
//! | message | "replenished in 2.11:53:40" (Azure API Management) |
//! | `x-ratelimit-reset`, as a header or within the body | seconds or milliseconds since 1970 |
//!
//! A 429 without any of these waits for the end of the window that is used up, if the reply names it
//! ([`end_of_window`]):
//!
//! | header | grammar |
//! |---|---|
//! | `ratelimit` (IETF draft) | `"api";r=0;t=55`, before draft 8 `limit=100, remaining=0, reset=55` |
//! | `ratelimit-reset` (Kong, IETF draft up to 6), `x-ratelimit-reset` (Envoy, Together), `x-rate-limit-reset`, `ratelimitbysize-reset` (Mistral) | as in `retry-after` |
//!
//! Reset headers of buckets, such as OpenAI's, are no hints: they state the time until a limit is full
//! again, which is much longer than the time until the next call fits.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc};
use http::HeaderMap;

use crate::envelope::Envelope;

/// Headers with a wait in milliseconds.
const IN_MILLISECONDS: [&str; 2] = ["retry-after-ms", "x-ms-retry-after-ms"];

/// Headers with a wait in seconds, or its end.
const WAITS: [&str; 4] =
    ["retry-after", "x-retry-after", "x-ai-ratelimit-retry-after", "llm_provider-retry-after"];

/// Headers with the end of a window.
const ENDS_OF_WINDOWS: [&str; 4] =
    ["ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset", "ratelimitbysize-reset"];

/// The longest accepted wait: a year.
const MAX_WAIT: Duration = Duration::from_secs(366 * 86_400);

/// Reads the hint from the headers, or else from the body. `now` should be the provider's clock:
/// see [`clock`].
pub(crate) fn read(
    headers: &HeaderMap,
    envelope: &Envelope,
    now: DateTime<Utc>,
) -> Option<Duration> {
    let header = |name| text(headers, name);
    let milliseconds = || IN_MILLISECONDS.iter().find_map(|name| decimal(header(name)?, 0.001));
    milliseconds()
        .or_else(|| WAITS.iter().find_map(|name| of_header(header(name)?, now)))
        .or_else(|| decimal(envelope.retry_delay.as_deref()?.strip_suffix('s')?, 1.0))
        .or_else(|| decimal(header("x-amz-retry-after")?, 0.001))
        .or_else(|| decimal(header("x-ratelimit-reset-after")?, 1.0))
        .or_else(|| envelope.messages.iter().find_map(|message| in_message(message, now)))
        .or_else(|| until(epoch(header("x-ratelimit-reset").or(envelope.reset.as_deref())?)?, now))
}

/// The time until the end of the window of a limit that a reply states to be used up.
pub(crate) fn end_of_window(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let header = |name| text(headers, name);
    let of_window = || ENDS_OF_WINDOWS.iter().find_map(|name| of_header(header(name)?, now));
    header("ratelimit").and_then(of_spent_policy).or_else(of_window)
}

/// A wait, or its end, in any form that a header has.
fn of_header(text: &str, now: DateTime<Utc>) -> Option<Duration> {
    decimal(text, 1.0)
        .or_else(|| until(moment(text).or_else(|| epoch(text))?, now))
        .or_else(|| units(text).and_then(believable))
}

/// The reset of the first policy with nothing left, in the header `ratelimit`.
fn of_spent_policy(text: &str) -> Option<Duration> {
    fn value<'a>(policy: &'a str, name: &str) -> Option<&'a str> {
        let mut parts = policy.split([';', ',']).map(str::trim);
        parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
    }
    let before_draft_8 = [(text, "remaining", "reset")].into_iter();
    let policies = text.split(',').map(|policy| (policy, "r", "t")).chain(before_draft_8);
    let mut spent = policies.filter(|(policy, left, _)| value(policy, left) == Some("0"));
    spent.find_map(|(policy, _, reset)| decimal(value(policy, reset)?, 1.0))
}

/// The provider's clock from its `date` header; without one, ours. Differences to its other times
/// are then exact.
pub(crate) fn clock(headers: &HeaderMap) -> DateTime<Utc> {
    text(headers, "date").and_then(http_date).unwrap_or_else(Utc::now)
}

/// The provider's clock, exact to half a second: the header tells the second in which it was
/// written.
pub(crate) fn middle_of_second(headers: &HeaderMap) -> DateTime<Utc> {
    let date = text(headers, "date").and_then(http_date);
    date.map_or_else(Utc::now, |date| date + TimeDelta::milliseconds(500))
}

/// Time from `now` to `then`; `None` unless `then` is later.
pub(crate) fn until(then: DateTime<Utc>, now: DateTime<Utc>) -> Option<Duration> {
    believable((then - now).to_std().ok()?)
}

pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn believable(wait: Duration) -> Option<Duration> {
    (!wait.is_zero() && wait <= MAX_WAIT).then_some(wait)
}

fn http_date(text: &str) -> Option<DateTime<Utc>> {
    httpdate::parse_http_date(text).ok().map(DateTime::from)
}

/// A moment as an HTTP date, by RFC 3339, or by it without its `T` and zone, which then is UTC.
fn moment(text: &str) -> Option<DateTime<Utc>> {
    let rfc_3339 = || {
        let first = text.split([' ', ',']).next()?.trim_end_matches('.');
        DateTime::parse_from_rfc3339(first).ok().map(|moment| moment.to_utc())
    };
    let plain = || {
        NaiveDateTime::parse_from_str(text.get(..19)?, "%Y-%m-%d %H:%M:%S")
            .ok()
            .map(|it| it.and_utc())
    };
    http_date(text).or_else(rfc_3339).or_else(plain)
}

/// A time since 1970, in seconds or milliseconds; smaller numbers are rejected.
fn epoch(text: &str) -> Option<DateTime<Utc>> {
    let number: i64 = text.split('.').next()?.parse().ok()?;
    match number {
        1_000_000_000..100_000_000_000 => DateTime::from_timestamp(number, 0),
        1_000_000_000_000.. => DateTime::from_timestamp_millis(number),
        _ => None,
    }
}

/// A plain decimal number of `unit` seconds; no sign, no exponent.
pub(crate) fn decimal(text: &str, unit: f64) -> Option<Duration> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = if plain { text.parse().ok()? } else { return None };
    believable(Duration::try_from_secs_f64(number * unit).ok()?)
}

/// Parses one or more of number and unit at the beginning of a text. By hand: `humantime` takes no
/// fractions and nothing after the duration, and vendors write "41.724s. Visit …".
pub(crate) fn units(text: &str) -> Option<Duration> {
    let (mut rest, mut seconds, mut any) = (text, 0.0, false);
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..digits].parse::<f64>() else { break };
        let after = rest[digits..].trim_start_matches(' ');
        let letters = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let unit = match &after[..letters] {
            "d" | "day" | "days" => 86_400.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "us" | "µs" | "μs" => 1e-6,
            "ns" => 1e-9,
            _ => break,
        };
        seconds += number * unit;
        any = true;
        rest = after[letters..].trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
    }
    any.then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()
}

/// Parses `[d.]hh:mm:ss` at the beginning of a text.
fn clock_face(text: &str) -> Option<Duration> {
    let text = text.split(' ').next()?.trim_end_matches(['.', ',']);
    let (days, time) = text.split_once('.').unwrap_or(("0", text));
    let mut parts = days.split(':').chain(time.split(':')).map(|part| part.parse::<u64>().ok());
    let [days, hours, minutes, seconds] =
        [parts.next()??, parts.next()??, parts.next()??, parts.next()??];
    let hours = days.checked_mul(24)?.checked_add(hours)?;
    let minutes = hours.checked_mul(60)?.checked_add(minutes)?;
    Some(Duration::from_secs(minutes.checked_mul(60)?.checked_add(seconds)?))
}

/// Phrases before a wait. Not "after": "timed out after 600 seconds".
const BEFORE_WAIT: [&str; 11] = [
    "try again in",
    "retry in",
    "retry after",
    "retry-after",
    "again after",
    "resets in",
    "reset in",
    "resets after",
    "reset after",
    "replenished in",
    "wait",
];

/// Words between such a phrase and the wait.
const ROUGHLY: [&str; 5] = ["for ", "about ", "approximately ", "at least ", "~"];

fn in_message(message: &str, now: DateTime<Utc>) -> Option<Duration> {
    // ASCII only, so that positions in it match the message.
    let lower = message.to_ascii_lowercase();
    let after = |phrase: &str| {
        let rest = &lower[lower.find(phrase)? + phrase.len()..];
        rest.starts_with([' ', ':']).then(|| rest.trim_start_matches([' ', ':']))
    };
    let wait = |phrase: &&str| {
        let mut rest = after(phrase)?;
        for word in ROUGHLY {
            rest = rest.strip_prefix(word).unwrap_or(rest);
        }
        units(rest).or_else(|| clock_face(rest)).and_then(believable)
    };
    let date = || {
        let date = after("regain access on")?.get(..10)?;
        let date = NaiveDate::parse_from_str(date, "%Y-%m-%d").ok()?;
        until(date.and_time(NaiveTime::MIN).and_utc(), now)
    };
    // RFC 3339 also allows small letters.
    let resets_at = || until(moment(after("resets at")?)?, now);
    BEFORE_WAIT.iter().find_map(wait).or_else(date).or_else(resets_at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::headers;

    type Pairs = &'static [(&'static str, &'static str)];

    fn now() -> DateTime<Utc> {
        DateTime::parse_from_rfc3339("2026-11-20T12:00:00Z").unwrap().to_utc()
    }

    #[test]
    fn headers_in_their_order_and_grammar() {
        #[rustfmt::skip]
        let cases: &[(Pairs, Option<u64>)] = &[
            (&[("retry-after", "7")],                                    Some(7_000)),
            (&[("retry-after", "0.5")],                                  Some(500)),
            (&[("retry-after-ms", "250"), ("retry-after", "7")],         Some(250)),
            (&[("retry-after-ms", "250.5")],                             Some(250)), // compared in whole milliseconds
            (&[("retry-after-ms", "x"), ("retry-after", "7")],           Some(7_000)),
            (&[("retry-after", "Fri, 20 Nov 2026 12:01:30 GMT")],        Some(90_000)),
            (&[("retry-after", "Friday, 20-Nov-26 12:01:30 GMT")],        Some(90_000)), // RFC 850
            (&[("retry-after", "Fri, 20 Nov 2026 11:00:00 GMT")],        None), // past
            (&[("retry-after", "0")],                                    None),
            (&[("retry-after", "-5")],                                   None),
            (&[("retry-after", "1e3")],                                  None),
            (&[("retry-after", "inf")],                                  None),
            (&[("retry-after", "99999999999999999999999")],              None), // more than a year
            (&[("retry-after", "soon")],                                 None),
            (&[("retry-after", "12s")],                                  Some(12_000)),
            (&[("retry-after", "2026-11-20T12:00:40Z")],                 Some(40_000)),
            (&[("retry-after", "1m30s")],                                Some(90_000)),
            (&[("retry-after", "1795176040")],                           Some(40_000)), // since 1970
            (&[("x-ai-ratelimit-retry-after", "9")],                     Some(9_000)), // Kong
            (&[("llm_provider-retry-after", "11")],                      Some(11_000)), // LiteLLM
            (&[("x-ms-retry-after-ms", "250"), ("retry-after", "7")],    Some(250)), // Azure
            (&[("retry-after", "2"), ("x-amz-retry-after", "900")],      Some(2_000)),
            (&[("x-amz-retry-after", "900")],                            Some(900)),
            (&[("x-ratelimit-reset-after", "97")],                       Some(97_000)),
            (&[("anthropic-ratelimit-requests-reset", "2026-11-20T12:01:00Z")], None), // time to full
        ];
        for (pairs, expected) in cases {
            let wait = read(&headers(pairs), &Envelope::default(), now())
                .map(|wait| wait.as_millis() as u64);
            assert_eq!(wait, *expected, "{pairs:?}");
        }
    }

    #[test]
    fn a_window_that_is_used_up_ends_at_its_reset() {
        let cases: &[(Pairs, Option<u64>)] = &[
            (&[("ratelimit", r#""api";r=0;t=55"#)], Some(55)),
            (&[("ratelimit", r#""day";r=7;t=3000, "minute";r=0;t=12"#)], Some(12)),
            (&[("ratelimit", r#""api";r=3;t=55"#)], None),
            (&[("ratelimit", "limit=100, remaining=0, reset=50")], Some(50)),
            (&[("ratelimit", "limit=100, remaining=5, reset=50")], None),
            (&[("ratelimit-remaining", "0"), ("ratelimit-reset", "17")], Some(17)),
            (&[("x-ratelimit-limit", "10, 10;w=60"), ("x-ratelimit-reset", "23")], Some(23)),
            (&[("ratelimitbysize-reset", "28")], Some(28)),
            (&[("x-ratelimit-reset", "1m30s")], Some(90)),
            (&[("x-rate-limit-reset", "2026-11-20T12:00:33Z")], Some(33)),
            (&[("ratelimit-reset", "1795176033")], Some(33)),
            // The time until a bucket is full.
            (&[("x-ratelimit-reset-tokens", "6m0s")], None),
        ];
        for (pairs, expected) in cases {
            let wait = end_of_window(&headers(pairs), now()).map(|wait| wait.as_secs());
            assert_eq!(wait, *expected, "{pairs:?}");
        }
    }

    fn envelope(message: &str) -> Envelope {
        Envelope { messages: vec![message.to_owned()], ..Envelope::default() }
    }

    #[test]
    fn googles_retry_info() {
        for (delay, expected) in [
            ("26s", Some(26_000)),
            ("45.578569677s", Some(45_578)),
            ("0s", None),
            ("26", None),
            ("-1s", None),
        ] {
            let envelope =
                Envelope { retry_delay: Some(delay.to_owned()), ..envelope("Please retry in 7s.") };
            let wait = read(&HeaderMap::new(), &envelope, now()).map(|wait| wait.as_millis());
            assert_eq!(wait, expected.or(Some(7_000)), "{delay}");
        }
    }

    #[test]
    fn messages() {
        #[rustfmt::skip]
        let cases = [
            ("Rate limit reached. Please try again in 41.724s. Visit",   Some(41_724)),
            ("Please try again in 6m0s.",                                Some(360_000)),
            ("Please try again in 12ms",                                 Some(12)),
            ("Please retry in 45.578569677s.",                           Some(45_578)),
            ("Please retry after 7 seconds.",                            Some(7_000)),
            ("Please wait for 97 seconds before trying again.",          Some(97_000)),
            ("Too many requests. Try again in about 97 seconds.",        Some(97_000)),
            ("Your rate limit resets in ~5s.",                           Some(5_000)),
            ("It will reset in 5 days 10 hours.",                        Some(130 * 3_600_000)),
            ("Please try again in 1 minute and 30 seconds.",             Some(90_000)),
            ("Please try again in 1 minute, 30 seconds, or later.",      Some(90_000)),
            ("Please try again in 1d2h3m.",                              Some(1_563 * 60_000)),
            ("Please retry in 1 hr 2 mins 3 secs",                       Some(3_723_000)),
            ("Limit reached, resets at 2026-11-20T12:01:37Z.",           Some(97_000)),
            ("Limit reached, resets at noon",                            None),
            ("Limit resets at: 2026-11-20 12:00:25 UTC",                 Some(25_000)), // LiteLLM
            ("Too many requests. Retry after: 15 seconds",               Some(15_000)),
            ("Out of quota. Quota will be replenished in 01:23:45.",     Some(5_025_000)),
            ("Out of quota. Quota will be replenished in 2.11:53:40.",   Some(215_620_000)),
            ("RPM limit exceeded; Retry-After: 2 hours",                 Some(7_200_000)),
            ("Your quota will reset after 42h1m20s.",                    Some(151_280_000)), // Google
            ("Please wait at least 18 seconds",                          Some(18_000)),
            ("Retry-After=15 seconds, waited 9 seconds",                 None),
            ("Please wait for the other request",                        None),
            ("Request timed out after 600 seconds",                      None),
            ("Please try again in 0s.",                                  None),
            ("Please try again in a moment",                             None),
            ("You will regain access on 2026-11-21 at 00:00 UTC.",       Some(12 * 3_600_000)),
            ("You will regain access on 2026-11-20 at 00:00 UTC.",       None), // past
            ("regain access on ÄÄÄÄÄÄÄÄÄÄ",                              None),
        ];
        for (message, expected) in cases {
            let wait = read(&HeaderMap::new(), &envelope(message), now())
                .map(|wait| wait.as_millis() as u64);
            assert_eq!(wait, expected, "{message}");
        }
    }

    #[test]
    fn waits_stand_in_fields_of_the_body() {
        for body in [
            r#"{"detail":"Request was throttled.","status":429,"retry_after":7}"#,
            r#"{"error":"Too many requests","retryAfter":"7"}"#,
            r#"{"error":{"code":429,"metadata":{"retry_after_seconds":7.0}}}"#,
            r#"{"error":{"type":"usage_limit_reached","resets_in_seconds":7}}"#,
            r#"{"error":{"code":"model_cooldown","reset_seconds":7}}"#,
        ] {
            let envelope = Envelope::read(body.as_bytes());
            let wait = read(&HeaderMap::new(), &envelope, now());
            assert_eq!(wait, Some(Duration::from_secs(7)), "{body}");
        }
        let unread = Envelope::read(br#"{"error":"x","retry_after":"soon","retryAfter":-1}"#);
        assert_eq!(read(&HeaderMap::new(), &unread, now()), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(try again in |wait for ~|resets at |regain access on )?[0-9hmsµ.é -]{0,30}.{0,20}") {
            read(&HeaderMap::new(), &envelope(&text), now());
            decimal(&text, 0.001);
            moment(&text);
            of_spent_policy(&text);
        }
    }
}
