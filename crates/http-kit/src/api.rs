//! The declaration of an API: its operations, and what its published document says about all of them.

use std::collections::BTreeSet;

use axum::Router;
use axum::middleware::from_fn_with_state;
use utoipa::openapi::path::ParameterIn;
use utoipa::openapi::{InfoBuilder, LicenseBuilder, OpenApi, RefOr, ServerBuilder};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::class::Class;
use crate::error_code::ErrorCode;
use crate::openapi::{Contract, ContractError, by_method, describe, operations};
use crate::pages::Document;
use crate::warning::{KnownParameters, warn_of_unknown_parameters};

/// An operation. The router, the document, the limits and the CORS headers are made from it.
///
/// `S` is the state of the handlers. `A` states who may call the operation and how often, in terms of the product.
pub struct Operation<S, A> {
    /// The handler with its documentation: `|| routes!(handler)`.
    pub route: fn() -> UtoipaMethodRouter<S>,
    /// Who may call it, and how often.
    pub admission: A,
    /// Its error codes in addition to those that all operations of its API share, in the order of the document.
    pub errors: &'static [&'static [&'static ErrorCode]],
}

impl<S, A> Operation<S, A>
where
    S: Clone + Send + Sync + 'static,
{
    /// The operation as a router of its own. A read warns of the query parameters that it does not document.
    pub fn router(&self) -> Router<S> {
        let router = Router::from(OpenApiRouter::new().routes((self.route)()));
        let mut endpoints = self.endpoints().into_iter();
        if endpoints.all(|(method, _)| method == "GET") {
            let known = self.query_parameters();
            router.route_layer(from_fn_with_state(known, warn_of_unknown_parameters))
        } else {
            router
        }
    }

    /// The query parameters that its documentation has.
    fn query_parameters(&self) -> KnownParameters {
        let (_, paths, _) = (self.route)();
        let operations = paths.paths.values().flat_map(by_method);
        let parameters = operations.flat_map(|(_, it)| it.parameters.iter().flatten());
        let names = parameters.filter_map(|it| match it {
            RefOr::T(it) if it.parameter_in == ParameterIn::Query => Some(it.name.clone()),
            RefOr::T(_) | RefOr::Ref(_) => None,
        });
        names.collect()
    }

    /// Its method and its path.
    #[must_use]
    pub fn endpoints(&self) -> Vec<(&'static str, String)> {
        let (_, paths, _) = (self.route)();
        let items = paths.paths.iter();
        items
            .flat_map(|(path, item)| by_method(item).map(|(method, _)| (method, path.clone())))
            .collect()
    }

    /// Whether a request may carry an `Idempotency-Key`, as its documentation says.
    #[must_use]
    pub fn takes_key(&self) -> bool {
        let (_, paths, _) = (self.route)();
        let operations = paths.paths.values().flat_map(by_method);
        let mut parameters = operations.flat_map(|(_, it)| it.parameters.iter().flatten());
        parameters
            .any(|it| matches!(it, RefOr::T(parameter) if parameter.name == "Idempotency-Key"))
    }
}

/// An API: the operations of one published document.
pub struct Api<S: 'static, A: 'static> {
    /// The document's name under `/openapi/`, without an extension.
    pub name: &'static str,
    pub title: &'static str,
    /// Its version, which is a date.
    pub version: &'static str,
    /// What its readers should know first.
    pub description: &'static str,
    /// The groups of operations with their descriptions, in reading order.
    pub tags: &'static [(&'static str, &'static str)],
    pub shared_errors: &'static [&'static ErrorCode],
    /// The tiers of the limits, as named in the headers.
    pub tiers: &'static [&'static str],
    /// Recorded requests and responses by operation, in JSON.
    pub examples: &'static str,
    /// Adds what belongs to no operation, such as events.
    pub complete: fn(Contract) -> Contract,
    pub operations: &'static [&'static Operation<S, A>],
}

impl<S, A> Api<S, A>
where
    S: Clone + Send + Sync + 'static,
    A: AsRef<Class>,
{
    /// The published document.
    ///
    /// # Errors
    /// [`ContractError`] if the document refers to something that does not exist, which the tests rule out.
    pub fn document(&self) -> Result<Document, ContractError> {
        let schemes: BTreeSet<_> = self
            .operations
            .iter()
            .flat_map(|it| schemes(it))
            .copied()
            .collect();
        let contract = Contract::new(self.described())
            .schemes(&schemes)
            .tags(self.tags);
        let api = (self.complete)(contract)
            .examples(self.examples)
            .headers(self.tiers)
            .finish()?;
        Ok(Document {
            name: self.name,
            api,
        })
    }

    fn described(&self) -> OpenApi {
        let routes = self
            .operations
            .iter()
            .fold(OpenApiRouter::<S>::new(), |routes, declared| {
                let (schemas, mut paths, handler) = (declared.route)();
                for operation in operations(&mut paths) {
                    let own = declared.errors.iter().copied().flatten();
                    let codes = self.shared_errors.iter().chain(own).copied();
                    describe(operation, schemes(declared), codes);
                }
                routes.routes((schemas, paths, handler))
            });
        let mut api = routes.into_openapi();
        let license = LicenseBuilder::new()
            .name("Apache-2.0")
            .identifier(Some("Apache-2.0"));
        api.info = InfoBuilder::new()
            .title(self.title)
            .version(self.version)
            .description(Some(self.description))
            .license(Some(license.build()))
            .build();
        let server = ServerBuilder::new()
            .url("/")
            .description(Some("The service that serves this document"));
        api.servers = Some(vec![server.build()]);
        api
    }
}

fn schemes<S, A: AsRef<Class>>(operation: &Operation<S, A>) -> &'static [&'static str] {
    operation.admission.as_ref().schemes()
}
