//! Tests of the program as an operator runs it.

#[cfg(test)]
mod gate;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod process;
#[cfg(test)]
mod rail;
#[cfg(test)]
mod rail_process;
#[cfg(test)]
mod sweeping;
#[cfg(test)]
mod verifier;
#[cfg(test)]
mod verifier_process;
