//! One source for both forms of an API: written as async code, and compiled for tasks and for threads.
//!
//! A crate imports one of the attributes under a common name, such as `use lock_forms::blocking as both`, and the source writes
//! `#[both]` above each item that is async, or whose documentation differs. The imports of a source name what its form provides.
//!
//! - [`nonblocking`](macro@nonblocking) leaves the item as it is.
//! - [`blocking`](macro@blocking) removes `async` and `.await`, and replaces names such as `AsyncFnOnce`, also in examples.
//! - [`two_forms`](macro@two_forms) makes both items, with the names that are replaced.
//!
//! A section `# Cancel safety` is for async code, and a section `# Blocking` for threads. What follows `#[blocking_only]`, documentation
//! included, exists only there.
//!
//! An `async` block is refused in both forms: without `async` it would run where it stands, and its `return` and `?` would leave the function.
//! Closures and functions can be async.
//!
//! `docs` decides about documentation, line by line; this file about all other tokens.

mod docs;
mod form;

use std::iter::Peekable;
use std::str::FromStr;

use proc_macro::token_stream::IntoIter;
use proc_macro::{Delimiter, Group, Ident, Literal, Span, TokenStream, TokenTree};

use docs::Docs;
use form::Form;

/// Names that the blocking form replaces.
const RENAMED: [(&str, &str); 3] =
    [("AsyncBackend", "BlockingBackend"), ("AsyncQuorumNode", "BlockingQuorumNode"), ("AsyncFnOnce", "FnOnce")];

/// The item for async code.
#[proc_macro_attribute]
pub fn nonblocking(_: TokenStream, item: TokenStream) -> TokenStream {
    in_form(Form::Nonblocking, item)
}

/// The item for threads.
#[proc_macro_attribute]
pub fn blocking(_: TokenStream, item: TokenStream) -> TokenStream {
    in_form(Form::Blocking, item)
}

/// The item for async code, and then the item for threads, in the same place.
#[proc_macro_attribute]
pub fn two_forms(_: TokenStream, item: TokenStream) -> TokenStream {
    TokenStream::from_iter([in_form(Form::Nonblocking, item.clone()), in_form(Form::Blocking, item)])
}

fn in_form(form: Form, tokens: TokenStream) -> TokenStream {
    let mut docs = Docs::new(form);
    let mut compiled = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if let Some(attribute) = attribute(&token, &mut tokens) {
            match name(&attribute).as_str() {
                "doc" => compiled
                    .extend(documentation(attribute, &mut docs).into_iter().flat_map(|doc| [token.clone(), doc])),
                "blocking_only" if form == Form::Nonblocking => skip_item(&mut tokens),
                "async_trait" if form == Form::Blocking => {}
                "blocking_only" => {}
                _ => compiled.extend([token, group(form, &attribute)]),
            }
            continue;
        }
        docs = Docs::new(form);
        if begins_block(&token, &tokens) {
            skip_item(&mut tokens);
            compiled.extend(refused_block(token.span()));
        } else if form == Form::Nonblocking || !is_async(&token, &mut tokens) {
            compiled.extend([in_form_token(form, token)]);
        }
    }
    compiled
}

/// The attribute that this token begins.
fn attribute(token: &TokenTree, tokens: &mut Peekable<IntoIter>) -> Option<Group> {
    let TokenTree::Punct(mark) = token else { return None };
    let next = tokens.next_if(|next| {
        matches!(next, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket) && *mark == '#'
    })?;
    if let TokenTree::Group(group) = next { Some(group) } else { None }
}

fn name(attribute: &Group) -> String {
    attribute.stream().into_iter().next().map(|name| name.to_string()).unwrap_or_default()
}

/// A line of documentation as it is in this form, if it is there.
fn documentation(attribute: Group, docs: &mut Docs) -> Option<TokenTree> {
    let mut tokens: Vec<_> = attribute.stream().into_iter().collect();
    if let Some(TokenTree::Literal(line)) = tokens.last_mut() {
        let text: Literal = docs.line(&line.to_string())?.parse().ok()?;
        let span = line.span();
        *line = text;
        line.set_span(span);
    }
    let mut line = Group::new(Delimiter::Bracket, tokens.into_iter().collect());
    line.set_span(attribute.span());
    Some(line.into())
}

/// Skips what a marker or `async` stands before: to its semicolon, or the end of its body.
fn skip_item(tokens: &mut Peekable<IntoIter>) {
    let is_end = |token: &TokenTree| match token {
        TokenTree::Punct(mark) => *mark == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Ident(_) | TokenTree::Literal(_) => false,
    };
    tokens.find(is_end);
}

/// Whether this is the `async` of a block.
fn begins_block(token: &TokenTree, following: &Peekable<IntoIter>) -> bool {
    let body = || following.clone().find(|next| !is_word(next, "move"));
    is_word(token, "async") && matches!(body(), Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace)
}

/// What takes the place of a block that begins here: an error of the compiler.
fn refused_block(at: Span) -> TokenStream {
    let message = "a source for both forms has no `async` blocks: for threads, it would run at once, and `return` and `?` in it would leave the \
                   function; use an async closure or function";
    let error = TokenStream::from_str(&format!("::core::compile_error!{{{message:?}}}")).unwrap_or_default();
    error.into_iter().map(|token| located(token, at)).collect()
}

/// The token, and those in it, as if they stood here.
fn located(mut token: TokenTree, at: Span) -> TokenTree {
    if let TokenTree::Group(group) = &token {
        let inner = group.stream().into_iter().map(|token| located(token, at)).collect();
        token = Group::new(group.delimiter(), inner).into();
    }
    token.set_span(at);
    token
}

fn is_word(token: &TokenTree, expected: &str) -> bool {
    matches!(token, TokenTree::Ident(word) if word.to_string() == expected)
}

/// Whether this is `async`, or the dot of an `.await`, which is taken then.
fn is_async(token: &TokenTree, tokens: &mut Peekable<IntoIter>) -> bool {
    match token {
        TokenTree::Punct(mark) if *mark == '.' => tokens.next_if(|next| is_word(next, "await")).is_some(),
        TokenTree::Group(_) | TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {
            is_word(token, "async")
        }
    }
}

fn in_form_token(form: Form, token: TokenTree) -> TokenTree {
    match &token {
        TokenTree::Group(inner) => group(form, inner),
        TokenTree::Ident(word) if form == Form::Blocking => {
            let text = word.to_string();
            let renamed = RENAMED.iter().find(|(name, _)| *name == text);
            renamed.map_or(word.clone(), |(_, name)| Ident::new(name, word.span())).into()
        }
        TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => token,
    }
}

fn group(form: Form, outer: &Group) -> TokenTree {
    let mut group = Group::new(outer.delimiter(), in_form(form, outer.stream()));
    group.set_span(outer.span());
    group.into()
}
