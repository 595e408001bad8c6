//! Rails: pay-ins and pay-outs that redeem signed quotes.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use gate_core::rail::{RailId, RailKind, RailRecord};
use gate_core::usecases::redeem_quote::Redemption;
use http_kit::{
    ApiError, ErrorCode, IdempotencyHeader, IdempotentReply, Json as Body, PathId, ResponseBuilder,
    log_id,
};
use instruments::trace;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::{App, Entitled};
use crate::codes;
use crate::errors;
use crate::operation::{Admission, Operation};
use crate::wire::{FeesRecord, instant};
use crate::words;

/// A quote to redeem. The quote and the session determine all amounts, methods and users, so an
/// unknown field is refused.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RedeemRequest {
    /// A signed quote of yours: `on_ramp` for a pay-in, `off_ramp` for a pay-out.
    #[schema(example = "qt_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    quote_id: String,
    /// The open session whose user pays or is paid.
    #[schema(example = "gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
    session_id: String,
}

/// Pay-ins and pay-outs have the same fields, with different descriptions.
macro_rules! records {
    ($($(#[$about:meta])* $name:ident as $schema:ident {
        id: $id:literal,
        $(#[$of_object:meta])* object: $object:literal,
        $(#[$of_kind:meta])* kind: $kind:literal,
        status: $status:ident,
        $(#[$of_instructions:meta])* instructions
    })*) => {$(
        $(#[$about])*
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = $schema)]
        pub(crate) struct $name {
            /// Id of the record.
            #[schema(example = $id)]
            id: String,
            $(#[$of_object])*
            #[schema(example = $object)]
            object: &'static str,
            $(#[$of_kind])*
            #[schema(example = $kind)]
            kind: &'static str,
            /// Branch on this.
            status: words::$status,
            /// The redeemed quote.
            #[schema(example = "qt_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
            quote_id: String,
            /// The session whose user pays or is paid.
            #[schema(example = "gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")]
            session_id: String,
            /// ISO 4217 code.
            #[schema(example = "EUR")]
            currency: String,
            /// The asset.
            #[schema(example = "USDT")]
            asset: String,
            /// The fiat side.
            #[schema(example = "100.00")]
            fiat_amount: String,
            /// The crypto side.
            #[schema(example = "106.605318")]
            crypto_amount: String,
            /// Output per input before fees.
            #[schema(example = "1.0822875")]
            exchange_rate: String,
            /// The fees of the order.
            fees: FeesRecord,
            /// The payment or payout method.
            #[schema(example = "sepa")]
            payment_method: String,
            $(#[$of_instructions])*
            #[schema(required = true)]
            instructions: Option<BTreeMap<String, String>>,
            /// A code for the failure; null unless the record is `failed`.
            #[schema(required = true, example = "provider_declined")]
            failure_code: Option<String>,
            /// When the record was created.
            #[schema(format = DateTime)]
            created_at: String,
            /// When the status last changed.
            #[schema(format = DateTime)]
            updated_at: String,
            /// When the money moved; null before that.
            #[schema(required = true, format = DateTime)]
            settled_at: Option<String>,
        }

        impl $name {
            pub(crate) fn of(record: &RailRecord) -> Self {
                let (kind, terms) = (record.id.kind(), &record.terms);
                let (status, failure_code) = record.on_rails();
                let priced = &terms.priced;
                Self {
                    id: record.id.to_string(),
                    object: kind.object(),
                    kind: kind.as_str(),
                    status: status.into(),
                    quote_id: record.quote.to_string(),
                    session_id: record.session.to_string(),
                    currency: terms.currency().code().to_owned(),
                    asset: terms.asset().code().to_owned(),
                    fiat_amount: priced.fiat.to_string(),
                    crypto_amount: priced.crypto.to_string(),
                    exchange_rate: priced.rate.to_string(),
                    fees: FeesRecord::of(&priced.fees),
                    // Only a swap has no method, and it is never shown as such a record.
                    payment_method: terms.payment_method().unwrap_or_default().to_owned(),
                    // Those of a hosted sale are for its user, in the widget.
                    instructions: record
                        .instructions
                        .clone()
                        .filter(|_| kind == RailKind::PayIn)
                        .map(|it| it.0),
                    failure_code: failure_code.map(str::to_owned),
                    created_at: instant(record.created_at),
                    updated_at: instant(record.updated_at()),
                    settled_at: record.state.settled_at().map(instant),
                }
            }
        }
    )*};
}

records! {
    /// A pay-in: the user of a session pays the amount of a locked quote.
    PayInRecord as PayIn {
        id: "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
        /// `rail_pay_in`
        object: "rail_pay_in",
        /// `pay_in`
        kind: "pay_in",
        status: PayInStatus,
        /// What the payer needs to pay: names and values in the rail's own terms.
        instructions
    }

    /// A pay-out: the user of a session receives the amount of a locked quote.
    PayOutRecord as PayOut {
        id: "po_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
        /// `rail_pay_out`
        object: "rail_pay_out",
        /// `pay_out`
        kind: "pay_out",
        status: PayOutStatus,
        /// Always null, because a pay-out needs no payment by the user.
        instructions
    }
}

/// Refusals of the operations that redeem a quote.
const REDEEM: &[&ErrorCode] = &[
    codes::RESOURCE_NOT_FOUND,
    codes::SESSION_NOT_OPEN,
    codes::SESSION_PAYMENT_IN_PROGRESS,
    codes::USER_NOT_APPROVED,
    codes::QUOTE_SESSION_MISMATCH,
    codes::QUOTE_CONSUMED,
    codes::QUOTE_EXPIRED,
    codes::RAILS_NOT_AVAILABLE,
];

pub(crate) const CREATE_PAY_IN: Operation = Operation {
    route: || routes!(create_pay_in),
    admission: Admission::RAILS,
    errors: &[
        codes::BODY,
        codes::RAIL_KEY,
        REDEEM,
        &[codes::RAIL_UNAVAILABLE],
    ],
};

/// Create a pay-in
///
/// Redeems an `on_ramp` quote for the user of an open session. Concurrent requests redeem a quote
/// only once. The session is checked before the quote. The pay-in is `processing` until the rail
/// has moved the money or reports a failure. Then a `rail.pay_in.*` event is sent, and a settled
/// pay-in completes the session.
#[utoipa::path(post, path = "/v1/rails/pay_ins", operation_id = "createPayIn", tag = "Rails",
    params(("Idempotency-Key" = String, Header, description = "A value that you choose, the same for every retry of one operation; a UUID is recommended", example = "6f0c2f4e-8a43-4d0b-9d53-6ad4a1f0f3a1")),
    request_body = RedeemRequest,
    responses((status = 201, description = "The pay-in, processing", body = PayInRecord)))]
pub(crate) async fn create_pay_in(
    who: Entitled,
    State(app): State<App>,
    key: IdempotencyHeader,
    response: ResponseBuilder,
    Body(request): Body<RedeemRequest>,
) -> Result<IdempotentReply, ApiError> {
    log_id(&request.quote_id);
    log_id(&request.session_id);
    let redeeming = &app.redeeming;
    let redemption = request.of(RailKind::PayIn);
    let reply = redeeming
        .redeem(who.access(), key.required()?, &redemption, &|record| {
            log_payment(record);
            response.json(StatusCode::CREATED, &PayInRecord::of(record))
        })
        .await;
    reply.map(IdempotentReply).map_err(errors::redeem_error)
}

pub(crate) const CREATE_PAY_OUT: Operation = Operation {
    route: || routes!(create_pay_out),
    admission: Admission::RAILS,
    errors: &[codes::BODY, codes::RAIL_KEY, REDEEM],
};

/// Create a pay-out
///
/// Redeems an `off_ramp` quote for the user of an open session. Concurrent requests redeem a quote
/// only once. The session is checked before the quote. The pay-out is `processing` until the rail
/// has moved the money or reports a failure. Then a `rail.pay_out.*` event is sent, and a settled
/// pay-out completes the session.
#[utoipa::path(post, path = "/v1/rails/pay_outs", operation_id = "createPayOut", tag = "Rails",
    params(("Idempotency-Key" = String, Header, description = "A value that you choose, the same for every retry of one operation; a UUID is recommended", example = "6f0c2f4e-8a43-4d0b-9d53-6ad4a1f0f3a1")),
    request_body = RedeemRequest,
    responses((status = 201, description = "The pay-out, processing", body = PayOutRecord)))]
pub(crate) async fn create_pay_out(
    who: Entitled,
    State(app): State<App>,
    key: IdempotencyHeader,
    response: ResponseBuilder,
    Body(request): Body<RedeemRequest>,
) -> Result<IdempotentReply, ApiError> {
    log_id(&request.quote_id);
    log_id(&request.session_id);
    let redeeming = &app.redeeming;
    let redemption = request.of(RailKind::PayOut);
    let reply = redeeming
        .redeem(who.access(), key.required()?, &redemption, &|record| {
            log_payment(record);
            response.json(StatusCode::CREATED, &PayOutRecord::of(record))
        })
        .await;
    reply.map(IdempotentReply).map_err(errors::redeem_error)
}

pub(crate) const RETRIEVE_PAY_IN: Operation = Operation {
    route: || routes!(retrieve_pay_in),
    admission: Admission::RAILS,
    errors: &[&[codes::RESOURCE_NOT_FOUND, codes::RAILS_NOT_ENABLED]],
};

/// Read a pay-in
///
/// Returns the status and what the payer needs. Reading changes nothing.
#[utoipa::path(get, path = "/v1/rails/pay_ins/{id}", operation_id = "retrievePayIn", tag = "Rails",
    params(("id" = String, Path, description = "Pay-in id", example = "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")),
    responses((status = 200, description = "The pay-in", body = PayInRecord)))]
