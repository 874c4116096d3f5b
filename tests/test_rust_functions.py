"""The public functions of the crate, found in its sources: each has an example and is called at the limits of sizes."""

import re
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "rust/core/src"
LIMITS = SOURCE.parent / "tests/limits"
#: Types and modules whose functions take no arrays together with their sizes: parts of arguments, memory, threads.
#: Operands of products are pointers, for unsafe code.
PARTS = {
    "Activation", "Arena", "Argument", "Bar", "Budget", "Call", "Checkpoint", "Declaration", "Error", "Given", "Kind",
    "MatrixBars", "Order", "Product", "Run", "Scratch", "Shared", "Side", "parallel", "scratch", "sizes",
}  # fmt: skip
#: An item, and the documentation and attributes before it.
ITEM = re.compile(
    r"((?:^ *(?:///|#\[).*\n)*)^( *)(impl|(?:pub )?(?:unsafe |const )*(?:fn|struct|enum|trait)|macro_rules)\b(.*)", re.M
)
#: What a module shows: whether it is for the other crates of the repository, a module, or names of another one.
SHOWN = re.compile(r"^(?: *(#\[doc\(hidden\)\])\n)? *pub (?:mod (\w+)( \{|;)|use ([^;]+);)", re.M)
OBJECTS = re.search(r"^objects! \{\n(.*?)^\}", (SOURCE / "operators/mod.rs").read_text(), re.M | re.S)[1].splitlines()


def calls(docs, name):
    """Whether a block of Rust in a documentation calls the function of that name."""
    blocks = "\n".join(re.findall(r"^ */// ?(.*)", docs, re.M)).split("```")[1::2]
    return any(block.startswith("\n") and re.search(rf"{name}[(!:]", block) for block in blocks)


def beside(file, child):
    """The file of a module that a file declares."""
    folder = file.parent if file.name in ("lib.rs", "mod.rs") else file.with_suffix("")
    single = folder / f"{child}.rs"
    return single if single.exists() else folder / child / "mod.rs"


def functions(texts, module, hidden, names=None):
    """Public functions of a module, or of these names in it: name, hidden, with an example, of a trait."""
    wanted = lambda name: names is None or name in names
    declares = lambda kind: re.match("pub .*(struct|enum|trait)", kind)
    items = [[(*item, re.search(r"\w+", item[3] + "_")[0]) for item in ITEM.findall(text)] for text in texts]
    types = {name: docs for own in items for docs, _, kind, _, name in own if declares(kind)}
    for own in items:
        owner, trait = None, False
        for docs, indent, kind, rest, name in own:
            if kind == "impl" and not indent:
                name = re.match(r"(?:<.*?> )? *(\w*)", rest)[1]
                owner, trait = (name if wanted(name) and " for " not in rest else None), False
            elif declares(kind) and not indent:
                trait = kind.endswith("trait")
                owner = name if trait and wanted(name) else None
            elif kind.endswith("fn") or kind == "macro_rules":
                method = owner is not None and len(indent) == 4
                public = kind.startswith("pub") != (method and trait)
                if kind == "macro_rules":
                    public, name = names is None and "#[macro_export]" in docs, name + "!"
                if public and (method or (len(indent) != 4 and wanted(name))):
                    about = types.get(owner, "") if method else ""
                    example = calls(docs, name) or calls(about, name) or (method and trait and calls(about, ""))
                    place = owner if method else module
                    yield f"{place}::{name}", hidden or "#[doc(hidden)]" in docs, example, method and trait


def shown(file, name="", hidden=False):
    """What a public module shows: its own functions, its public modules, and what it exports of others."""
    text, inner = file.read_text(), name
    yield from functions([text], name, hidden)
    for own, child, end, export in SHOWN.findall(text):
        path, _, names = export.rpartition("::")
        if end == ";":
            yield from shown(beside(file, child), child, hidden or bool(own))
        elif child:
            inner = child
        elif path:
            target = SOURCE / "lib.rs" if path.startswith("crate::") else file
            for part in path.removeprefix("crate::").split("::"):
                target = beside(target, part)
            if target.exists():
                files = sorted(target.parent.glob("*.rs")) if target.name == "mod.rs" else [target]
                texts = [each.read_text() for each in files]
                yield from functions(texts, inner, hidden or bool(own), re.findall(r"\w+", names))
    for line in OBJECTS if file == SOURCE / "operators/mod.rs" else ():
        child = line.split()[0]
        yield from shown(beside(file, child), child, hidden)


def test_every_public_function_has_an_example():
    public = [(name, example) for name, hidden, example, _ in shown(SOURCE / "lib.rs") if not hidden]
    assert len(public) > 90
    assert not [name for name, example in public if not example]


def test_every_public_function_is_called_at_the_limits():
    """Those of traits as methods of every object, whose constructors `operators::view` calls."""
    called = {name for file in LIMITS.glob("*.rs") for name in re.findall(r'"(\w+::\w+)"', file.read_text())}
    made = {line.split()[1].rstrip(";") + "::new" for line in OBJECTS}
    every = {name for name, _, _, of_trait in shown(SOURCE / "lib.rs") if not (of_trait or name.endswith("!"))}
    assert not PARTS - {name.partition("::")[0] for name in every}
    assert not {name for name in every if name.partition("::")[0] not in PARTS} - called - made
