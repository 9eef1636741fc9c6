//! The modules of the project's crates, read from their source: what each defines and imports. Code for tests is left
//! out, and a name that is handed on (`pub use`) is followed to the file that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, File, Item, UseTree};

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
        let name = folder.file_name().unwrap();
        let name = name.to_str().unwrap().replace('-', "_");
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
        self.items(name, &parsed.items, relative, folder);
    }

    fn items(&mut self, name: Name, items: &[Item], file: &str, folder: &Path) {
        let mut module = Module {
            file: file.to_owned(),
            ..Module::default()
        };
        for item in items.iter().filter(|item| !is_for_tests(attributes(item))) {
            match item {
                Item::Mod(inner) => {
                    let child = inner.ident.to_string();
                    let below = [&name[..], std::slice::from_ref(&child)].concat();
                    match &inner.content {
                        Some((_, items)) => self.items(below, items, file, &folder.join(&child)),
                        None => {
                            let flat = folder.join(format!("{child}.rs"));
                            let nested = folder.join(&child);
                            let at = if flat.exists() {
                                flat
                            } else {
                                nested.join("mod.rs")
                            };
                            self.module(below, &at, &nested);
                        }
                    }
                }
                Item::Macro(made) if made.ident.is_none() => module.has_macros = true,
                Item::Use(item) => module.import(&item.tree, &mut Vec::new()),
                item => {
                    module.defined.extend(defined(item));
                    module.visit_item(item);
                }
            }
        }
        self.0.insert(name, module);
    }

    /// The module of the file that defines what a path means in a module; `None` for what is none of ours.
    fn resolve(&self, at: &Name, path: &[String], steps: usize) -> Option<(Name, String)> {
        if steps == 0 {
            return None;
        }
        let (first, rest) = path.split_first()?;
        let module = self.0.get(at)?;
        let crate_name = vec![at[0].clone()];
        let child = [&at[..], std::slice::from_ref(first)].concat();
        match first.as_str() {
            "crate" => self.resolve_in(&crate_name, rest, steps - 1),
            "self" => self.resolve_in(at, rest, steps - 1),
            "super" => self.resolve(&at[..at.len() - 1].to_vec(), rest, steps - 1),
            _ if self.0.contains_key(&child) && !rest.is_empty() => {
                self.resolve_in(&child, rest, steps - 1)
            }
            _ if module.imported.contains_key(first) => {
                let path = [&module.imported[first][..], rest].concat();
                self.resolve_import(at, &path, steps - 1)
            }
            _ if module.defined.contains(first) => Some((at.clone(), first.clone())),
            _ => {
                let by_glob = module.globs.iter().find_map(|glob| {
                    let path = [&glob[..], path].concat();
                    self.resolve_import(at, &path, steps - 1)
                });
                // What a macro makes is not read, but what nobody else defines there is made by it.
                by_glob.or_else(|| module.has_macros.then(|| (at.clone(), first.clone())))
            }
        }
    }

    /// A path after the name of a module: a module alone is no item of it.
    fn resolve_in(&self, at: &Name, rest: &[String], steps: usize) -> Option<(Name, String)> {
        if rest.is_empty() {
            None
        } else {
            self.resolve(at, rest, steps)
        }
    }

    /// As [`Self::resolve`], for a path that may begin with the name of a crate.
    fn resolve_import(&self, at: &Name, path: &[String], steps: usize) -> Option<(Name, String)> {
        let first = vec![path.first()?.clone()];
        let inner = [&at[..], &first[..]].concat();
        if self.0.contains_key(&first) && !self.0.contains_key(&inner) {
            return self.resolve_in(&first, &path[1..], steps);
        }
        // An import that has its own name first is of a crate that is none of ours.
        let module = self.0.get(at)?;
        if module
            .imported
            .get(&first[0])
            .is_some_and(|path| path.first() == Some(&first[0]))
        {
            return None;
        }
        self.resolve(at, path, steps)
    }

    /// All arrows between files.
    pub fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (name, module) in &self.0 {
            // What a module hands on is no import of its own; what its code names is.
            for path in &module.paths {
                if let Some((to, item)) = self.resolve_import(name, path, 20) {
                    let to = &self.0[&to].file;
                    if *to != module.file {
                        let into = arrows.entry(module.file.clone()).or_default();
                        into.entry(to.clone()).or_default().insert(item);
                    }
                }
            }
        }
        arrows
    }
}

impl Module {
    fn import(&mut self, tree: &UseTree, path: &mut Name) {
        match tree {
            UseTree::Path(inner) => {
                path.push(inner.ident.to_string());
                self.import(&inner.tree, path);
                path.pop();
            }
            UseTree::Name(name) if name.ident == "self" => {
                if let Some(last) = path.last() {
                    self.imported.insert(last.clone(), path.clone());
                }
            }
            UseTree::Name(name) => {
                let whole = [&path[..], &[name.ident.to_string()]].concat();
                self.imported.insert(name.ident.to_string(), whole);
            }
            UseTree::Rename(name) => {
                let whole = [&path[..], &[name.ident.to_string()]].concat();
                self.imported.insert(name.rename.to_string(), whole);
            }
            UseTree::Glob(_) => self.globs.push(path.clone()),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, path);
                }
            }
        }
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter();
        let names = names.map(|segment| segment.ident.to_string());
        self.paths.insert(names.collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, found: &'ast syn::Macro) {
        // Arguments of macros are paths only in their text.
        let text = found.tokens.to_string().replace(" :: ", "::");
        for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
            let names = word.split("::").filter(|name| !name.is_empty());
            let names: Name = names.map(str::to_owned).collect();
            if !names.is_empty() {
                self.paths.insert(names);
            }
        }
        visit::visit_macro(self, found);
    }

    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}
}

pub fn attributes(item: &Item) -> &[Attribute] {
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
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && matches!(&attribute.meta, syn::Meta::List(list) if list.tokens.to_string() == "test")
    })
}

fn defined(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        _ => return None,
    })
}
