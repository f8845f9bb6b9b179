//! Stands for the kernel's part in a program without it.

use crate::{Counts, Grant, Policy, Reason, Tuple};
use core::convert::Infallible;

/// Rates of the kernel's sockets: not in this program.
#[derive(Debug)]
pub struct KernelRate(Infallible);

impl KernelRate {
    /// Says why the kernel's sockets cannot have rates.
    ///
    /// # Errors
    /// Always.
    pub const fn check() -> Result<(), Reason> {
        Err(Reason::NotBuilt)
    }

    /// Loads the programs.
    ///
    /// # Errors
    /// Always.
    pub const fn load(_: &Policy) -> Result<Self, Reason> {
        Err(Reason::NotBuilt)
    }

    /// The name of its congestion control.
    pub const fn name(&self) -> &str {
        match self.0 {}
    }

    /// Gives a connection a rate.
    ///
    /// # Errors
    /// Never: there is no such value.
    pub const fn set(&self, _: &Tuple, _: &Grant) -> Result<(), Reason> {
        match self.0 {}
    }

    /// Takes the rate of a connection.
    pub const fn forget(&self, _: &Tuple) {
        match self.0 {}
    }

    /// Renews the lease of all rates.
    ///
    /// # Errors
    /// Never: there is no such value.
    pub const fn renew(&self) -> Result<(), Reason> {
        match self.0 {}
    }

    /// Says what happened.
    pub const fn counts(&self) -> Counts {
        match self.0 {}
    }
}
