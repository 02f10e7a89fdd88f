//! AWS's error names, from `x-amzn-ErrorType` and `__type`.

use crate::{classify::ErrorNames, envelope::Envelope, error::Kind};

pub(crate) const NAMES: ErrorNames = ErrorNames::Read { by_code: |_, _, _| None, by_type };

fn by_type(status: u16, envelope: &Envelope) -> Option<Kind> {
    let says = |parts: &[&str]| envelope.has_message(parts);
    envelope.types.iter().find_map(|class| {
        Some(match class.as_str() {
            // Also the error of a new account whose quota was never set.
            "ThrottlingException" if says(&["per day"]) => Kind::QuotaExhausted,
            "ThrottlingException" | "TooManyRequestsException" => Kind::RateLimited,
            // A 429: the model is being loaded.
            "ModelNotReadyException" => Kind::Transient,
            "ServiceUnavailableException" => Kind::Overloaded,
            "InternalServerException" | "InternalFailure" | "ModelStreamErrorException" => {
                Kind::Transient
            }
            // A 408.
            "ModelTimeoutException" => Kind::Timeout,
            "ModelErrorException" => by_original_status(envelope),
            // A 400.
            "ServiceQuotaExceededException" => Kind::QuotaExhausted,
            "ValidationException" if says(&["too long"]) || says(&["exceeds", "context"]) => {
                Kind::TooLarge
            }
            "ValidationException" | "ResourceNotFoundException" | "ConflictException" => {
                Kind::InvalidRequest
            }
            "AccessDeniedException"
            | "UnrecognizedClientException"
            | "InvalidClientTokenId"
            | "InvalidSignatureException" => Kind::Unauthorized,
            "ExpiredTokenException" | "ExpiredToken" | "RequestExpired" | "IncompleteSignature"
                if status < 500 =>
            {
                Kind::Unauthorized
            }
            _ => return None,
        })
    })
}

/// A 424: the model itself answered with another status.
fn by_original_status(envelope: &Envelope) -> Kind {
    match envelope.original_status {
        Some(429) => Kind::RateLimited,
        Some(413) => Kind::TooLarge,
        Some(400..=499) => Kind::InvalidRequest,
        _ => Kind::Transient,
    }
}
