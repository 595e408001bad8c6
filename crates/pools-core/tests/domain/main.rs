//! Tests of the pools domain: state matrices, properties over random histories, and the use cases that need no store.

#[cfg(test)]
mod batch;
mod engines;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod matrices;
#[cfg(test)]
mod prices;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod quoting;
#[cfg(test)]
mod transacting;
#[cfg(test)]
mod unused_store;
#[cfg(test)]
mod world;
