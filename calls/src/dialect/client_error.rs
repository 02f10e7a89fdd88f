//! The errors of a vendor by which its clients know a failure: one table for calls and for the lines
//! of batches.

use tidegate_types::FailureType;

/// An error in the form of a vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientError<'a> {
    /// The status of the response.
    pub status: u16,
    /// OpenAI's code, where it has one.
    pub code: Option<&'a str>,
}

impl ClientError<'static> {
    /// The error for a failure.
    pub fn from_failure(kind: FailureType) -> Self {
        let (status, code) = match kind {
            FailureType::QuotaWait | FailureType::RateLimited => (429, Some("rate_limit_exceeded")),
            FailureType::QuotaExhausted | FailureType::BudgetExceeded => {
                (429, Some("insufficient_quota"))
            }
            FailureType::TooLarge => (413, None),
            FailureType::Overloaded | FailureType::Transient => (503, None),
            // The provider's key is wrong, not the client's.
            FailureType::Unauthorized => (502, None),
            FailureType::UnknownModel => (404, Some("model_not_found")),
            FailureType::ContentRefused => (400, Some("content_filter")),
            FailureType::InvalidRequest
            | FailureType::Truncated
            | FailureType::InvalidOutput
            | FailureType::CheckFailed
            | FailureType::InvalidInput
            | FailureType::UnreadableDocument
            | FailureType::Expired => (400, None),
        };
        Self { status, code }
    }

    /// The error for a failure's type in Temporal, which may be Temporal's own.
    pub fn from_type(name: &str) -> Self {
        match (FailureType::parse(name), name) {
            (Some(kind), _) => Self::from_failure(kind),
            (None, "Timeout") => Self { status: 504, code: None },
            (None, _) => Self { status: 500, code: None },
        }
    }
}

impl ClientError<'_> {
    /// OpenAI's type of it.
    pub fn of_openai(self) -> &'static str {
        match (self.status, self.code) {
            (429, Some("insufficient_quota")) => "insufficient_quota",
            (429, _) => "rate_limit_error",
            (500.., _) => "server_error",
            _ => "invalid_request_error",
        }
    }

    /// Anthropic's type of it.
    pub fn of_anthropic(self) -> &'static str {
        match self.status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            503 | 529 => "overloaded_error",
            504 => "timeout_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_unknown_model_is_not_found() {
        let not_found = |kind: &FailureType| ClientError::from_failure(*kind).status == 404;
        let found: Vec<_> = FailureType::ALL.into_iter().filter(not_found).collect();
        assert_eq!(found, [FailureType::UnknownModel]);
        let of = |name| {
            let error = ClientError::from_type(name);
            (error.status, error.of_openai(), error.of_anthropic())
        };
        assert_eq!(of("UnknownModel"), (404, "invalid_request_error", "not_found_error"));
        assert_eq!(of("Timeout"), (504, "server_error", "timeout_error"));
        assert_eq!(of("Panic"), (500, "server_error", "api_error"));
        assert_eq!(of("BudgetExceeded"), (429, "insufficient_quota", "rate_limit_error"));
    }
}
