//! A lock by its name, and how to hold it.

use lock_core::{Invalid, LockName, LockOptions};

/// The name of a lock and how to hold it, as a user gave them. What is not valid is told when the lock is asked for.
#[derive(Clone, Debug)]
pub struct Spec {
    name: Result<LockName, Invalid>,
    options: Result<LockOptions, Invalid>,
}

impl Spec {
    /// A name, with the default options.
    pub fn new(name: &str) -> Self {
        Self { name: name.parse(), options: Ok(LockOptions::default()) }
    }

    /// Replaces all options.
    #[must_use]
    pub fn options(mut self, options: LockOptions) -> Self {
        self.options = Ok(options);
        self
    }

    /// Changes the options. The first change that fails is the error that the user gets.
    #[must_use]
    pub fn set(mut self, change: impl FnOnce(&mut LockOptions) -> Result<(), Invalid>) -> Self {
        self.options = self.options.and_then(|mut options| change(&mut options).map(|()| options));
        self
    }

    /// The name, if it is valid.
    pub fn name(&self) -> Option<&LockName> {
        self.name.as_ref().ok()
    }

    /// The name and the options.
    ///
    /// # Errors
    /// `Invalid` for a name or an option that is not valid.
    pub fn checked(&self) -> Result<(LockName, LockOptions), Invalid> {
        let options = self.options.clone()?;
        options.validate()?;
        Ok((self.name.clone()?, options))
    }
}

/// The setters of [`LockOptions`], for a type with a [`Spec`] in its field `spec` and a method `acquire`.
#[macro_export]
macro_rules! option_setters {
    () => {
        /// Takes all options at once, for instance from a configuration.
        pub fn options(mut self, options: ::lock_core::LockOptions) -> Self {
            self.spec = self.spec.options(options);
            self
        }

        /// How long the store keeps the lease when nobody renews it: 100 ms to 365 days, 30 s if not set.
        ///
        /// The client renews the lease whatever the ttl is. After a holder has died, others wait for so long.
        pub fn ttl(self, ttl: ::std::time::Duration) -> Self {
            self.set(|options| options.set_ttl(ttl))
        }

        /// How long [`acquire`](Self::acquire) waits; without limit if not set.
        pub fn wait(self, wait: ::std::time::Duration) -> Self {
            self.set(|options| Ok(options.wait = Some(wait)))
        }

        /// Why the lock is held, for people who look: at most 200 bytes.
        pub fn why(self, why: impl Into<String>) -> Self {
            self.set(|options| Ok(options.why = why.into()))
        }

        /// How long the lock is held at most, renewals included; then the guard is lost. No limit if not set.
        pub fn max_hold(self, max_hold: ::std::time::Duration) -> Self {
            self.set(|options| Ok(options.max_hold = Some(max_hold)))
        }

        fn set(
            mut self,
            change: impl FnOnce(&mut ::lock_core::LockOptions) -> Result<(), ::lock_core::Invalid>,
        ) -> Self {
            self.spec = self.spec.set(change);
            self
        }
    };
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_first_mistake_is_told_when_the_lock_is_asked_for() {
        let spec = Spec::new("a").set(|options| options.set_ttl(Duration::ZERO)).set(|options| {
            options.max_hold = Some(Duration::ZERO);
            Ok(())
        });
        assert_eq!(
            spec.checked().unwrap_err().to_string(),
            LockOptions::default().set_ttl(Duration::ZERO).unwrap_err().to_string()
        );
        assert!(spec.options(LockOptions::default()).checked().is_ok(), "all options are replaced");
        assert!(Spec::new("").name().is_none() && Spec::new("").checked().is_err());
    }
}
