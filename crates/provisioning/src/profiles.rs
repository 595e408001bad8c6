//! The partners' access to pools before and after a file: changes, loosenings and shared claims.

use std::collections::{BTreeMap, BTreeSet};

use crate::changes::{self, Changes};
use crate::{Document, PartnerEntry};
use partner_core::PartnerId;
use partner_core::tables::TableError;
use pools_core::deposits::DepositClaim;
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

    /// Whether the file loosens the protection of money for any partner.
    pub(crate) fn loosen(&self) -> bool {
        self.changed().any(|(id, before, after)| {
            let mut changes = Changes::of(id);
            changes::of_profile(&mut changes, before, after);
            changes.loosens()
        })
    }

    /// The errors of shared deposit claims. A deposit address or a funding reference belongs to one partner, of the
    /// file or of the database.
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
                for other in others.filter(|other| **other != id) {
                    // Two partners of one file that share a claim give one error.
                    if named.insert((claim.clone(), id.min(other), id.max(other))) {
                        faults.push(self.second_owner(document, &claim, entry, other));
                    }
                }
            }
        }
        faults
    }

    /// The error of a claim that belongs to another partner. A stored claim keeps its owner. If neither or both
    /// partners have it stored, the first one in the file is the owner.
    fn second_owner(
        &self,
        document: &Document,
        claim: &DepositClaim,
        entry: &PartnerEntry,
        other: &PartnerId,
    ) -> TableError {
        let has = |id: &PartnerId| {
            let stored = self.stored.get(id);
            stored.is_some_and(|profile| profile.deposit_claims().contains(claim))
        };
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
        TableError {
            line: line.map_or(second.line, |(line, _)| *line),
            key: key.to_owned(),
            problem: format!(
                "{claim} belongs to `{owner}`; give `{}` another {field}",
                second.partner.id
            ),
        }
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
