//! Races: two invocations use the same element of storage or workgroup memory within a dispatch, one of them writes, and no barrier of their
//! workgroup for this memory is between. Also uses of elements that an array does not have. Every use of an element is noted
//! (races.wgsl), in words that are bound behind the arrays.

use super::text::Main;
use crate::Array;
use crate::shader::{Interface, Variant};
use std::cell::Cell;

/// The arrays of a shader that notes: how many workgroups note their memory and float32 of each binding, and the words.
pub const OWN: [&str; 2] = ["race_sizes", "race_words"];

/// Words before those of elements.
const FOUND: usize = 6;
/// Elements of workgroup memory, 16 KiB for each of so many workgroups; what others do with theirs is not noted.
const OF_GROUP: usize = 4096;
const GROUPS: usize = 8;

thread_local! {
    /// A test that plants faults: those of this thread are looked for, and counted.
    static PLANTED: Cell<Option<[u32; 2]>> = const { Cell::new(None) };
}

/// Whether races are looked for.
pub fn sought() -> bool {
    super::chosen("races") || PLANTED.get().is_some()
}

/// Whether they are also looked for in workgroup memory.
fn of_workgroups() -> bool {
    super::chosen("workgroup") || PLANTED.get().is_some()
}

/// The races, and the uses outside of arrays, of what `f` dispatches.
#[cfg(test)]
pub fn counted(f: impl FnOnce()) -> [u32; 2] {
    PLANTED.set(Some([0; 2]));
    f();
    PLANTED.take().unwrap_or_default()
}

/// The numbers of the first, and how many words there are.
pub fn sizes(interface: &Interface, arrays: &[(&str, &Array)], groups: [usize; 3]) -> (Vec<f32>, usize) {
    let groups = if of_workgroups() { groups.iter().product::<usize>().min(GROUPS) } else { 0 };
    let (mut sizes, mut elements) = (vec![groups], groups * OF_GROUP);
    for binding in &interface.bindings {
        let array = arrays.iter().find(|(name, _)| *name == binding.name);
        let length = array.map_or(0, |(_, array)| array.len() * array.field().parts());
        sizes.push(length);
        elements += if binding.written { length } else { 0 };
    }
    (sizes.iter().map(|&size| f32::from_bits(size as u32)).collect(), FOUND + 4 * elements)
}

/// Panics if a dispatch has found something, or counts it.
pub fn check(words: &Array, variant: Variant) {
    let mut first = [0.0; FOUND];
    words.context().read(&mut [(words.memory(), &mut first)], &|| false).expect("words of the device");
    let [races, array, at, outside, outside_array, outside_at] = first.map(f32::to_bits);
    if let Some([a, b]) = PLANTED.get() {
        return PLANTED.set(Some([a + races, b + outside]));
    }
    for (count, what, array, at) in
        [(races, "races", array, at), (outside, "uses outside", outside_array, outside_at)]
    {
        let text = variant.text();
        let name = || declared(&text).nth(array as usize).map_or("?", |array| array.name);
        assert_eq!(count, 0, "{what} of {}: one at {}[{at}]", variant.shader.name, name());
    }
}

/// An array that a shader declares; its line has no other declaration.
struct Declared<'t> {
    name: &'t str,
    of: &'t str,
    memory: Memory<'t>,
}

enum Memory<'t> {
    Storage { binding: &'t str, written: bool },
    Workgroup { length: &'t str },
}

/// The arrays of a text, without those of atomics, which have no races.
fn declared(text: &str) -> impl Iterator<Item = Declared<'_>> {
    text.lines().filter_map(|line| {
        let (before, rest) = line.split("//").next()?.split_once("var<")?;
        let (space, rest) = rest.split_once("> ")?;
        let (name, of) = rest.trim_end().strip_suffix(">;")?.split_once(": array<")?;
        let (of, memory) = match space {
            "workgroup" => {
                let (of, length) = of.split_once(", ")?;
                (of, Memory::Workgroup { length })
            }
            _ => {
                let (_, binding) = before.split_once("@binding(")?;
                (
                    of,
                    Memory::Storage {
                        binding: binding.split_once(')')?.0,
                        written: space.ends_with("read_write"),
                    },
                )
            }
        };
        (!of.starts_with("atomic")).then_some(Declared { name, of, memory })
    })
}

