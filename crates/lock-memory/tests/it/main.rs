//! The reference store through its public API, on a clock that is moved by hand.

#[cfg(test)]
mod clients;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod inspecting;
#[cfg(test)]
mod keeping;
#[cfg(test)]
mod latches;
#[cfg(test)]
mod layers;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod modes;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod node;
#[cfg(test)]
mod queueing;
#[cfg(test)]
mod random;
#[cfg(test)]
mod replacing;
#[cfg(test)]
mod support;
#[cfg(test)]
mod traces;
#[cfg(test)]
mod verbs;
