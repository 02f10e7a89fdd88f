//! A body that is read as a whole.

use std::time::Duration;

use axum::{
    body::{Body, Bytes, to_bytes},
    http::StatusCode,
};

use super::problem::Problem;

/// A body has come as a whole after so long, or its client is too slow.
const BODY: Duration = Duration::from_secs(60);

/// All of a body.
///
/// # Errors
/// It is longer than `most` bytes, or does not come in time.
pub(super) async fn whole(body: Body, most: usize) -> Result<Bytes, Problem> {
    match tokio::time::timeout(BODY, to_bytes(body, most)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body is longer than {most} bytes, or broke off; see serve.max-body"),
        )),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("the body did not come within {BODY:?}"),
        )),
    }
}
