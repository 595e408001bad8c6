//! Tests of the store on the server that `cargo xtask test` starts.

#[cfg(test)]
mod audit;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod distribution;
#[cfg(test)]
mod durability;
#[cfg(test)]
mod exchanges;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod guard;
#[cfg(test)]
mod isolation;
#[cfg(test)]
mod opening;
#[cfg(test)]
mod outages;
#[cfg(test)]
mod roles;
#[cfg(test)]
mod statistics;
#[cfg(test)]
mod throughput;
