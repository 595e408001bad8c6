//! Tests of the program as an operator runs it.

#[cfg(test)]
mod canaries;
#[cfg(test)]
mod descriptors;
#[cfg(test)]
mod far_ends;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod log;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod opening;
#[cfg(test)]
mod served;
#[cfg(test)]
mod server;
#[cfg(test)]
mod shared;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod traces;
