//! Tests of the gate domain: state matrices, properties over random histories, and use cases over an in-memory store.

#[cfg(test)]
mod acting;
#[cfg(test)]
mod bootstrapping;
#[cfg(test)]
mod branding;
#[cfg(test)]
mod creating;
#[cfg(test)]
mod customers;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod matrices;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod offering;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod rails;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod verifications;
#[cfg(test)]
mod verifying;
