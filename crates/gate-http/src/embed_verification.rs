//! The verification of a session's user.

use axum::extract::State;
use axum::{Extension, Json};
use gate_core::limits::Group;
use gate_core::object::JsonObject;
use gate_core::usecases::verify_user::{ShownVerification, StartRequest, StartedVerification};
use http_kit::{ApiError, OptionalJson, RawJson};
use instruments::trace;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::App;
use crate::codes;
use crate::edge::ProvenCountry;
use crate::embed_caller::{SessionCaller, Verify};
use crate::errors;
use crate::operation::{Admission, Operation};
use crate::wire::{Verbatim, instant};
use crate::words;

/// The start of a verification, or the user's answers to its form.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(crate) struct CreateEmbedVerificationRequest {
    /// The answers to the form of the verification: strings by field. They go to the provider and are not stored.
    #[schema(value_type = Option<Object>)]
    answers: Option<RawJson>,
}

/// A verification, and what the user must do.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbedVerification)]
pub(crate) struct VerificationRecord {
    /// `embed_verification`
    #[schema(example = "embed_verification")]
    object: &'static str,
    /// Whether the user may pay: with `not_required` and `approved`.
    status: words::VerificationStatus,
    /// The provider's page for the user, or null.
    #[schema(required = true, example = "https://verify.example/v/8842")]
    url: Option<String>,
    /// The fields to show to the user, or null: a flat JSON Schema object of strings, with `title`, `maxLength`, `enum`,
    /// `format` (`date` or `email`) and `required`.
    #[schema(required = true, value_type = Option<Object>)]
    form: Option<Verbatim>,
    /// When `url` and `form` end, or null.
    #[schema(required = true, format = DateTime)]
    expires_at: Option<String>,
    /// The provider's reason for a rejection, or null.
    #[schema(required = true)]
    reason: Option<String>,
}

pub(crate) const CREATE_EMBED_VERIFICATION: Operation = Operation {
    route: || routes!(create_embed_verification),
    admission: Admission::widget(Group::Embed),
    errors: &[
        codes::BODY,
        &[
            codes::SESSION_REQUIRED,
            codes::RESOURCE_NOT_FOUND,
            codes::SESSION_NOT_OPEN,
            codes::VERIFICATION_FORM_NOT_ASKED,
            codes::OUTCOME_UNKNOWN,
        ],
    ],
};

/// Verify the user
///
/// Starts the verification of the session's user, or returns the one that has started. With
/// `answers`, submits the user's answers to its form; without a form they are refused. Then read
/// the session until the verification is decided. If the installation has no provider, the status
/// stays `required`, and `url` and `form` are null.
#[utoipa::path(post, path = "/v1/embed/verification", operation_id = "createEmbedVerification", tag = "Verification",
    request_body = Option<CreateEmbedVerificationRequest>,
    responses((status = 200, description = "The verification", body = VerificationRecord)))]
pub(crate) async fn create_embed_verification(
    who: SessionCaller<Verify>,
    State(app): State<App>,
    Extension(ProvenCountry(country)): Extension<ProvenCountry>,
    OptionalJson(request): OptionalJson<CreateEmbedVerificationRequest>,
) -> Result<Json<VerificationRecord>, ApiError> {
    let answers = request.unwrap_or_default().answers;
    let answers = answers.map(RawJson::into_string);
    let answers = answers.as_deref().map(JsonObject::form).transpose();
    let answers =
        answers.map_err(|error| ApiError::invalid_request(format!("`answers`: {error}.")))?;
    let verifying = &app.verifying;
    let asked = StartRequest {
        answers: answers.as_ref(),
        country,
        trace_parent: trace::cause(),
    };
    let started = verifying.start(who.tenant(), who.token(), asked);
    let started = started.await.map_err(errors::verify_error)?;
    Ok(Json(VerificationRecord::of(started)))
}

impl VerificationRecord {
    /// A verification of which the user must do nothing.
    pub(crate) fn decided(shown: ShownVerification) -> Self {
        Self {
            object: "embed_verification",
            status: shown.status.into(),
            url: None,
            form: None,
            expires_at: None,
            reason: shown.reason,
        }
    }

    fn of(started: StartedVerification) -> Self {
        Self {
            url: started.url,
            form: started.form.map(|form| Verbatim(form.into_object())),
            expires_at: started.expires_at.map(instant),
            ..Self::decided(started.shown)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: request.unknown-fields, gate.verification.stores-no-answers
    #[test]
    fn request_keeps_nothing_but_its_answers() {
        let body = br#"{"date_of_birth":"1815-12-10","document":{"image":"aGVsbG8="}}"#;
        let request: CreateEmbedVerificationRequest = http_kit::parse_json(body).unwrap();
        assert_eq!(request.answers, None);
    }
}
