//! The partners' access to pools before and after a file: changes and shared claims.

use std::collections::{BTreeMap, BTreeSet};

use crate::changes::{self, Changes};
use crate::{Document, PartnerEntry};
use partner_core::PartnerId;
use partner_core::credential::masked;
use partner_core::tables::TableError;
use pools_core::deposits::{DepositClaim, beyond_sepa};
use pools_core::profile::{Pool, PoolsProfile};

/// The partners' access to pools, in the database and after the file.
pub(crate) struct Profiles {
    /// Every stored profile of the mode.
    pub(crate) stored: BTreeMap<PartnerId, PoolsProfile>,
    /// The profiles that the file writes, with their values after it.
    pub(crate) written: BTreeMap<PartnerId, PoolsProfile>,
}

impl Profiles {
    /// The profiles that the file changes, before and after.
    pub(crate) fn changed(
        &self,
    ) -> impl Iterator<Item = (&PartnerId, Option<&PoolsProfile>, &PoolsProfile)> {
        let all = self.written.iter();
        let all = all.map(|(id, after)| (id, self.stored.get(id), after));
        all.filter(|(_, before, after)| *before != Some(*after))
    }

    /// Describes the change of a partner's profile. Returns the profile after the file if the file changes it.
    pub(crate) fn describe(
        &self,
        partner: &PartnerId,
        changes: &mut Changes,
    ) -> Option<&PoolsProfile> {
        let (_, before, after) = self.changed().find(|(id, _, _)| *id == partner)?;
        changes::of_profile(changes, before, after);
        Some(after)
    }

    /// The errors of shared deposit claims. A deposit address or a funding reference belongs to one partner, of the
    /// file or of the database. What two partners share in the database stays: `verify` names it.
    pub(crate) fn shared_deposits(&self, document: &Document) -> Vec<TableError> {
        let mut owners: BTreeMap<DepositClaim, Vec<&PartnerId>> = BTreeMap::new();
        let unwritten = self.stored.iter();
        let unwritten = unwritten.filter(|(id, _)| !self.written.contains_key(*id));
        for (id, profile) in unwritten.chain(&self.written) {
            for claim in profile.deposit_claims() {
                owners.entry(claim).or_default().push(id);
            }
        }
        let mut faults = Vec::new();
        let mut named = BTreeSet::new();
        for entry in &document.partners {
            let id = &entry.partner.id;
            let Some(profile) = self.written.get(id) else {
                continue;
            };
            for claim in profile.deposit_claims() {
                let others = owners.get(&claim).into_iter().flatten();
                let keeps = self.keeps(id, &claim);
                let is_second =
                    |other: &&&PartnerId| **other != id && !(keeps && self.keeps(other, &claim));
                for other in others.filter(is_second) {
                    // Two partners of one file that share a claim give one error.
                    if named.insert((claim.clone(), id.min(other), id.max(other))) {
                        faults.push(self.second_owner(document, &claim, entry, other));
                    }
                }
            }
        }
        faults
    }

    /// Whether a partner has a claim in the database.
    fn had(&self, id: &PartnerId, claim: &DepositClaim) -> bool {
        let stored = self.stored.get(id);
        stored.is_some_and(|profile| profile.deposit_claims().contains(claim))
    }

    /// Whether the file leaves a partner's stored claim unchanged.
    fn keeps(&self, id: &PartnerId, claim: &DepositClaim) -> bool {
        let stored = self.stored.get(id).map(PoolsProfile::deposit_claims);
        let after = self.spelling(id, claim);
        let mut stored = stored.into_iter().flatten();
        stored.any(|before| before.is_written_as(&after))
    }

    /// A partner's own spelling of a claim, after the file.
    fn spelling(&self, id: &PartnerId, claim: &DepositClaim) -> DepositClaim {
        let profile = self.written.get(id).or_else(|| self.stored.get(id));
        let claims = profile.map(PoolsProfile::deposit_claims);
        let mut own = claims.unwrap_or_default().into_iter();
        own.find(|own| own == claim)
            .unwrap_or_else(|| claim.clone())
    }

