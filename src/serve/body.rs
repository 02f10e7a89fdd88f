//! Reads a whole body.

use std::time::Duration;

use axum::{
    body::{Body, Bytes, to_bytes},
    http::StatusCode,
};

use super::problem::Problem;

/// Time limit for a whole body to arrive.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Reads a whole body. `remedy` tells what to do about a body that is too long.
///
/// # Errors
/// The body is longer than `most` bytes, or does not arrive within [`TIME_LIMIT`].
pub(super) async fn read_whole_body(
    body: Body,
    most: usize,
    remedy: &str,
) -> Result<Bytes, Problem> {
    match tokio::time::timeout(TIME_LIMIT, to_bytes(body, most)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body is longer than {most} bytes, or broke off; {remedy}"),
        )),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("the body did not come within {TIME_LIMIT:?}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_that_is_too_long_is_refused_with_its_own_remedy() {
        let read = async |most| read_whole_body(Body::from("four"), most, "divide it").await;
        assert_eq!(read(4).await.unwrap(), "four");
        let problem = read(3).await.unwrap_err();
        assert_eq!(problem.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(problem.message, "the body is longer than 3 bytes, or broke off; divide it");
    }
}
