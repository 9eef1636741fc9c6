//! The modules of the project's crates, read from their source: what each defines and imports. Code for tests is left
//! out, and a name that is handed on (`pub use`) is followed to the file that defines it, by way of the files that hand it on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, File, Ident, Item, UseTree};

use super::arrows::Arrows;

pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().and_then(Path::parent).unwrap().to_owned()
}

/// Each crate's name in paths, and the file where it begins.
pub fn roots() -> Vec<(String, PathBuf)> {
    let mut roots = vec![
        ("rocebench".to_owned(), root().join("src/lib.rs")),
        ("main".to_owned(), root().join("src/main.rs")),
    ];
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().replace('-', "_");
        roots.push((name, folder.join("src/lib.rs")));
    }
    roots
}

/// The path of a module: its crate, then the names of modules.
type Name = Vec<String>;

#[derive(Default)]
struct Module {
    file: String,
    /// Items that it defines.
    defined: BTreeSet<String>,
    /// Names that it imports, with the path of each as it is written.
    imported: BTreeMap<String, Name>,
    /// Modules all of whose names it imports.
    globs: Vec<Name>,
    /// Macros make some of what it defines.
    has_macros: bool,
    /// Paths in its code.
    paths: BTreeSet<Name>,
}

#[derive(Default)]
pub struct Crates(BTreeMap<Name, Module>);

impl Crates {
    /// Reads a crate, from the file where it begins.
    pub fn read(&mut self, name: &str, file: &Path) {
        let folder = file.parent().unwrap();
        self.module(vec![name.to_owned()], file, folder);
    }

    /// Reads a module and those below it, whose files lie in `folder`.
    fn module(&mut self, name: Name, file: &Path, folder: &Path) {
        let text = std::fs::read_to_string(file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed: File = syn::parse_file(&text).unwrap();
        let relative = file.strip_prefix(root()).unwrap().to_str().unwrap();
        if !is_for_tests(&parsed.attrs) {
            self.items(name, &parsed.items, relative, folder);
        }
    }

    fn items(&mut self, name: Name, items: &[Item], file: &str, folder: &Path) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        for item in items.iter().filter(|item| !is_for_tests(parts(item).0)) {
            match item {
                Item::Mod(inner) => {
                    let child = inner.ident.to_string();
                    let below = [&name[..], std::slice::from_ref(&child)].concat();
                    match &inner.content {
                        Some((_, nested)) => self.items(below, nested, file, &folder.join(&child)),
                        None => {
                            let nested = folder.join(&child);
                            let flat = nested.with_extension("rs");
                            let of_child = if flat.exists() { flat } else { nested.join("mod.rs") };
                            self.module(below, &of_child, &nested);
                        }
                    }
                }
                Item::Macro(made) if made.ident.is_none() => module.has_macros = true,
                Item::Use(item) => module.import(&item.tree, &[]),
                item => {
                    module.defined.extend(parts(item).1.map(Ident::to_string));
                    module.visit_item(item);
                }
            }
        }
        self.0.insert(name, module);
    }

    /// The module of the file that defines what a path means in a module; `None` for what is none of ours, whose imports
    /// lead to themselves until no step is left. `via` gets the modules that hand the name on.
    fn resolve(
        &self,
        at: &[String],
        path: &[String],
        steps: usize,
        via: &mut Vec<Name>,
    ) -> Option<(Name, String)> {
        let (first, rest) = path.split_first()?;
        let (module, steps) = (self.0.get(at)?, steps.checked_sub(1)?);
        let child = [at, std::slice::from_ref(first)].concat();
        let other_crate = &child[at.len()..];
        let below = match first.as_str() {
            "crate" => &at[..1],
            // As in `use other::{self as name}`.
            "self" if rest.is_empty() => return Some((at.to_vec(), first.clone())),
            "self" => at,
            "super" => &at[..at.len() - 1],
            _ if self.0.contains_key(&child) && !rest.is_empty() => &child,
            _ if self.0.contains_key(other_crate) && !rest.is_empty() => other_crate,
            _ if module.imported.contains_key(first) => {
                via.push(at.to_vec());
                return self.resolve(at, &[&module.imported[first], rest].concat(), steps, via);
            }
            _ if module.defined.contains(first) => return Some((at.to_vec(), first.clone())),
            _ => {
                let by_glob = module.globs.iter().find_map(|glob| {
                    self.resolve(at, &[glob, path].concat(), steps, &mut Vec::new())
                });
                // What a macro makes is not read, but what nobody else defines there is made by it.
                return by_glob.or_else(|| module.has_macros.then(|| (at.to_vec(), first.clone())));
            }
        };
        self.resolve(below, rest, steps, via)
    }