    /// The error of a claim that belongs to another partner. A stored claim keeps its owner. If neither partner has it
    /// stored, the first one in the file is the owner.
    fn second_owner(
        &self,
        document: &Document,
        claim: &DepositClaim,
        entry: &PartnerEntry,
        other: &PartnerId,
    ) -> TableError {
        let has = |id: &PartnerId| self.had(id, claim);
        let id = &entry.partner.id;
        let mut written = document.partners.iter();
        let (owner, second) = match written.find(|entry| entry.partner.id == *other) {
            Some(second) if has(id) && !has(other) => (id, second),
            Some(second) if has(id) == has(other) && entry.line < second.line => (id, second),
            _ => (other, entry),
        };
        let mut lines = second.deposits.iter();
        let line = lines.find(|(_, written)| written == claim);
        let key = claim.kind.key();
        let field = key.rsplit('.').next().unwrap_or(key);
        let first = self.spelling(owner, claim).written;
        let second_id = &second.partner.id;
        let claim = self.spelling(second_id, claim);
        let same = if claim.written == first {
            String::new()
        } else {
            format!(" counts as {first:?}, which")
        };
        TableError {
            line: line.map_or(second.line, |(line, _)| *line),
            key: key.to_owned(),
            problem: format!(
                "{claim}{same} belongs to `{owner}`; give `{second_id}` another {field}"
            ),
        }
    }

    /// The warnings about funding references of the file that a bank may change.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        self.written.iter().filter_map(|(id, profile)| {
            let reference = &profile.funding_reference;
            let beyond = beyond_sepa(reference);
            let beyond: Vec<String> = beyond.iter().map(|it| format!("{it:?}")).collect();
            let warning = format!(
                "partner {id}: a SEPA transfer does not carry {} of funding_reference {reference:?}, so a deposit may arrive under \
                 another text; use letters without accents, digits, spaces and / - ? : ( ) . , ' +",
                beyond.join(" ")
            );
            (!beyond.is_empty()).then(|| masked(&warning))
        })
    }
}

/// The warning about a pool in live mode, if one applies.
pub(crate) fn warning(pool: &Pool) -> Option<String> {
    let foreign = pool.networks.iter().filter(|network| !network.is_evm());
    let foreign: Vec<&str> = foreign.map(|network| network.as_str()).collect();
    if pool.native_addresses || foreign.is_empty() {
        return None;
    }
    let foreign = foreign.join(" and ");
    Some(format!(
        "pool {} delivers on {foreign} to EVM addresses and refuses addresses of the chain, so crypto can be lost; set native_addresses = true",
        pool.id
    ))
}

#[cfg(test)]
mod tests {
    use kernel::Mode;
    use partner_core::webhooks::target::AllowPrivate;

    use super::*;
    use crate::{Setting, parse_document};

    /// The document of partners with these funding references, and the profiles before and after it.
    fn applied(stored: &[(&str, &str)], file: &[(&str, &str)]) -> (Document, Profiles) {
        let table = |(partner, reference): &(&str, &str)| {
            format!(
                "[[partners]]\nid = \"{partner}\"\nname = \"P\"\n[partners.pools]\nfunding_reference = \"{reference}\"\n"
            )
        };
        let setting = Setting {
            mode: Mode::Test,
            allow_private: AllowPrivate::None,
        };
        let text: String = file.iter().map(table).collect();
        let document = parse_document(&text, setting).unwrap();
        let stored = stored.iter().map(|(partner, reference)| {
            let partner = PartnerId::parse(partner).unwrap();
            let mut profile = PoolsProfile::absent(&partner);
            profile.funding_reference = (*reference).to_owned();
            (partner, profile)
        });
        let stored: BTreeMap<_, _> = stored.collect();
        let written = document.partners.iter().filter_map(|entry| {
            let id = &entry.partner.id;
            Some((id.clone(), entry.profile_over(stored.get(id))?))
        });
        let written = written.collect();
        (document, Profiles { stored, written })
    }

    fn faults(stored: &[(&str, &str)], file: &[(&str, &str)]) -> Vec<String> {
        let (document, profiles) = applied(stored, file);
        let faults = profiles.shared_deposits(&document);
        faults.iter().map(ToString::to_string).collect()
    }

