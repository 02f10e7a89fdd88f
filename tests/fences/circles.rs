//! Finds circles of files that import each other, by parsing a crate's `use`s and paths.
//!
//! An arrow goes from the file that names an item to the file that defines it, through any re-export; a
//! re-export is an arrow, too. Tests and the inside of macros are left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use syn::{
    Attribute, File, Item, ItemMod, UseTree, Visibility,
    visit::{self, Visit},
};

type ModulePath = Vec<String>;

/// One module: its file, and the items that it re-exports, each with its full path.
#[derive(Debug, Default)]
struct Module {
    file: PathBuf,
    reexports: BTreeMap<String, ModulePath>,
    globs: Vec<ModulePath>,
    items: BTreeSet<String>,
}

/// A crate's modules, and every path that a module names.
#[derive(Debug, Default)]
struct Crate {
    modules: BTreeMap<ModulePath, Module>,
    named: Vec<(ModulePath, ModulePath)>,
}

/// The largest sets of more than one file in which each file reaches all others.
pub(crate) fn circles(root: &Path) -> Vec<BTreeSet<PathBuf>> {
    circles_of_arrows(&arrows(root))
}

/// Arrows from each file of a crate to the files whose items it names.
pub(crate) fn arrows(root: &Path) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
    Crate::parse(root).arrows()
}

/// Circles of a crate's modules; a folder is one module.
pub(crate) fn circles_of_modules(root: &Path) -> Vec<BTreeSet<PathBuf>> {
    let above = root.parent().unwrap();
    let module = |file: &Path| -> PathBuf {
        let first = file.strip_prefix(above).unwrap().iter().next().unwrap();
        Path::new(first).with_extension("")
    };
    let mut between: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
    // The crate's own table of contents names all of them.
    for (from, to) in arrows(root).into_iter().filter(|(from, _)| from != root) {
        let from = module(&from);
        let others = to.iter().map(|to| module(to)).filter(|to| *to != from);
        between.entry(from.clone()).or_default().extend(others.collect::<Vec<_>>());
    }
    circles_of_arrows(&between)
}

