//! The pages of lists.

use axum::Json;
use partner_core::page::Page;
use serde::Serialize;
use utoipa::ToSchema;

use crate::customers::CustomerRecord;
use crate::sessions::SessionRecord;
use crate::transactions::TransactionRecord;
use crate::webhooks::DeliveryRecord;

/// Pages have the same fields, with different descriptions.
macro_rules! pages {
    ($($(#[$about:meta])* $name:ident of $item:ident at $url:literal {
        $(#[$of_data:meta])* data,
        $(#[$of_more:meta])* has_more
    })*) => {$(
        $(#[$about])*
        #[derive(Serialize, ToSchema)]
        pub(crate) struct $name {
            /// `list`
            #[schema(example = "list")]
            object: &'static str,
            $(#[$of_data])*
            data: Vec<$item>,
            $(#[$of_more])*
            has_more: bool,
            /// The path of the list.
            #[schema(example = $url)]
            url: &'static str,
        }

        impl $name {
            pub(crate) fn of<T>(page: Page<T>, record: impl FnMut(T) -> $item) -> Json<Self> {
                Json(Self {
                    object: "list",
                    data: page.items.into_iter().map(record).collect(),
                    has_more: page.has_more,
                    url: $url,
                })
            }
        }
    )*};
}

pages! {
    /// A page of sessions, newest first.
    SessionList of SessionRecord at "/v1/gate_sessions" {
        /// The sessions.
        data,
        /// Whether another page follows. Its `starting_after` is the last id of this page.
        has_more
    }

    /// A page of transactions, newest first.
    TransactionList of TransactionRecord at "/v1/transactions" {
        /// The transactions.
        data,
        /// Whether another page follows. Its `starting_after` is the last `refid` of this page.
        has_more
    }

    /// A page of customers, newest first.
    CustomerList of CustomerRecord at "/v1/customers" {
        /// The customers.
        data,
        /// Whether another page follows. Its `starting_after` is the last id of this page.
        has_more
    }

    /// A page of deliveries, newest first.
    DeliveryList of DeliveryRecord at "/v1/webhooks/deliveries" {
        /// The deliveries.
        data,
        /// Whether another page follows. Its `starting_after` is the last id of this page.
        has_more
    }
}
