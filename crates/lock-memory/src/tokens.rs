//! The counter from which all tokens are drawn.

use lock_core::{BackendError, FencingToken, Operation, TokenRange, Width};

use crate::refusal::used_up;

/// The highest token that was ever drawn; 0 before the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastToken(u64);

impl LastToken {
    pub(crate) fn get(&self) -> Option<FencingToken> {
        FencingToken::new(self.0).ok()
    }

    /// Draws only higher ones from now on.
    pub(crate) fn raise(&mut self, floor: FencingToken) {
        self.0 = self.0.max(floor.get());
    }

    pub(crate) fn draw(&mut self, width: Width) -> Result<TokenRange, BackendError> {
        let tokens = TokenRange::above(self.0, width).map_err(|invalid| used_up(Operation::Acquire, invalid))?;
        self.0 = tokens.high().get();
        Ok(tokens)
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{Effect, ErrorKind};

    use super::*;

    #[test]
    fn used_up_tokens_are_an_error_that_changes_nothing() {
        let mut last = LastToken(FencingToken::MAX.get() - 1);
        let error = last.draw(Width::MAX).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Protocol, Effect::None));
        assert_eq!(last.draw(Width::ONE).unwrap().high(), FencingToken::MAX);
    }
}
