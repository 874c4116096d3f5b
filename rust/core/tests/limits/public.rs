//! The public functions of the crate, found in its sources: what the test must call.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Types and modules whose functions read and write no array of a caller by sizes of the caller: parts of arguments,
/// memory, threads. Operands of products are pointers, for unsafe code.
pub const PARTS: [&str; 30] = [
    "Activation",
    "Arena",
    "Argument",
    "Array",
    "Bar",
    "Batch",
    "Budget",
    "Checkpoint",
    "Error",
    "Frame",
    "Given",
    "Kind",
    "Last",
    "Lu",
    "MatrixBars",
    "Member",
    "Order",
    "Product",
    "Region",
    "Route",
    "Scratch",
    "Shared",
    "Side",
    "Split",
    "argument",
    "batch",
    "openmp",
    "parallel",
    "scratch",
    "sizes",
];

/// `module::function` and `Type::method` of every other public function. The objects' own `of`, `check_values` and `route` are called
/// through [`isometry_core::operators`].
pub fn functions() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    module(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs"), "", &mut found);
    found.retain(|name| {
        let (owner, function) = name.split_once("::").unwrap();
        !PARTS.contains(&owner) && !["of", "check_values", "route"].contains(&function)
    });
    found.extend(["operators::view", "operators::check_values", "operators::route"].map(str::to_owned));
    found
}

/// What a public module shows: its own items, its public modules, and what it exports of others.
fn module(file: &Path, name: &str, found: &mut BTreeSet<String>) {
    let text = std::fs::read_to_string(file).unwrap();
    items(&text, name, None, found);
    for child in text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')) {
        module(&beside(file, child), child, found);
    }
    for line in text.split("objects! {\n").skip(1).flat_map(str::lines).take_while(|line| *line != "}") {
        let child = line.split_whitespace().next().unwrap();
        module(&beside(file, child), child, found);
    }
    for exports in text.split("\npub use ").skip(1) {
        let exports = exports.split(';').next().unwrap();
        let Some((child, names)) = exports.rsplit_once("::") else { continue };
        let child = child.trim_start_matches("crate::");
        if !beside(file, child).exists() {
            continue;
        }
        let names: Vec<_> = names.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        for file in files(&beside(file, child)) {
            items(&std::fs::read_to_string(file).unwrap(), name, Some(&names), found);
        }
    }
}

/// The file of a module that `file` declares.
fn beside(file: &Path, child: &str) -> PathBuf {
    let folder = file.parent().unwrap();
    let single = folder.join(format!("{child}.rs"));
    if single.exists() { single } else { folder.join(child).join("mod.rs") }
}

/// The files of a module, among which the methods of a type may be spread.
fn files(file: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|end| end == "rs")).collect()
}

/// Public functions of a file, of these names if any are given.
fn items(text: &str, module: &str, names: Option<&[&str]>, found: &mut BTreeSet<String>) {
    let wanted = |name: &str| names.is_none_or(|names| names.contains(&name));
    let mut owner = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("impl") {
            let rest =
                if rest.starts_with('<') { rest.split_once("> ").map_or("", |(_, rest)| rest) } else { rest };
            let name = rest.trim().split(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
            owner = (!rest.contains(" for ") && wanted(name)).then(|| name.to_owned());
        }
        let Some((indent, rest)) = line.split_once("pub fn ") else { continue };
        let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
        let owner = match (indent, &owner) {
            ("", _) if wanted(name) => module,
            ("    ", Some(owner)) => owner.as_str(),
            _ => continue,
        };
        found.insert(format!("{owner}::{name}"));
    }
}
