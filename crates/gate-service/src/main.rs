//! `gate-service`: the gate API as a program.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use runtime::service::Program;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    runtime::service::run(&Program {
        name: "gate-service",
        about: "The Penstock hosted ramp session API",
        documents: gate_service::documents,
        check: runtime::Config::check_gate,
        warnings: runtime::Config::gate_warnings,
        listeners: |config| 1 + usize::from(config.serves_widget()),
        start: |runtime| Box::pin(gate_service::start(runtime)),
    })
}