    // rule: apply.deposits-of-one-partner, apply.deposits-compared
    #[test]
    fn reference_belongs_to_one_partner_in_every_spelling() {
        let key = "partners.pools.funding_reference";
        assert_eq!(
            faults(&[("a", "PEN-1")], &[("b", "pen 1")]),
            [format!(
                "line 5: {key}: funding reference \"pen 1\" counts as \"PEN-1\", which belongs to `a`; give `b` another funding_reference"
            )]
        );
        assert_eq!(
            faults(&[], &[("a", "PEN-1"), ("b", "PEN-1")]),
            [format!(
                "line 10: {key}: funding reference \"PEN-1\" belongs to `a`; give `b` another funding_reference"
            )]
        );
        assert!(faults(&[("a", "PEN-1")], &[("b", "PEN_1")]).is_empty());
    }

    // rule: apply.deposits-compared
    #[test]
    fn reference_shared_before_the_rule_stays_and_gets_no_third_owner() {
        let shared = [("a", "PEN-1"), ("b", "PEN 1")];
        assert!(faults(&shared, &shared).is_empty());
        // A spelling that the partner did not have is a new claim, also if the other partner has the same text.
        assert_eq!(faults(&shared, &[("b", "(PEN)1")]).len(), 1);
        assert_eq!(faults(&shared, &[("b", "PEN-1")]).len(), 1);
        let found = faults(&shared, &[("a", "PEN-1"), ("b", "PEN 1"), ("c", "pen1")]);
        let named = found.iter().map(|fault| fault.rsplit("belongs to").next());
        let named: Vec<_> = named.collect();
        let remedy = |owner| format!(" `{owner}`; give `c` another funding_reference");
        let (a, b) = (remedy("a"), remedy("b"));
        assert_eq!(named, [Some(a.as_str()), Some(b.as_str())], "{found:?}");
        // A partner that gave the reference up does not get it back.
        let left = [("a", "PEN-1"), ("b", "OTHER")];
        assert_eq!(faults(&left, &[("b", "PEN 1")]).len(), 1);
    }

    // rule: apply.sepa-warning
    #[test]
    fn reference_of_the_file_is_warned_of_if_a_transfer_does_not_carry_it() {
        let stored = [("a", "OLD_1"), ("b", "OLD_2")];
        let file = [("b", "\u{c9}_2"), ("c", "ACME-7F3K (A) + B.'1,2:3?4/5")];
        let (_, profiles) = applied(&stored, &file);
        let warnings: Vec<String> = profiles.warnings().collect();
        assert_eq!(
            warnings,
            [
                "partner b: a SEPA transfer does not carry 'É' '_' of funding_reference \"É_2\", so a deposit may arrive under another text; use letters without accents, digits, spaces and / - ? : ( ) . , ' +"
            ]
        );
    }

    // rule: apply.default-reference
    #[test]
    fn default_reference_of_an_earlier_version_stays() {
        let partner = PartnerId::parse("acme_pay").unwrap();
        let after = |stored: &str, line: &str| {
            let text =
                format!("[[partners]]\nid = \"acme_pay\"\nname = \"P\"\n[partners.pools]\n{line}");
            let setting = Setting {
                mode: Mode::Test,
                allow_private: AllowPrivate::None,
            };
            let document = parse_document(&text, setting).unwrap();
            let mut before = PoolsProfile::absent(&partner);
            before.funding_reference = stored.to_owned();
            let entry = &document.partners[0];
            let (over, fresh) = (entry.profile_over(Some(&before)), entry.profile_over(None));
            (
                over.unwrap().funding_reference,
                fresh.unwrap().funding_reference,
            )
        };
        for (stored, line, over, fresh) in [
            ("ACME_PAY", "", "ACME_PAY", "ACME-PAY"),
            ("ACME-PAY", "", "ACME-PAY", "ACME-PAY"),
            ("OTHER", "", "ACME-PAY", "ACME-PAY"),
            ("ACME_PAY", "funding_reference = \"X\"\n", "X", "X"),
        ] {
            let expected = (over.to_owned(), fresh.to_owned());
            assert_eq!(after(stored, line), expected, "{stored} {line}");
        }
    }
}
