//! Programs for the crates generated from the published documents: `smoke pools` and `smoke gate`.

mod gate;
mod pools;
mod said;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seen = match std::env::args().nth(1).as_deref() {
        Some("pools") => pools::run().await?,
        Some("gate") => gate::run().await?,
        other => return Err(format!("pools or gate, not {other:?}").into()),
    };
    println!("{seen}");
    Ok(())
}
