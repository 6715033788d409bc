//! The function under the attribute: what it must be, and what its arguments are called.

use std::mem;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{
    Error, FnArg, Ident, ItemFn, Pat, PatIdent, Result, ReturnType, Signature, Stmt, Token, TraitItemFn, Type,
    parse_quote,
};

use crate::mistakes::Mistakes;
use crate::name::Name;
use crate::settings::Settings;

/// Reads a function with a body.
pub(crate) fn read(item: TokenStream) -> Result<ItemFn> {
    syn::parse2(item.clone()).map_err(|error| match syn::parse2::<TraitItemFn>(item) {
        Ok(declared) => Error::new_spanned(
            declared.sig,
            "`#[locked]` has nothing to run here: put it on a function with a body, such as that of an `impl`",
        ),
        Err(_) => Error::new(error.span(), format!("`#[locked]` is for functions: {error}")),
    })
}

/// What the function returns, which must be able to say that it did not run.
pub(crate) fn returns(signature: &Signature) -> Result<&Type> {
    const RESULT: &str = "a locked function returns a `Result`: the lock may not be acquired, or may be lost";
    match &signature.output {
        ReturnType::Default => Err(Error::new_spanned(&signature.ident, RESULT)),
        ReturnType::Type(_, returned) if signature.asyncness.is_none() && is_future(returned) => {
            Err(Error::new_spanned(
                returned,
                "write an `async fn`, so that its body runs under the lock; under `#[async_trait]`, call one from the method",
            ))
        }
        ReturnType::Type(_, returned) => Ok(returned),
    }
}

/// Whether this is `impl Trait`, or the boxed future to which `async_trait` turns a method.
#[expect(clippy::wildcard_enum_match_arm, reason = "no other type is known to be a future")]
fn is_future(returned: &Type) -> bool {
    match returned {
        Type::ImplTrait(_) => true,
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "Pin"),
        _ => false,
    }
}

/// Reports what the function and the settings have wrong together.
pub(crate) fn check(signature: &Signature, settings: &Settings) -> Result<()> {
    let mut mistakes = Mistakes::default();
    if let Some(constant) = &signature.constness {
        mistakes.add(Error::new_spanned(constant, "a `const fn` cannot acquire a lock"));
    }
    let arguments = Arguments::of(signature);
    if arguments.receiver.is_none() {
        let client = settings.client.to_token_stream();
        if mentions(client.clone(), "self") {
            let problem =
                "this function has no `self`; give a client that it has, such as an argument: `client = locks`";
            mistakes.add(Error::new_spanned(client, problem));
        }
    }
    if let Name::Text(text, captures) = &settings.name {
        for missing in captures.iter().filter(|capture| !arguments.has(capture) && !is_constant(capture)) {
            mistakes.add(Error::new_spanned(text, arguments.without(missing)));
        }
    }
    if let Some(guard) = settings.guard.as_ref().filter(|guard| arguments.has(&guard.unraw().to_string())) {
        let problem = format!("the function has an argument `{guard}` already; call the guard something else");
        mistakes.add(Error::new_spanned(guard, problem));
    }
    mistakes.end()
}

/// Whether a name is written like that of a constant, which the compiler looks up.
fn is_constant(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}

fn mentions(tokens: TokenStream, name: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident.unraw() == name,
        TokenTree::Group(group) => mentions(group.stream(), name),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// Gives arguments that are patterns a name instead, and returns what takes them apart. Done in the work, what a pattern does not bind
/// is dropped with the work. A pattern stays if the lock is made of something that it binds: the client and the name come before the work.
pub(crate) fn take_patterns(signature: &mut Signature, settings: &Settings) -> Vec<Stmt> {
    let mut taken = Vec::new();
    for (index, argument) in signature.inputs.iter_mut().enumerate() {
        let FnArg::Typed(typed) = argument else { continue };
        let mut bound = Arguments::default();
        bound.visit_pat(&typed.pat);
        if is_name(&typed.pat) || bound.names.iter().any(|name| makes_lock(settings, &name.unraw().to_string())) {
            continue;
        }
        let name = Ident::new(&format!("argument_{index}"), Span::mixed_site());
        let pattern = mem::replace(&mut *typed.pat, parse_quote!(#name));
        taken.push(parse_quote!(let #pattern = #name;));
    }
    taken
}

/// Whether the client or the name of the lock may be made of what has this name. An expression may capture it in a text.
fn makes_lock(settings: &Settings, name: &str) -> bool {
    let named = match &settings.name {
        Name::Text(_, captures) => captures.iter().any(|capture| capture == name),
        Name::Expression(expression) => expression.to_token_stream().to_string().contains(name),
    };
    named || mentions(settings.client.to_token_stream(), name)
}

/// Whether the pattern binds all of the argument.
fn is_name(pattern: &Pat) -> bool {
    matches!(pattern, Pat::Ident(PatIdent { by_ref: None, subpat: None, .. }))
}

/// What the arguments of a function are called.
#[derive(Default)]
pub(crate) struct Arguments {
    receiver: Option<Token![self]>,
    names: Vec<Ident>,
}

impl Arguments {
    pub(crate) fn of(signature: &Signature) -> Self {
        let mut arguments = Self::default();
        for argument in &signature.inputs {
            match argument {
                FnArg::Receiver(receiver) => arguments.receiver = Some(receiver.self_token),
                FnArg::Typed(typed) => arguments.visit_pat(&typed.pat),
            }
        }
        arguments
    }

    /// Each argument as an expression.
    pub(crate) fn all(&self) -> Vec<TokenStream> {
        let receiver = self.receiver.iter().map(ToTokens::to_token_stream);
        receiver.chain(self.names.iter().map(ToTokens::to_token_stream)).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known.unraw() == name)
    }

    fn without(&self, missing: &str) -> String {
        let known: Vec<_> = self.names.iter().map(|name| format!("`{}`", name.unraw())).collect();
        match known.as_slice() {
            [] => format!("the function has no argument `{missing}`, and no other"),
            known => format!("the function has no argument `{missing}`; it has {}", known.join(", ")),
        }
    }
}

impl Visit<'_> for Arguments {
    fn visit_pat_ident(&mut self, bound: &PatIdent) {
        self.names.push(bound.ident.clone());
        visit::visit_pat_ident(self, bound);
    }
}
