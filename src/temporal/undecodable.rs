//! Ends an activity whose input cannot be decoded, because it was started by hand or by another program.
//! The SDK alone would retry it for ever.

use anyhow::anyhow;
use temporalio_common::{
    data_converters::{
        DefaultFailureConverter, FailureConverter, PayloadConversionError, PayloadConverter,
        SerializationContextData,
    },
    error::{ApplicationFailure, IncomingError, OutgoingActivityError, OutgoingError},
    protos::temporal::api::failure::v1::Failure,
};
use tidegate_workflows::contract::FailureType;

/// The SDK's conversion of failures, except for undecodable input.
#[derive(Default)]
pub(super) struct Failures(DefaultFailureConverter);

impl FailureConverter for Failures {
    fn to_failure(
        &self,
        error: OutgoingError,
        payload_converter: &PayloadConverter,
        context: &SerializationContextData,
    ) -> Failure {
        let error = match error {
            OutgoingError::Activity(OutgoingActivityError::Application(failure))
                if is_undecodable(&failure) =>
            {
                let why = anyhow!(
                    "the activity's input is not what it takes: {failure}; give tidegate.call and tidegate.embed one JSON object, and leave other activities to tidegate's workflows"
                );
                let failure = ApplicationFailure::builder(why)
                    .type_name(FailureType::InvalidInput.as_str().to_owned())
                    .non_retryable(true)
                    .build();
                OutgoingActivityError::from(Box::new(failure)).into()
            }
            error => error,
        };
        self.0.to_failure(error, payload_converter, context)
    }

    fn to_error(
        &self,
        failure: Failure,
        payload_converter: &PayloadConverter,
        context: &SerializationContextData,
    ) -> Result<IncomingError, PayloadConversionError> {
        self.0.to_error(failure, payload_converter, context)
    }
}

/// Whether the SDK could not decode an activity's input. The SDK has no type for that error and wraps it
/// so that only its text is left (temporalio-sdk 1.1.1); our own failures have a type. Errors of a codec
/// server never come here.
fn is_undecodable(failure: &ApplicationFailure) -> bool {
    let says = failure.to_string();
    failure.type_name().is_none()
        && (says == "Wrong encoding" || says.starts_with("Encoding error: "))
}

#[cfg(test)]
mod tests {
    use temporalio_common::{
        data_converters::{
            ActivitySerializationContext, GenericPayloadConverter, SerializationContext,
        },
        protos::temporal::api::{common::v1::Payload, failure::v1::failure::FailureInfo},
    };
    use temporalio_sdk::activities::ActivityError;
    use tidegate_workflows::contract::DocumentTask;

    use super::*;

    /// Decodes an input as the SDK does, and converts its error.
    fn decoded(payloads: Vec<Payload>) -> Result<DocumentTask, ActivityError> {
        let (converter, context) = (PayloadConverter::default(), context());
        let context = SerializationContext::new(&context, &converter);
        Ok(converter.from_payloads(&context, payloads)?)
    }

    fn context() -> SerializationContextData {
        SerializationContextData::Activity(ActivitySerializationContext::new())
    }

    fn json(text: &str) -> Payload {
        let metadata = [("encoding".to_owned(), b"json/plain".to_vec())].into_iter().collect();
        Payload { metadata, data: text.as_bytes().to_vec(), ..Payload::default() }
    }

    /// The failure's type, whether it is final, and its message.
    fn written(error: ActivityError) -> (String, bool, String) {
        let ActivityError::Application(failure) = error else { panic!("{error:?}") };
        let error = OutgoingActivityError::from(failure).into();
        let failure =
            Failures::default().to_failure(error, &PayloadConverter::default(), &context());
        let Some(FailureInfo::ApplicationFailureInfo(info)) = failure.failure_info else {
            panic!("{failure:?}")
        };
        (info.r#type, info.non_retryable, failure.message)
    }

    #[test]
    fn an_input_that_cannot_be_decoded_is_not_tried_again() {
        let inputs = [
            vec![],
            vec![json("{\"shard\": \"one\"}")],
            vec![json("{\"shard\":")],
            vec![json("[]"), json("[]")],
            vec![Payload { data: b"\xff".to_vec(), ..Payload::default() }],
        ];
        for input in inputs {
            let (kind, is_final, message) = written(decoded(input).unwrap_err());
            assert_eq!((kind.as_str(), is_final), ("InvalidInput", true), "{message}");
            assert!(message.starts_with("the activity's input is not what it takes"), "{message}");
            assert!(message.contains("one JSON object"), "{message}");
        }
    }

    #[test]
    fn other_failures_are_as_they_were() {
        let panicked = std::io::Error::other("Activity function panicked: no");
        let (kind, is_final, message) = written(panicked.into());
        assert_eq!((kind.as_str(), is_final), ("", false), "{message}");
        let own = ApplicationFailure::builder(std::io::Error::other("Wrong encoding"))
            .type_name("Transient".to_owned())
            .build();
        assert_eq!(
            written(own.into()),
            ("Transient".to_owned(), false, "Wrong encoding".to_owned())
        );
    }
}
