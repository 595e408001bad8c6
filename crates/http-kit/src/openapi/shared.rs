//! What several operations say in equal words is written once, among the components.

use std::collections::BTreeMap;

use utoipa::openapi::path::Paths;
use utoipa::openapi::{Components, Ref, RefOr, Response};

use super::{ERROR, X_CODES, operations};

/// An error response of some operations.
struct Shared {
    status: String,
    response: Response,
    uses: usize,
}

/// Replaces the error responses that operations have in common with references. The most frequent response of a status is named after
/// the status, such as `Error403`, and each other one after its last code too, such as `Error403_RailsNotEnabled`.
pub(super) fn responses(paths: &mut Paths, components: &mut Components) {
    let mut found: Vec<Shared> = Vec::new();
    for operation in operations(paths) {
        for (status, response) in &operation.responses.responses {
            let RefOr::T(response) = response else {
                continue;
            };
            match found.iter_mut().find(|it| it.is(status, response)) {
                Some(known) => known.uses += 1,
                None => found.push(Shared {
                    status: status.clone(),
                    response: response.clone(),
                    uses: 1,
                }),
            }
        }
    }
    found.retain(|it| it.uses > 1 && !it.status.starts_with('2'));
    found.sort_by_key(|it| std::cmp::Reverse(it.uses));
    let mut named: BTreeMap<String, Shared> = BTreeMap::new();
    for shared in found {
        named.insert(shared.name(&named), shared);
    }
    for operation in operations(paths) {
        for (status, response) in &mut operation.responses.responses {
            let RefOr::T(own) = response else {
                continue;
            };
            let equal = named.iter().find(|(_, shared)| shared.is(status, own));
            if let Some((name, _)) = equal {
                *response = RefOr::Ref(Ref::from_response_name(name));
            }
        }
    }
    let responses = named.into_iter();
    components
        .responses
        .extend(responses.map(|(name, shared)| (name, RefOr::T(shared.response))));
}

impl Shared {
    fn is(&self, status: &str, response: &Response) -> bool {
        self.status == status && self.response == *response
    }

    /// A name that no other response has.
    fn name(&self, taken: &BTreeMap<String, Self>) -> String {
        let plain = format!("{ERROR}{}", self.status);
        let exact = format!("{plain}_{}", self.last_code());
        let counted = (2..).map(|count| format!("{exact}{count}"));
        let mut names = [plain, exact.clone()].into_iter().chain(counted);
        names
            .find(|name| !taken.contains_key(name))
            .unwrap_or(exact)
    }

    /// The last code, such as `RailsNotEnabled`.
    fn last_code(&self) -> String {
        let extensions = self.response.extensions.as_ref();
        let codes = extensions.and_then(|it| it.get(X_CODES)?.as_array());
        let last = codes.and_then(|codes| codes.last()?.as_str());
        let words = last.unwrap_or_default().split('_');
        words
            .map(|word| {
                let (first, rest) = word.split_at(word.len().min(1));
                first.to_uppercase() + rest
            })
            .collect()
    }
}
