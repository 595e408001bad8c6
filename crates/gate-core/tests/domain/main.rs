//! Tests of the gate domain without a store: state matrices, properties of verifications, and the options of widgets.

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod matrices;
#[cfg(test)]
mod offering;
#[cfg(test)]
mod rail_progress;
#[cfg(test)]
mod rails;
#[cfg(test)]
mod scan;
#[cfg(test)]
mod verifications;
