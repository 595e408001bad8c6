//! Tests of the built program as users run it: on an embedded database, or on a server if the test run or the test says so.

#[cfg(test)]
mod applying;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod exporting;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod help;
#[cfg(test)]
mod installing;
#[cfg(test)]
mod master_keys;
#[cfg(test)]
mod opening;
#[cfg(test)]
mod owning;
#[cfg(test)]
mod protecting;
#[cfg(test)]
mod rotating;
#[cfg(test)]
mod sandbox;
#[cfg(test)]
mod server;
#[cfg(test)]
mod texts;
