//! `pools-service`: the pools API as a program.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use runtime::service::Program;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    runtime::service::run(&Program {
        name: "pools-service",
        about: "The Penstock liquidity pools API",
        documents: pools_service::documents,
        check: |_| Ok(()),
        warnings: |_, _| Vec::new(),
        listeners: |_| 1,
        start: |runtime| Box::pin(pools_service::start(runtime)),
    })
}
