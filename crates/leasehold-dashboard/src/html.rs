//! The page itself: one document with its style and its scripts, which loads nothing else.

use std::io;

/// Between the parts of the document.
const NONCE: &str = "{{nonce}}";
const STYLE: &str = "{{style}}";
const SCRIPT: &str = "{{script}}";

const DOCUMENT: &str = include_str!("page/page.html");
const STYLES: &str = include_str!("page/style.css");
const SCRIPTS: &str = concat!(
    include_str!("page/dom.js"),
    include_str!("page/time.js"),
    include_str!("page/leases.js"),
    include_str!("page/locks.js"),
    include_str!("page/aside.js"),
    include_str!("page/order.js"),
    include_str!("page/keys.js"),
    include_str!("page/main.js"),
);

/// What marks the style and the script of one answer as its own. Nobody can guess it.
pub(crate) struct Nonce(String);

impl Nonce {
    pub(crate) fn fresh() -> io::Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Self(secret.iter().map(|byte| format!("{byte:02x}")).collect()))
    }
}

/// The document.
pub(crate) fn page(Nonce(nonce): &Nonce) -> String {
    DOCUMENT.replace(STYLE, STYLES).replace(SCRIPT, SCRIPTS).replace(NONCE, nonce)
}

/// What the browser lets the document do: run its own script, apply its own style, and ask this server for events. With trusted types,
/// no text can become markup.
pub(crate) fn policy(Nonce(nonce): &Nonce) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
}