    /// All arrows between files.
    pub fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (name, module) in &self.0 {
            // What a module hands on is no import of its own; what its code names is.
            for path in &module.paths {
                let mut via = Vec::new();
                if let Some((to, item)) = self.resolve(name, path, 20, &mut via) {
                    // Who takes a name from a file that has it from elsewhere needs both. A folder's own file is its face.
                    for file in via
                        .iter()
                        .map(|through| &self.0[through].file)
                        .filter(|file| !file.ends_with("/mod.rs") && !file.ends_with("/lib.rs"))
                        .chain([&self.0[&to].file])
                    {
                        if *file != module.file {
                            let into = arrows.entry(module.file.clone()).or_default();
                            into.entry(file.clone()).or_default().insert(item.clone());
                        }
                    }
                }
            }
        }
        arrows
    }
}

impl Module {
    fn import(&mut self, tree: &UseTree, path: &[String]) {
        let whole = |name: &Ident| [path, &[name.to_string()]].concat();
        let (local, full) = match tree {
            UseTree::Path(inner) => return self.import(&inner.tree, &whole(&inner.ident)),
            UseTree::Name(name) if name.ident == "self" => {
                (path[path.len() - 1].clone(), path.to_vec())
            }
            UseTree::Name(name) => (name.ident.to_string(), whole(&name.ident)),
            UseTree::Rename(name) => (name.rename.to_string(), whole(&name.ident)),
            UseTree::Glob(_) => return self.globs.push(path.to_vec()),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|inner| self.import(inner, path));
            }
        };
        self.imported.insert(local, full);
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|segment| segment.ident.to_string());
        self.paths.insert(names.collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, found: &'ast syn::Macro) {
        // Arguments of macros are paths only in their text.
        let text = found.tokens.to_string().replace(" :: ", "::");
        for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
            let names: Name =
                word.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
            if !names.is_empty() {
                self.paths.insert(names);
            }
        }
        visit::visit_macro(self, found);
    }

    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}
}

/// The attributes of an item, and its name where it has one.
pub fn parts(item: &Item) -> (&[Attribute], Option<&Ident>) {
    match item {
        Item::Const(item) => (&item.attrs, Some(&item.ident)),
        Item::Enum(item) => (&item.attrs, Some(&item.ident)),
        Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
        Item::Impl(item) => (&item.attrs, None),
        Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
        Item::Mod(item) => (&item.attrs, Some(&item.ident)),
        Item::Static(item) => (&item.attrs, Some(&item.ident)),
        Item::Struct(item) => (&item.attrs, Some(&item.ident)),
        Item::Trait(item) => (&item.attrs, Some(&item.ident)),
        Item::Type(item) => (&item.attrs, Some(&item.ident)),
        Item::Union(item) => (&item.attrs, Some(&item.ident)),
        Item::Use(item) => (&item.attrs, None),
        _ => (&[], None),
    }
}

pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && matches!(&attribute.meta, syn::Meta::List(list)
                if ["test", "all (test , not (loom))"].contains(&&*list.tokens.to_string()))
    })
}
