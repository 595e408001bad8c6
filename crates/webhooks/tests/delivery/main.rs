//! The worker with the real store, and local receivers that misbehave.

#[cfg(test)]
mod dns;
#[cfg(test)]
mod drain;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod holding;
#[cfg(test)]
mod names;
#[cfg(test)]
mod order;
#[cfg(test)]
mod pace;
#[cfg(test)]
mod prefetch;
#[cfg(test)]
mod queue;
#[cfg(test)]
mod receiver;
#[cfg(test)]
mod rotation;
#[cfg(test)]
mod schedule;
#[cfg(test)]
mod signing;
#[cfg(test)]
mod targets;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod world;
