//! `pools-service`: the pools API as a program.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use runtime::service::{Document, Program};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    runtime::service::run(&Program {
        name: "pools-service",
        about: "The Penstock liquidity pools API",
        documents: &[
            Document {
                name: "pools-v1",
                yaml: pools_service::openapi_yaml,
            },
            Document {
                name: "engine-v1",
                yaml: pools_service::engine_yaml,
            },
        ],
        check: |_| Ok(()),
        start: |runtime| Box::pin(pools_service::start(runtime)),
    })
}
