//! The public functions of the crate, found in its sources: what the tests must call, and what must have an example.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Types and modules whose functions read and write no array of a caller by sizes of the caller: parts of arguments,
/// memory, threads. Operands of products are pointers, for unsafe code.
const PARTS: [&str; 21] = [
    "Activation",
    "Arena",
    "Argument",
    "Bar",
    "Budget",
    "Call",
    "Checkpoint",
    "Declaration",
    "Error",
    "Given",
    "Kind",
    "MatrixBars",
    "Order",
    "Product",
    "Run",
    "Scratch",
    "Shared",
    "Side",
    "parallel",
    "scratch",
    "sizes",
];

/// A public function, method, method of a trait, or macro.
#[derive(Clone)]
pub struct Function {
    /// `module::function`, `Type::method`.
    pub name: String,
    /// Without documentation: for the other crates of the repository.
    pub hidden: bool,
    /// Its documentation, or that of its type, has a block of Rust that calls it; or that of its trait has one.
    pub example: bool,
    of_trait: bool,
}

/// The functions that must be called at the limits.
pub fn callable() -> BTreeSet<String> {
    let owner = |name: &str| name.split_once("::").unwrap().0.to_owned();
    let all = all();
    let unknown: Vec<_> = PARTS.iter().filter(|part| all.iter().all(|f| owner(&f.name) != **part)).collect();
    assert!(unknown.is_empty(), "no public functions of {unknown:?}");
    let plain = all.into_iter().filter(|f| !f.of_trait && !f.name.ends_with('!'));
    plain.map(|f| f.name).filter(|name| !PARTS.contains(&&*owner(name))).collect()
}

/// All of them.
pub fn all() -> Vec<Function> {
    let mut found = Vec::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    module(&source.join("lib.rs"), "", false, &mut found);
    found
}

/// What a public module shows: its own items, its public modules, and what it exports of others.
fn module(file: &Path, name: &str, hidden: bool, found: &mut Vec<Function>) {
    let text = std::fs::read_to_string(file).unwrap();
    items(std::slice::from_ref(&text), name, None, hidden, found);
    let mut lines = text.lines().peekable();
    let (mut inner, mut attribute) = (name.to_owned(), false);
    while let Some(line) = lines.next() {
        let line = line.trim();
        if let Some(child) = line.strip_prefix("pub mod ") {
            match child.strip_suffix(';') {
                Some(child) => module(&beside(file, child), child, hidden || attribute, found),
                None => inner = child.trim_end_matches(" {").to_owned(),
            }
        } else if let Some(export) = line.strip_prefix("pub use ") {
            let mut export = export.to_owned();
            while !export.ends_with(';') {
                export += lines.next().unwrap().trim();
            }
            exported(file, &inner, export.trim_end_matches(';'), hidden || attribute, found);
        }
        attribute = line == "#[doc(hidden)]";
    }
    for line in text.split("objects! {\n").skip(1).flat_map(str::lines).take_while(|line| *line != "}") {
        let child = line.split_whitespace().next().unwrap();
        module(&beside(file, child), child, hidden, found);
    }
}

/// What `pub use path::{names}` shows of this crate.
fn exported(file: &Path, name: &str, path: &str, hidden: bool, found: &mut Vec<Function>) {
    let Some((path, names)) = path.rsplit_once("::") else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let (file, path) = path.strip_prefix("crate::").map_or((file, path), |path| (&source, path));
    let target = path.split("::").fold(file.to_owned(), |file, child| beside(&file, child));
    if !target.exists() {
        return;
    }
    let names: Vec<_> = names.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let texts = files(&target).into_iter().map(|file| std::fs::read_to_string(file).unwrap());
    items(&texts.collect::<Vec<_>>(), name, Some(&names), hidden, found);
}

/// The file of a module that `file` declares.
fn beside(file: &Path, child: &str) -> PathBuf {
    let root = ["lib.rs", "mod.rs"].iter().any(|name| file.ends_with(name));
    let folder = if root { file.parent().unwrap().to_owned() } else { file.with_extension("") };
    let single = folder.join(format!("{child}.rs"));
    if single.exists() { single } else { folder.join(child).join("mod.rs") }
}