/// The functions through which the elements of these arrays, by their numbers, are used.
fn functions(arrays: &[(usize, Declared<'_>)]) -> String {
    let mut text = include_str!("races.wgsl").to_string();
    let mut storage = format!("race_sizes[0] * {OF_GROUP}u");
    let mut workgroup = format!("race_group * {OF_GROUP}u");
    for (i, Declared { name, of, memory }) in arrays {
        let (length, parts, noted) = match memory {
            Memory::Storage { binding, written } => {
                let parts = if *of == "T" { "PARTS" } else { "1u" };
                let noted = written.then_some((&mut storage, "race_storage", "true"));
                (format!("race_sizes[1u + {binding}u]"), parts, noted)
            }
            Memory::Workgroup { length } => {
                (format!("u32({length})"), "1u", Some((&mut workgroup, "race_workgroup", "race_noted")))
            }
        };
        let inside = format!("race_inside({i}u, at, {length} / {parts})");
        let Some((first, epoch, sought)) = noted else {
            text += &format!("fn {name}_read(at: u32) -> {of} {{ _ = {inside}; return {name}[at]; }}\n");
            continue;
        };
        let note = |what| format!("if {sought} && {inside} {{ race_{what}({i}u, {first}, at, {epoch}); }}");
        text += &format!("fn {name}_read(at: u32) -> {of} {{ {} return {name}[at]; }}\n", note("read"));
        text += &format!("fn {name}_write(at: u32, to: {of}) {{ {} {name}[at] = to; }}\n", note("write"));
        *first += &format!(" + {length}");
    }
    text
}

/// The text with a note of each use.
pub fn noted(text: &str) -> String {
    let seen = |array: &Declared<'_>| !matches!(array.memory, Memory::Workgroup { .. }) || of_workgroups();
    let arrays: Vec<_> = declared(text).enumerate().filter(|(_, array)| seen(array)).collect();
    let binding = text.matches("var<storage").count();
    let [sizes, words] = OWN;
    let own = format!(
        "@group(0) @binding({binding}) var<storage, read> {sizes}: array<u32>;\n\
         @group(0) @binding({}) var<storage, read_write> {words}: array<atomic<u32>>;\n",
        binding + 1
    );
    let names: Vec<_> = arrays.iter().map(|(_, array)| array.name).collect();
    let lines = text.lines().map(|line| {
        let code = line.split("//").next().unwrap_or_default();
        let epoch = match code.trim() {
            "storageBarrier();" => " race_storage++;",
            "workgroupBarrier();" => " race_workgroup++;",
            _ => "",
        };
        if line.contains("var<") { line.to_string() } else { used(code, &names) + epoch }
    });
    let changed = lines.collect::<Vec<_>>().join("\n") + "\n";
    let (before, after) = changed.split_once("@compute").expect("a shader has an entry");
    let text = format!("{before}{own}{}@compute{after}", functions(&arrays));
    let main = Main::of(&text);
    let group = main.parameter("workgroup_id").expect("main knows its workgroup");
    let (parameters, groups) = main.with_groups();
    let number = format!("(({group}.z * {groups}.y + {group}.y) * {groups}.x + {group}.x)");
    main.with(&parameters, &format!("    race_begin({number}, {});\n", main.local()))
}

/// Code with calls in place of the elements of these arrays. A statement ends in its line.
fn used(code: &str, names: &[&str]) -> String {
    let name_before = |at: usize| {
        let head = &code[..at];
        let name = head.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
        (!head[..at - name.len()].ends_with('.') && names.contains(&name)).then_some(name)
    };
    let found = code.match_indices('[').find_map(|(at, _)| Some((at, name_before(at)?)));
    let Some((open, name)) = found else { return code.to_string() };
    let (head, rest) = (&code[..open - name.len()], &code[open + 1..]);
    let mut depth = 1;
    let close = rest.find(|c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        depth == 0
    });
    let (at, behind) = rest.split_at(close.expect("brackets close in a line"));
    let (at, behind) = (used(at, names), &behind[1..]);
    let trimmed = behind.trim_start();
    let compound = ["+=", "-=", "*="].into_iter().find(|op| trimmed.starts_with(op));
    if compound.is_some() || (trimmed.starts_with('=') && !trimmed.starts_with("==")) {
        let (_, value) = trimmed.split_once('=').expect("an assignment");
        let (value, behind) = value.split_once(';').expect("a statement ends in its line");
        let value = used(value, names);
        let value = compound.map_or(value.clone(), |op| format!("{name}_read({at}) {} ({value})", &op[..1]));
        return format!("{head}{name}_write({at}, {value});{}", used(behind, names));
    }
    format!("{head}{name}_read({at}){}", used(behind, names))
}
