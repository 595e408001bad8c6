//! The gate domain from outside: its state matrix, its properties over random histories, and its
//! use cases over a store in memory.

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
mod properties;
#[cfg(test)]
mod rails;
#[cfg(test)]
mod reading;