/// The files of a module, among which the methods of a type may be spread.
fn files(file: &Path) -> Vec<PathBuf> {
    if !file.ends_with("mod.rs") {
        return vec![file.to_owned()];
    }
    let all = std::fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|end| end == "rs")).collect()
}

/// The word that a line starts with after one of these, and which of them.
fn word<'a>(line: &'a str, after: &[&'static str]) -> Option<(&'static str, &'a str)> {
    let (prefix, rest) = after.iter().find_map(|prefix| Some((*prefix, line.strip_prefix(prefix)?)))?;
    Some((prefix, rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?))
}

/// Public functions of files, of these names if any are given.
fn items(texts: &[String], module: &str, names: Option<&[&str]>, hidden: bool, found: &mut Vec<Function>) {
    let wanted = |name: &str| names.is_none_or(|names| names.contains(&name));
    let mut types = HashMap::new();
    for (pass, text) in (0..2).flat_map(|pass| texts.iter().map(move |text| (pass, text))) {
        let (mut docs, mut attribute, mut owner, mut in_trait) = (String::new(), false, None, false);
        for line in text.lines() {
            let (indent, line) = line.split_at(line.len() - line.trim_start().len());
            if let Some(doc) = line.strip_prefix("///") {
                docs += doc.strip_prefix(' ').unwrap_or(doc);
                docs.push('\n');
                continue;
            }
            if line.starts_with("#[") {
                attribute |= line == "#[doc(hidden)]";
                continue;
            }
            if indent.is_empty() && line.starts_with("impl") {
                let rest = line.strip_prefix("impl").unwrap();
                let rest = if rest.starts_with('<') {
                    rest.split_once("> ").map_or("", |(_, rest)| rest)
                } else {
                    rest
                };
                let name = word(rest.trim(), &[""]).map_or("", |(_, name)| name);
                (owner, in_trait) = ((!rest.contains(" for ") && wanted(name)).then_some(name), false);
            } else if indent.is_empty()
                && let Some((kind, name)) =
                    word(line, &["pub struct ", "pub enum ", "pub trait ", "pub unsafe trait "])
            {
                types.insert(name, std::mem::take(&mut docs));
                in_trait = kind.contains("trait");
                owner = (in_trait && wanted(name)).then_some(name);
            }
            let prefixes =
                ["pub fn ", "pub unsafe fn ", "pub const fn ", "fn ", "unsafe fn ", "macro_rules! "];
            if pass == 1
                && let Some((prefix, name)) = word(line, &prefixes)
            {
                let public = prefix.starts_with("pub ") != in_trait || prefix == "macro_rules! ";
                let free = indent.len() != 4 && wanted(name);
                let (place, also) = match owner {
                    Some(owner) if indent.len() == 4 => {
                        (owner, types.get(owner).map_or("", |docs: &String| docs))
                    }
                    _ => (module, ""),
                };
                let exported =
                    prefix != "macro_rules! " || names.is_none() && text.contains("#[macro_export]");
                if public && exported && (free || indent.len() == 4 && owner.is_some()) {
                    let macro_name = if prefix == "macro_rules! " { "!" } else { "" };
                    let mut example = calls(&docs, name) || calls(also, name);
                    example |= in_trait && calls(also, "");
                    let name = format!("{place}::{name}{macro_name}");
                    found.push(Function { name, hidden: hidden || attribute, example, of_trait: in_trait });
                }
            }
            (docs, attribute) = (String::new(), false);
        }
    }
}

/// Whether a block of Rust in a documentation calls the function of that name.
fn calls(docs: &str, name: &str) -> bool {
    let mut blocks = docs.split("```");
    blocks.next();
    // every second part is a block, which begins with its language
    blocks.step_by(2).any(|block| {
        let (language, code) = block.split_once('\n').unwrap_or((block, ""));
        let called = |at: usize| code[at + name.len()..].starts_with(['(', '!', ':']);
        language.is_empty() && (name.is_empty() || code.match_indices(name).any(|(at, _)| called(at)))
    })
}
