//! Whether the partners of a file are those that its author means.

use partner_core::tables::TableError;
use partner_core::usecases::partners;
use partner_core::{Partner, PartnerId, PartnerStatus};

use crate::{Document, PartnerEntry};

/// The partners of a file beside the stored ones.
pub(crate) struct Names<'n> {
    pub(crate) document: &'n Document,
    /// The stored partner of each entry, in the order of the file.
    pub(crate) known: &'n [Option<Partner>],
    /// The ids of the mode.
    pub(crate) known_ids: &'n [PartnerId],
}

impl Names<'_> {
    /// An entry that would create a partner without any access has a mistyped id.
    pub(crate) fn faults(&self) -> impl Iterator<Item = TableError> {
        let unusable = self.unknown().filter(|entry| {
            let has_product = entry.profile.is_some()
                || !entry.terms.is_empty()
                || entry.gate.is_some()
                || !entry.webhooks.is_empty();
            entry.keys.is_empty() && !has_product
        });
        unusable.map(|entry| TableError {
            line: entry.line,
            key: "partners.id".to_owned(),
            problem: format!(
                "there is no partner `{}` in this mode, and this table would create it without a key, pools and gate table{}",
                entry.partner.id,
                self.hint(entry)
            ),
        })
    }

    /// Entries that create a partner that may not trade, or rename one: their ids may be mistyped.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let switched_off = self.unknown().filter_map(|entry| {
            let what = switched_off(entry)?;
            let id = &entry.partner.id;
            Some(format!(
                "partner {id} is new, and the file {what}{}",
                self.hint(entry)
            ))
        });
        let entries = self.document.partners.iter().zip(self.known);
        let renamed = entries.filter_map(|(entry, known)| {
            let (before, after) = (&known.as_ref()?.name, &entry.partner.name);
            let id = &entry.partner.id;
            (before != after)
                .then(|| format!("partner {id} is renamed from {before:?} to {after:?}"))
        });
        switched_off.chain(renamed)
    }

    fn unknown(&self) -> impl Iterator<Item = &PartnerEntry> {
        let entries = self.document.partners.iter().zip(self.known);
        entries.filter_map(|(entry, known)| known.is_none().then_some(entry))
    }

    fn hint(&self, entry: &PartnerEntry) -> String {
        let nearest = partners::most_similar(self.known_ids, entry.partner.id.as_str());
        nearest.map_or_else(String::new, |id| format!("; did you mean `{id}`?"))
    }
}

/// What the file takes from a partner, as the end of a sentence.
fn switched_off(entry: &PartnerEntry) -> Option<&'static str> {
    if entry.partner.status == PartnerStatus::Suspended {
        return Some("suspends it");
    }
    let pools_off = entry.profile_over(None).is_some_and(|it| !it.enabled);
    let gate_off = entry.gate.as_ref().is_some_and(|it| !it.enabled);
    (pools_off || gate_off).then_some("switches a product off for it")
}
