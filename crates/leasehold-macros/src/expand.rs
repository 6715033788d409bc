//! What the attribute turns a function into.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Ident, ItemFn, Type, parse_quote};

use crate::function::{Arguments, take_patterns};
use crate::settings::{OnBusy, Options, Settings};

/// The function with its body under the lock. Its result has the type `returned`.
pub(crate) fn expand(settings: &Settings, function: &ItemFn, returned: &Type) -> TokenStream {
    let Settings { client, name, options, guard, leasehold } = settings;
    let returned = nameable(returned);
    let (facade, asyncness, awaited, typed) = match function.sig.asyncness {
        Some(_) => (quote!(#leasehold), quote!(async), quote!(.await), typed(&returned)),
        None => (quote!(#leasehold::blocking), quote!(), quote!(), quote!()),
    };
    let (lock, ended) = (private("lock"), private("ended"));
    let guard = guard.as_ref().map_or_else(|| quote!(_), ToTokens::to_token_stream);
    let acquired = lock_of(client, &facade, &name.expression(), options);
    let mut locked = function.clone();
    let patterns = take_patterns(&mut locked.sig, settings);
    let (arguments, body) = (Arguments::of(&locked.sig).all(), &function.block);
    let outcome = outcome(leasehold, options.on_busy, &returned);
    // The work names its arguments, so that they move into it as a whole, and are dropped before the lock is released.
    locked.block = parse_quote!({
        let #lock = #acquired;
        let #ended = #lock.run_while_held(#asyncness move |#guard: &#facade::Guard| -> #returned {
            #[allow(clippy::used_underscore_binding)]
            let _ = (#(&#arguments,)*);
            #typed
            #(#patterns)*
            #body
        })#awaited;
        #outcome(#ended)
    });
    // The braces of a body in one line.
    locked.attrs.push(parse_quote!(#[allow(unused_braces)]));
    locked.into_token_stream()
}

/// A return that never happens. The compiler takes the type of an async closure from its first return, and not from its
/// signature, so that it would find a wrong type outside the body.
fn typed(returned: &Type) -> TokenStream {
    let never = private("never");
    quote! {
        if let ::core::option::Option::Some(#never) = ::core::option::Option::None::<#returned> {
            return #never;
        }
    }
}

/// The lock, with its options.
fn lock_of(client: &impl ToTokens, facade: &TokenStream, name: &TokenStream, options: &Options) -> TokenStream {
    let asked = private("client");
    // The compiler points at the client if it is another type.
    let borrowed = quote_spanned!(client.span()=> &#client);
    let setters = setters(options);
    quote!({
        let #asked: &#facade::Client = #borrowed;
        #asked.mutex(#name)#setters
    })
}

fn setters(options: &Options) -> TokenStream {
    let Options { ttl, wait, max_hold, why, on_busy } = options;
    // Without an end of the wait, the lock could not be found busy.
    let wait = wait.or(on_busy.map(|_| Duration::ZERO));
    let durations = [("ttl", *ttl), ("wait", wait), ("max_hold", *max_hold)];
    let durations = durations.into_iter().filter_map(|(setter, duration)| {
        let duration = duration?;
        let (setter, seconds, nanos) = (private(setter), duration.as_secs(), duration.subsec_nanos());
        Some(quote!(.#setter(::core::time::Duration::new(#seconds, #nanos))))
    });
    let why = why.as_ref().map(|why| quote!(.why(#why)));
    quote!(#(#durations)* #why)
}

/// What makes a result of how the work ended. The compiler points at the type if it is not one that can say so.
fn outcome(leasehold: &impl ToTokens, on_busy: Option<OnBusy>, returned: &Type) -> TokenStream {
    let outcome = match on_busy {
        Some(OnBusy::Skip) => "or_skip",
        Some(OnBusy::Error) | None => "or_error",
    };
    let outcome = Ident::new(outcome, returned.span());
    quote!(#leasehold::expanded::#outcome::<#returned>)
}

/// A name that no code of the user can see.
fn private(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// The type, with `_` for what cannot be named in a body.
fn nameable(returned: &Type) -> Type {
    let mut named = returned.clone();
    Inferred.visit_type_mut(&mut named);
    named
}

/// Replaces `impl Trait`.
struct Inferred;

impl VisitMut for Inferred {
    fn visit_type_mut(&mut self, part: &mut Type) {
        if matches!(part, Type::ImplTrait(_)) {
            *part = parse_quote!(_);
        }
        visit_mut::visit_type_mut(self, part);
    }
}
