//! Facts about a service that its responses need.

use std::sync::Arc;

use kernel::{Clock, Entropy, RequestId};

/// The location of a service's documentation and the source of its request ids.
///
/// It is cheap to clone. The listener, the outermost layer and the routes share one value.
#[derive(Clone)]
pub struct ServiceInfo(Arc<Inner>);

struct Inner {
    docs_base: Box<str>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

impl ServiceInfo {
    /// `docs_base` is the address of the documentation page, such as `https://pools.example/docs`,
    /// or the relative `/docs` if the public origin is unknown.
    #[must_use]
    pub fn new(
        docs_base: impl Into<Box<str>>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        Self(Arc::new(Inner {
            docs_base: docs_base.into(),
            clock,
            entropy,
        }))
    }

    /// A new request id. It never contains the client's id.
    #[must_use]
    pub fn request_id(&self) -> RequestId {
        RequestId::new(&*self.0.clock, &*self.0.entropy)
    }

    /// The clock of the process, for throttles and measurements.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    /// The URL that explains an error code.
    #[must_use]
    pub fn doc_url(&self, code: &str) -> String {
        format!("{}#{code}", self.0.docs_base)
    }
}

kernel::debug_as_text!(ServiceInfo, "ServiceInfo");

#[cfg(test)]
pub(crate) mod testing {
    //! A [`ServiceInfo`] with a fixed clock and counting entropy, and the call of a router.

    use std::sync::Arc;
    use std::sync::atomic::{AtomicU8, Ordering};

    use axum::Router;
    use axum::extract::Request;
    use axum::http::response::Parts;
    use http_body_util::BodyExt;
    use kernel::{Clock, Entropy, Timestamp};
    use tower::ServiceExt;

    use super::ServiceInfo;

    /// The router's response to a request, whose body is text.
    pub(crate) async fn call(app: &Router, request: Request) -> (Parts, String) {
        let (parts, body) = app.clone().oneshot(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts, String::from_utf8(bytes.to_vec()).unwrap())
    }

    struct Fixed;

    impl Clock for Fixed {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(1_780_000_000_000).unwrap()
        }
    }

    struct Counting(AtomicU8);

    impl Entropy for Counting {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill_with(|| self.0.fetch_add(1, Ordering::Relaxed));
        }
    }

    pub(crate) fn site() -> ServiceInfo {
        ServiceInfo::new(
            "http://pools.test/docs",
            Arc::new(Fixed),
            Arc::new(Counting(AtomicU8::new(1))),
        )
    }
}
