//! A sentence about the delivery of a batch's webhook.

use std::time::SystemTime;

use crate::temporal::{Batch, Temporal, WebhookState};

use super::format::duration;

/// The state of an ended batch's webhook as a sentence, if it has one.
pub(super) async fn sentence(temporal: &Temporal, batch: &Batch) -> Option<String> {
    let state = temporal.webhook(batch).await.ok()??;
    Some(describe(state, SystemTime::now()))
}

fn describe(state: WebhookState, now: SystemTime) -> String {
    match state {
        WebhookState::Delivered => "its receiver knows".to_owned(),
        WebhookState::Pending(None, _) => "on its way".to_owned(),
        WebhookState::Pending(Some(why), next) => {
            let next = next.and_then(|next| next.duration_since(now).ok());
            let next =
                next.map_or_else(|| "now".to_owned(), |next| format!("in {}", duration(next)));
            format!("not delivered yet: {why}; tried again {next}, for a day")
        }
        WebhookState::GivenUp(why) => why,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_webhook_that_is_not_delivered_says_why_and_when_it_is_tried_again() {
        let now = SystemTime::now();
        let why = || Some("host answers 500".to_owned());
        let pending = WebhookState::Pending(why(), Some(now + Duration::from_secs(20)));
        let words = "not delivered yet: host answers 500; tried again in 20s, for a day";
        assert_eq!(describe(pending, now), words);
        assert!(describe(WebhookState::Pending(why(), None), now).contains("tried again now"));
        assert_eq!(describe(WebhookState::GivenUp("gone".to_owned()), now), "gone");
    }
}
