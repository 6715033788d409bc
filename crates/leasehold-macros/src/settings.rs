//! What stands in the parentheses of the attribute.

use std::time::Duration;

use lock_core::{Note, Ttl, parse_duration};
use proc_macro2::{Span, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Ident, Lit, LitStr, Path, Result, Token, parse_quote};

use crate::mistakes::Mistakes;
use crate::name::Name;

/// How a function is locked.
pub(crate) struct Settings {
    /// What acquires the lock.
    pub(crate) client: Expr,
    pub(crate) name: Name,
    pub(crate) options: Options,
    /// How the function calls the guard.
    pub(crate) guard: Option<Ident>,
    /// Where to find leasehold.
    pub(crate) leasehold: Path,
}

/// How the lock is acquired and held.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) ttl: Option<Duration>,
    pub(crate) wait: Option<Duration>,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) why: Option<LitStr>,
    pub(crate) on_busy: Option<OnBusy>,
}

/// What to do when the lock is still held at the end of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnBusy {
    Skip,
    Error,
}

/// One setting as it is written.
struct Entry {
    key: Ident,
    value: Expr,
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let key = input.call(Ident::parse_any)?;
        input.parse::<Token![=]>()?;
        Ok(Self { key, value: input.parse()? })
    }
}

/// What has been read so far.
#[derive(Default)]
struct Draft {
    seen: Vec<String>,
    client: Option<Expr>,
    name: Option<Name>,
    options: Options,
    guard: Option<Ident>,
    leasehold: Option<Path>,
}

impl Settings {
    /// Reads the settings, and reports all mistakes in them.
    pub(crate) fn read(written: TokenStream) -> Result<Self> {
        let entries = Punctuated::<Entry, Token![,]>::parse_terminated.parse2(written)?;
        let (mut draft, mut mistakes) = (Draft::default(), Mistakes::default());
        for entry in entries {
            mistakes.keep(draft.read(entry));
        }
        let mut require = |key: &str, remedy: &str| {
            if !draft.seen.iter().any(|seen| seen == key) {
                mistakes.add(Error::new(Span::call_site(), remedy));
            }
        };
        require("client", "say which client acquires the lock, such as `client = self.locks`");
        require("name", "name the lock, such as `name = \"sync:{tenant}\"`");
        mistakes.end()?;
        draft.complete().ok_or_else(|| Error::new(Span::call_site(), "`client` and `name` are required"))
    }
}

impl Draft {
    fn read(&mut self, Entry { key, value }: Entry) -> Result<()> {
        let word = key.to_string();
        if self.seen.contains(&word) {
            return Err(Error::new_spanned(&key, format!("`{word}` is given twice")));
        }
        self.seen.push(word.clone());
        match word.as_str() {
            "client" => self.client = Some(value),
            "name" => self.name = Some(Name::read(value)?),
            "ttl" => self.options.ttl = Some(ttl(&value)?),
            "wait" => self.options.wait = Some(duration("wait", &value)?),
            "max_hold" => self.options.max_hold = Some(duration("max_hold", &value)?),
            "why" => self.options.why = Some(why(&value)?),
            "on_busy" => self.options.on_busy = Some(on_busy(&value)?),
            "guard" => self.guard = Some(binding(&value)?),
            "crate" => self.leasehold = Some(path(&value)?),
            _ => return Err(Error::new_spanned(&key, unknown(&word))),
        }
        Ok(())
    }

    fn complete(self) -> Option<Settings> {
        Some(Settings {
            client: self.client?,
            name: self.name?,
            options: self.options,
            guard: self.guard,
            leasehold: self.leasehold.unwrap_or_else(|| parse_quote!(::leasehold)),
        })
    }
}

fn unknown(word: &str) -> String {
    format!(
        "unknown setting `{word}`; there are `client`, `name`, `ttl`, `wait`, `on_busy`, `guard`, `max_hold`, `why` and `crate`"
    )
}

/// A value that is text.
fn text<'a>(value: &'a Expr, remedy: &str) -> Result<&'a LitStr> {
    if let Expr::Lit(literal) = value
        && let Lit::Str(text) = &literal.lit
    {
        return Ok(text);
    }
    Err(Error::new_spanned(value, remedy))
}

fn duration(what: &'static str, value: &Expr) -> Result<Duration> {
    let text = text(value, &format!("write `{what}` as text with a unit, such as \"30s\""))?;
    parse_duration(what, &text.value()).map_err(|invalid| Error::new_spanned(text, invalid))
}

fn ttl(value: &Expr) -> Result<Duration> {
    let ttl = Ttl::new(duration("ttl", value)?).map_err(|invalid| Error::new_spanned(value, invalid))?;
    Ok(ttl.get())
}

fn why(value: &Expr) -> Result<LitStr> {
    let text = text(value, "write `why` as text, such as \"nightly import\"")?;
    Note::check_why(&text.value()).map_err(|invalid| Error::new_spanned(text, invalid))?;
    Ok(text.clone())
}

fn on_busy(value: &Expr) -> Result<OnBusy> {
    const REMEDY: &str = "`on_busy` is \"skip\" or \"error\"";
    match text(value, REMEDY)?.value().as_str() {
        "skip" => Ok(OnBusy::Skip),
        "error" => Ok(OnBusy::Error),
        _ => Err(Error::new_spanned(value, REMEDY)),
    }
}

fn binding(value: &Expr) -> Result<Ident> {
    let name = if let Expr::Path(path) = value { path.path.get_ident() } else { None };
    let name = name.filter(|name| *name != "self").cloned();
    name.ok_or_else(|| Error::new_spanned(value, "name the guard, such as `guard = guard`"))
}

fn path(value: &Expr) -> Result<Path> {
    if let Expr::Path(path) = value {
        return Ok(path.path.clone());
    }
    Err(Error::new_spanned(value, "give the path of leasehold, such as `crate = my_locks::leasehold`"))
}