fn circles_of_arrows(arrows: &BTreeMap<PathBuf, BTreeSet<PathBuf>>) -> Vec<BTreeSet<PathBuf>> {
    let reach = |from: &PathBuf| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(file) = open.pop() {
            for next in arrows.get(file).into_iter().flatten() {
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> =
        arrows.keys().map(|file| (file, reach(file))).collect();
    let together = |file: &PathBuf| -> BTreeSet<PathBuf> {
        reached[file]
            .iter()
            .filter(|other| reached.get(**other).is_some_and(|back| back.contains(file)))
            .map(|other| (*other).clone())
            .collect()
    };
    let all: BTreeSet<BTreeSet<PathBuf>> = arrows.keys().map(together).collect();
    all.into_iter().filter(|circle| circle.len() > 1).collect()
}

impl Crate {
    fn parse(root: &Path) -> Self {
        let mut this = Self::default();
        this.read(root, &[], root.parent().unwrap());
        this
    }

    /// Reads a file and the modules below it; `folder` contains its child modules.
    fn read(&mut self, file: &Path, module: &[String], folder: &Path) {
        let text = std::fs::read_to_string(file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed: File =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.read_items(&parsed.items, file, module, folder);
    }

    fn read_items(&mut self, items: &[Item], file: &Path, module: &[String], folder: &Path) {
        let mut here = Module { file: file.to_owned(), ..Module::default() };
        for item in items.iter().filter(|item| !is_test(attributes(item))) {
            match item {
                Item::Mod(child) => {
                    let path = [module, &[child.ident.to_string()]].concat();
                    self.read_child(child, file, &path, folder);
                }
                Item::Use(import) => {
                    let public = !matches!(import.vis, Visibility::Inherited);
                    for (name, path) in flatten_use(&import.tree) {
                        self.named.push((module.to_vec(), path.clone()));
                        match (public, name) {
                            (true, Some(name)) => drop(here.reexports.insert(name, path)),
                            (true, None) => here.globs.push(path),
                            (false, _) => {}
                        }
                    }
                }
                item => {
                    here.items.extend(name(item));
                    let mut paths = Paths { module, named: &mut self.named };
                    paths.visit_item(item);
                }
            }
        }
        self.modules.insert(module.to_vec(), here);
    }

    fn read_child(&mut self, child: &ItemMod, file: &Path, path: &[String], folder: &Path) {
        let below = folder.join(child.ident.to_string());
        match &child.content {
            Some((_, items)) => self.read_items(items, file, path, &below),
            None => {
                let beside = below.with_extension("rs");
                let file = if beside.is_file() { beside } else { below.join("mod.rs") };
                self.read(&file, path, &below);
            }
        }
    }

    /// Arrows from each file to the files whose items it names.
    fn arrows(&self) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
        let mut arrows: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
        for (module, path) in &self.named {
            let from = &self.modules[module].file;
            if let Some(to) = self.file_of(module, path, 0).filter(|to| *to != from) {
                arrows.entry(from.clone()).or_default().insert(to.clone());
            }
        }
        arrows
    }

    /// The file that defines the item of `path`, named in `module`; `None` for another crate's item.
    fn file_of(&self, module: &[String], path: &[String], depth: usize) -> Option<&PathBuf> {
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (module.to_vec(), &path[1..]),
            "super" => (module[..module.len().checked_sub(1)?].to_vec(), &path[1..]),
            first => {
                let child = [module, &[first.to_owned()]].concat();
                if !self.modules.contains_key(&child) {
                    return None;
                }
                (module.to_vec(), path)
            }
        };
        while let Some((first, others)) = rest.split_first() {
            if first == "super" {
                at.pop();
            } else {
                let child = [&at[..], std::slice::from_ref(first)].concat();
                if !self.modules.contains_key(&child) {
                    break;
                }
                at = child;
            }
            rest = others;
        }
        let found = self.modules.get(&at)?;
        let Some(item) = rest.first().filter(|_| depth < 8) else { return Some(&found.file) };
        if let Some(original) = found.reexports.get(item) {
            return self.file_of(&at, original, depth + 1);
        }
        if !found.items.contains(item) {
            for glob in &found.globs {
                let original = [&glob[..], std::slice::from_ref(item)].concat();
                if let Some(file) = self.file_of(&at, &original, depth + 1) {
                    return Some(file);
                }
            }
        }
        Some(&found.file)
    }
}

/// Collects the paths of an item's body.
struct Paths<'a> {
    module: &'a [String],
    named: &'a mut Vec<(ModulePath, ModulePath)>,
}

impl<'ast> Visit<'ast> for Paths<'_> {
    /// `pub(super)` limits visibility, and needs nothing of the parent file.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|segment| segment.ident.to_string());
        self.named.push((self.module.to_vec(), names.collect()));
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        self.named.extend(
            flatten_use(&import.tree).into_iter().map(|(_, path)| (self.module.to_vec(), path)),
        );
    }
}

/// The paths of a `use`, each with the name that it introduces; `None` for a glob.
fn flatten_use(tree: &UseTree) -> Vec<(Option<String>, ModulePath)> {
    let with = |first: String, tree: &UseTree| {
        let below = flatten_use(tree).into_iter();
        below.map(|(name, path)| (name, [vec![first.clone()], path].concat())).collect()
    };
    match tree {
        UseTree::Path(path) => with(path.ident.to_string(), &path.tree),
        UseTree::Name(name) if name.ident == "self" => vec![(None, Vec::new())],
        UseTree::Name(name) => vec![(Some(name.ident.to_string()), vec![name.ident.to_string()])],
        UseTree::Rename(rename) => {
            vec![(Some(rename.rename.to_string()), vec![rename.ident.to_string()])]
        }
        UseTree::Glob(_) => vec![(None, Vec::new())],
        UseTree::Group(group) => group.items.iter().flat_map(flatten_use).collect(),
    }
}

fn name(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        _ => return None,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let list = attribute.meta.require_list();
        attribute.path().is_ident("cfg")
            && list.is_ok_and(|list| list.tokens.to_string().split_whitespace().eq(["test"]))
    })
}
