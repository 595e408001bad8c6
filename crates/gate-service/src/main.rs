//! `gate-service`: the gate API as a program.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use runtime::service::{Document, Program};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    runtime::service::run(&Program {
        name: "gate-service",
        about: "The Penstock hosted ramp session API",
        documents: &[
            Document {
                name: "gate-v1",
                yaml: gate_service::openapi_yaml,
            },
            Document {
                name: "gate-test-helpers-v1",
                yaml: gate_service::test_helpers_yaml,
            },
            Document {
                name: "gate-embed-v1",
                yaml: gate_service::embed_yaml,
            },
            Document {
                name: "rail-v1",
                yaml: gate_service::rail_yaml,
            },
            Document {
                name: "verifier-v1",
                yaml: gate_service::verifier_yaml,
            },
        ],
        check: runtime::Config::check_gate,
        start: |runtime| Box::pin(gate_service::start(runtime)),
    })
}