pub(crate) async fn retrieve_pay_in(
    who: Entitled,
    State(app): State<App>,
    id: PathId,
) -> Result<Json<PayInRecord>, ApiError> {
    let id = id.parse("pay-in", |text| RailId::parse(RailKind::PayIn, text))?;
    let found = app.reading.rail(who.tenant(), id).await?;
    let found = found.ok_or_else(|| ApiError::not_found("pay-in"))?;
    Ok(Json(PayInRecord::of(&found)))
}

pub(crate) const RETRIEVE_PAY_OUT: Operation = Operation {
    route: || routes!(retrieve_pay_out),
    admission: Admission::RAILS,
    errors: &[&[codes::RESOURCE_NOT_FOUND, codes::RAILS_NOT_ENABLED]],
};

/// Read a pay-out
///
/// Returns the status. Reading changes nothing.
#[utoipa::path(get, path = "/v1/rails/pay_outs/{id}", operation_id = "retrievePayOut", tag = "Rails",
    params(("id" = String, Path, description = "Pay-out id", example = "po_test_01KSFVT4Z2V6B9C1D3F5G7H8JK")),
    responses((status = 200, description = "The pay-out", body = PayOutRecord)))]
pub(crate) async fn retrieve_pay_out(
    who: Entitled,
    State(app): State<App>,
    id: PathId,
) -> Result<Json<PayOutRecord>, ApiError> {
    let id = id.parse("pay-out", |text| RailId::parse(RailKind::PayOut, text))?;
    let found = app.reading.rail(who.tenant(), id).await?;
    let found = found.ok_or_else(|| ApiError::not_found("pay-out"))?;
    Ok(Json(PayOutRecord::of(&found)))
}

/// Adds a payment to the log line of its request.
pub(crate) fn log_payment(record: &RailRecord) {
    log_id(record.id);
    log_id(record.refid);
}

impl RedeemRequest {
    fn of(self, kind: RailKind) -> Redemption {
        Redemption {
            kind,
            quote: self.quote_id,
            session: self.session_id,
            trace_parent: trace::cause(),
        }
    }
}
