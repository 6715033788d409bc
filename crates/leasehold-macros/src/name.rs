//! The name of the lock: text with the arguments of the function in it, or an expression.

use lock_core::LockName;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::{Error, Expr, Ident, Lit, LitStr, Result};

/// What names the lock.
pub(crate) enum Name {
    /// Text as `format!` takes it, and what it captures.
    Text(LitStr, Vec<String>),
    /// What evaluates to a name.
    Expression(Expr),
}

impl Name {
    /// Reads the value of `name`.
    pub(crate) fn read(value: Expr) -> Result<Self> {
        let Expr::Lit(literal) = value else { return Ok(Self::Expression(value)) };
        let Lit::Str(text) = literal.lit else {
            return Err(Error::new_spanned(literal, "write the name as text, such as \"sync:{tenant}\""));
        };
        Self::text(text)
    }

    fn text(literal: LitStr) -> Result<Self> {
        let text = literal.value();
        let captures = captures(&text).map_err(|problem| Error::new_spanned(&literal, problem))?;
        match unfilled(&text).parse::<LockName>() {
            Err(invalid) => Err(Error::new_spanned(&literal, invalid)),
            Ok(_) => Ok(Self::Text(literal, captures)),
        }
    }

    /// The expression that makes the name.
    pub(crate) fn expression(&self) -> TokenStream {
        match self {
            Self::Text(text, _) if text.value().contains(['{', '}']) => quote!(::std::format!(#text)),
            Self::Text(text, _) => text.to_token_stream(),
            Self::Expression(expression) => expression.to_token_stream(),
        }
    }
}

/// A part of a text that `format!` takes.
#[derive(Debug, PartialEq)]
enum Part<'a> {
    Text(&'a str),
    /// What stands between braces.
    Capture(&'a str),
}

/// The parts of a text. What is wrong with its braces is left for `format!` to report.
fn parts(text: &str) -> Vec<Part<'_>> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, brace) = rest.split_at(at);
        parts.push(Part::Text(before));
        let doubled = brace.as_bytes().get(1) == brace.as_bytes().first();
        rest = match brace.split_once('}') {
            _ if doubled => {
                parts.push(Part::Text(&brace[..1]));
                &brace[2..]
            }
            Some((inner, after)) if brace.starts_with('{') => {
                parts.push(Part::Capture(&inner[1..]));
                after
            }
            Some(_) | None => &brace[1..],
        };
    }
    parts.push(Part::Text(rest));
    parts.retain(|part| *part != Part::Text(""));
    parts
}

/// What a text captures, without how it is formatted.
fn captures(text: &str) -> std::result::Result<Vec<String>, String> {
    let captured = |part| match part {
        Part::Text(_) => None,
        Part::Capture(inner) => Some(checked(inner)),
    };
    parts(text).into_iter().filter_map(captured).collect()
}

fn checked(inner: &str) -> std::result::Result<String, String> {
    let name = inner.split(':').next().unwrap_or_default().trim();
    if name.is_empty() || name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("`{{{inner}}}` does not say which argument: write its name, such as `{{tenant}}`"));
    }
    if name == "self" || Ident::parse_any.parse_str(name).is_err() {
        let remedy = format!("give an expression instead: `name = format!(\"..{{}}\", {name})`");
        return Err(format!("`{{{inner}}}` is not the name of an argument; {remedy}"));
    }
    Ok(name.to_owned())
}

/// The name as it is shown before anything is captured.
fn unfilled(text: &str) -> String {
    let shown = |part| match part {
        Part::Text(text) => text.to_owned(),
        Part::Capture(inner) => format!("{{{inner}}}"),
    };
    parts(text).into_iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_parts() {
        use Part::{Capture, Text};
        assert_eq!(parts("sync:{tenant}"), [Text("sync:"), Capture("tenant")]);
        assert_eq!(parts("{a}{b:>4}x"), [Capture("a"), Capture("b:>4"), Text("x")]);
        assert_eq!(parts("{{a}}"), [Text("{"), Text("a"), Text("}")]);
        assert_eq!(parts("a{"), [Text("a")]);
        assert_eq!(parts("a}b{c"), [Text("a"), Text("b"), Text("c")]);
    }

    #[test]
    fn captures_are_names_of_arguments() {
        assert_eq!(captures("sync:{tenant}:{ day :?}:{{x}}:{type}").unwrap(), ["tenant", "day", "type"]);
        for positional in ["{}", "{0}", "{:?}"] {
            assert!(captures(positional).unwrap_err().contains("does not say which argument"), "{positional}");
        }
        for field in ["{tenant.id}", "{self}", "{self.id}", "{a b}"] {
            assert!(captures(field).unwrap_err().contains("is not the name of an argument"), "{field}");
        }
    }

    #[test]
    fn a_name_that_no_argument_can_make_valid_is_refused() {
        let refused = |text: &str| {
            let literal = LitStr::new(text, proc_macro2::Span::call_site());
            Name::text(literal).map(|_| ()).unwrap_err().to_string()
        };
        for bad in ["", "leasehold:{a}", " {a}", "{a}\n"] {
            assert!(refused(bad).starts_with("lock name"), "{bad:?}");
        }
    }
}
