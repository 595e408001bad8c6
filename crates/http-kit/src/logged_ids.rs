//! The ids of objects in the log line of a request.
//!
//! They are found in the path, and added by handlers, which know what a request creates and what its body and token name.

use std::cell::RefCell;
use std::fmt;

use kernel::{Mode, before_ulid};

tokio::task_local! {
    /// The ids of the current request; `None` if requests are not logged.
    static IDS: RefCell<Option<LoggedIds>>;
}

/// Adds the id of an object to the log line of the current request. A later id of a kind replaces an earlier one.
///
/// A text that is not a well-formed id of a logged kind is ignored, so it may come from a client.
pub fn log_id(id: impl fmt::Display) {
    // Outside of a request there is no line.
    let _ = IDS.try_with(|ids| {
        if let Some(ids) = ids.borrow_mut().as_mut() {
            ids.add(id.to_string());
        }
    });
}

/// Collects the ids that are added while a request is answered. [`take`] returns them.
pub(crate) fn collect<F: Future>(
    ids: Option<LoggedIds>,
    answering: F,
) -> impl Future<Output = F::Output> {
    IDS.scope(RefCell::new(ids), answering)
}

/// The ids of the current request.
pub(crate) fn take() -> LoggedIds {
    let taken = IDS.try_with(RefCell::take);
    taken.ok().flatten().unwrap_or_default()
}

/// The last id of each kind.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LoggedIds {
    pub(crate) session: Option<String>,
    /// A quote of the pools or a signed quote.
    pub(crate) quote: Option<String>,
    pub(crate) trade: Option<String>,
    /// A payment as the widget names it.
    pub(crate) payment: Option<String>,
    pub(crate) rail: Option<String>,
    pub(crate) transaction: Option<String>,
    pub(crate) customer: Option<String>,
    pub(crate) delivery: Option<String>,
}

impl LoggedIds {
    /// The well-formed ids in a path.
    pub(crate) fn of_path(path: &str) -> Self {
        let mut ids = Self::default();
        for segment in path.split('/') {
            ids.add(segment);
        }
        ids
    }

    fn add(&mut self, id: impl AsRef<str> + Into<String>) {
        if let Some(of_kind) = self.of_kind(id.as_ref()) {
            *of_kind = Some(id.into());
        }
    }

    /// The field of a well-formed id; `None` for any other text.
    fn of_kind(&mut self, text: &str) -> Option<&mut Option<String>> {
        let (kind, mode) = match before_ulid(text)?.split_once('_')? {
            // In the reference of a transaction the mode comes first.
            (mode, "tx") => ("tx", mode),
            ("tx", _) => return None,
            other => other,
        };
        Mode::parse(mode)?;
        match kind {
            "gs" => Some(&mut self.session),
            "pq" | "qt" => Some(&mut self.quote),
            "txn" => Some(&mut self.trade),
            "pay" => Some(&mut self.payment),
            "pi" | "po" | "sw" => Some(&mut self.rail),
            "tx" => Some(&mut self.transaction),
            "cus" => Some(&mut self.customer),
            "wd" => Some(&mut self.delivery),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ULID: &str = "01HF7YAT00408104G208104081";

    // rule: logs.object-ids
    #[test]
    fn path_contains_ids_of_every_logged_kind() {
        type Field = fn(&LoggedIds) -> &Option<String>;
        let kinds: [(&str, Field); 11] = [
            ("gs_test", |ids| &ids.session),
            ("pq_live", |ids| &ids.quote),
            ("qt_test", |ids| &ids.quote),
            ("txn_live", |ids| &ids.trade),
            ("pay_test", |ids| &ids.payment),
            ("pi_live", |ids| &ids.rail),
            ("po_test", |ids| &ids.rail),
            ("sw_test", |ids| &ids.rail),
            ("live_tx", |ids| &ids.transaction),
            ("cus_test", |ids| &ids.customer),
            ("wd_live", |ids| &ids.delivery),
        ];
        for (prefix, field) in kinds {
            let id = format!("{prefix}_{ULID}");
            let ids = LoggedIds::of_path(&format!("/v1/things/{id}/parts"));
            assert_eq!(field(&ids).as_deref(), Some(id.as_str()));
        }
    }

    // rule: logs.object-ids, auth.keys-never-logged
    #[test]
    fn other_text_in_path_is_ignored() {
        let others = [
            String::new(),
            "canary".to_owned(),
            ULID.to_owned(),
            "gs_test_".to_owned(),
            format!("gs_prod_{ULID}"),
            format!("gs__{ULID}"),
            format!("GS_test_{ULID}"),
            format!("tx_test_{ULID}"),
            format!("prod_tx_{ULID}"),
            format!("key_test_{ULID}"),
            format!("gsec_gs_test_{ULID}"),
            format!("gs_test_{ULID}_canary"),
            format!("gs_test_{ULID}x"),
            format!("gs_test_{ULID}%20"),
            format!("gs_test_{}", ULID.to_lowercase()),
            "sk_test_0123456789abcdefABCDEF0123456789".to_owned(),
        ];
        for text in others {
            let ids = LoggedIds::of_path(&format!("/v1/things/{text}/parts"));
            assert_eq!(ids, LoggedIds::default(), "{text}");
        }
    }

    // rule: logs.object-ids
    #[tokio::test]
    async fn handler_adds_ids_and_last_one_of_kind_counts() {
        let path = LoggedIds::of_path(&format!("/v1/things/gs_test_{ULID}"));
        let answering = async {
            log_id("canary");
            log_id(format!("cus_live_{ULID}"));
            log_id(format!("cus_test_{ULID}"));
            take()
        };
        let expected = LoggedIds {
            session: Some(format!("gs_test_{ULID}")),
            customer: Some(format!("cus_test_{ULID}")),
            ..LoggedIds::default()
        };
        assert_eq!(collect(Some(path), answering).await, expected);
    }

    #[tokio::test]
    async fn id_is_ignored_without_line_of_request() {
        let answering = async {
            log_id(format!("cus_test_{ULID}"));
            take()
        };
        assert_eq!(collect(None, answering).await, LoggedIds::default());
        log_id(format!("cus_test_{ULID}"));
        assert_eq!(take(), LoggedIds::default());
    }
}
