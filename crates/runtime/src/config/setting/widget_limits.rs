//! The limits of the calls of pages and widgets.

use partner_core::throttle::Tier;

use super::{Default, LIMIT_FORM, Setting, value};

pub(crate) static THROTTLE_BOOTSTRAP: Setting<Vec<Tier>> = Setting::new(
    "THROTTLE_BOOTSTRAP",
    Default::Is("30/60s"),
    value::limit,
    LIMIT_FORM,
    "POST /embed/bootstrap, per publishable key and client address",
);
pub(crate) static THROTTLE_BOOTSTRAP_CEILING: Setting<Vec<Tier>> = Setting::new(
    "THROTTLE_BOOTSTRAP_CEILING",
    Default::Is("6000/60s"),
    value::ceiling,
    LIMIT_FORM,
    "POST /embed/bootstrap, per publishable key, all addresses together",
);
pub(crate) static THROTTLE_EMBED: Setting<Vec<Tier>> = Setting::new(
    "THROTTLE_EMBED",
    Default::Is("60/60s"),
    value::limit,
    LIMIT_FORM,
    "calls of a widget without their own limit, per token and client address",
);
pub(crate) static THROTTLE_EMBED_QUOTES: Setting<Vec<Tier>> = Setting::new(
    "THROTTLE_EMBED_QUOTES",
    Default::Is("10/60s"),
    value::limit,
    LIMIT_FORM,
    "POST /embed/quotes, per token and client address",
);
pub(crate) static THROTTLE_EMBED_PAYMENTS: Setting<Vec<Tier>> = Setting::new(
    "THROTTLE_EMBED_PAYMENTS",
    Default::Is("5/60s"),
    value::limit,
    LIMIT_FORM,
    "POST /embed/payments, per token and client address",
);
