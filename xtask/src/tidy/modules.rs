//! The modules of a crate as its source declares them: which names each one has, and which paths its code names.
//!
//! Tests are left out: items under `#[cfg(test)]` and `#[test]` are never read.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{Attribute, Ident, Item, ItemMod, ItemUse, UseTree, Visibility};

/// A path in the source, segment by segment.
pub(super) type Segments = Vec<String>;

/// What a name means in a module.
pub(super) enum Meaning {
    /// An item that this module defines.
    Item,
    /// A submodule, by its number.
    Module(usize),
    /// What another path means.
    Import(Segments),
}

/// One module, inline or in a file.
pub(super) struct Module {
    /// The number of the file that contains it.
    pub(super) file: usize,
    /// The module that declares it.
    pub(super) parent: Option<usize>,
    /// Its names. A name has several meanings in several namespaces, or under several features.
    pub(super) names: BTreeMap<String, Vec<Meaning>>,
    /// The paths from which it imports everything.
    pub(super) globs: Vec<Segments>,
    /// The paths that its code names. A public re-export is not among them.
    pub(super) used: Vec<Segments>,
}

/// The modules of one library or program; the first is its root.
#[derive(Default)]
pub(super) struct Modules {
    /// The files, by number.
    pub(super) files: Vec<PathBuf>,
    /// The modules, by number.
    pub(super) modules: Vec<Module>,
}

impl Modules {
    /// Reads the root file and every file that its modules declare.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut modules = Self::default();
        let folder = root.parent().context("a source file stands in a folder")?;
        modules.file(root, folder, None)?;
        Ok(modules)
    }

    /// Reads one file; its submodules are below `folder`.
    fn file(&mut self, path: &Path, folder: &Path, parent: Option<usize>) -> Result<usize> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let source = syn::parse_file(&text).with_context(|| path.display().to_string())?;
        self.files.push(path.to_owned());
        self.module(&source.items, self.files.len() - 1, folder, parent)
    }

    fn module(&mut self, items: &[Item], file: usize, folder: &Path, parent: Option<usize>) -> Result<usize> {
        let mut reader = Reader::default();
        items.iter().for_each(|item| reader.visit_item(item));
        let number = self.modules.len();
        let Reader { names, globs, used, submodules } = reader;
        self.modules.push(Module { file, parent, names, globs, used });
        for submodule in submodules {
            self.submodule(&submodule, number, file, folder)?;
        }
        Ok(number)
    }

    fn submodule(&mut self, declared: &ItemMod, parent: usize, file: usize, folder: &Path) -> Result<()> {
        let name = declared.ident.unraw().to_string();
        let inner = folder.join(&name);
        let number = match &declared.content {
            Some((_, items)) => self.module(items, file, &inner, Some(parent))?,
            None => {
                let places = [folder.join(format!("{name}.rs")), inner.join("mod.rs")];
                let Some(path) = places.iter().find(|path| path.exists()) else {
                    bail!("{}: module {name} has no file", folder.display());
                };
                self.file(path, &inner, Some(parent))?
            }
        };
        self.modules[parent].names.entry(name).or_default().push(Meaning::Module(number));
        Ok(())
    }
}

/// Whether an item exists only in tests.
pub(super) fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let mut words = Vec::new();
            paths(list.tokens.clone(), &mut words);
            words.contains(&vec!["test".to_owned()]) && !words.contains(&vec!["not".to_owned()])
        }
        syn::Meta::List(_) | syn::Meta::NameValue(_) => false,
    })
}

/// The attributes of an item that can be left out of a build.
#[expect(clippy::wildcard_enum_match_arm, reason = "other kinds of items are not left out")]
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Collects what one module declares.
#[derive(Default)]
struct Reader {
    names: BTreeMap<String, Vec<Meaning>>,
    globs: Vec<Segments>,
    used: Vec<Segments>,
    submodules: Vec<ItemMod>,
}

impl Reader {
    #[expect(clippy::wildcard_enum_match_arm, reason = "other kinds of items have no name of their own")]
    fn define(&mut self, item: &Item) {
        let name = match item {
            Item::Const(item) => &item.ident,
            Item::Enum(item) => &item.ident,
            Item::Fn(item) => &item.sig.ident,
            Item::Macro(syn::ItemMacro { ident: Some(name), .. }) => name,
            Item::Static(item) => &item.ident,
            Item::Struct(item) => &item.ident,
            Item::Trait(item) => &item.ident,
            Item::Type(item) => &item.ident,
            _ => return,
        };
        self.names.entry(name.unraw().to_string()).or_default().push(Meaning::Item);
    }

    fn import(&mut self, tree: &UseTree, mut path: Segments, visibility: &Visibility) {
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.unraw().to_string());
                self.import(&part.tree, path, visibility);
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, path.clone(), visibility));
            }
            UseTree::Glob(_) => self.globs.push(path),
            UseTree::Name(leaf) => self.bind(&leaf.ident, &leaf.ident, path, visibility),
            UseTree::Rename(leaf) => self.bind(&leaf.ident, &leaf.rename, path, visibility),
        }
    }

    fn bind(&mut self, leaf: &Ident, name: &Ident, mut path: Segments, visibility: &Visibility) {
        let mut name = name.unraw().to_string();
        if leaf != "self" {
            path.push(leaf.unraw().to_string());
        } else if name == "self" {
            name = path.last().cloned().unwrap_or_default();
        }
        if matches!(visibility, Visibility::Inherited) {
            self.used.push(path.clone());
        }
        self.names.entry(name).or_default().push(Meaning::Import(path));
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        if for_tests(attributes(item)) {
            return;
        }
        self.define(item);
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        // A file by another path belongs to another crate, which is checked there.
        if !item.attrs.iter().any(|attribute| attribute.path().is_ident("path")) {
            self.submodules.push(item.clone());
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if item.leading_colon.is_none() {
            self.import(&item.tree, Segments::new(), &item.vis);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.used.push(path.segments.iter().map(|segment| segment.ident.unraw().to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        paths(call.tokens.clone(), &mut self.used);
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

/// The paths among the tokens of a macro: identifiers joined by `::`, except fields and methods.
fn paths(tokens: TokenStream, found: &mut Vec<Segments>) {
    let mut path = Segments::new();
    let mut before = String::new();
    for token in tokens {
        let text = match &token {
            TokenTree::Group(group) => {
                paths(group.stream(), found);
                String::new()
            }
            TokenTree::Ident(word) => {
                if before != "::" {
                    found.extend((!path.is_empty()).then(|| std::mem::take(&mut path)));
                }
                if before != "." {
                    path.push(word.unraw().to_string());
                }
                "a word".to_owned()
            }
            TokenTree::Punct(mark) if before == ":" => format!(":{}", mark.as_char()),
            TokenTree::Punct(mark) => mark.as_char().to_string(),
            TokenTree::Literal(_) => String::new(),
        };
        before = text;
    }
    found.extend((!path.is_empty()).then_some(path));
}
