//! Races in storage memory: two invocations use the same element within a dispatch, one of them writes, and no `storageBarrier` of their
//! workgroup is between. Every use of an array that a shader writes is noted (races.wgsl), in words that are bound behind its arrays.

use super::text::Main;
use crate::device::Context;
use crate::{Array, Field};
use isometry_core::Result;
use std::cell::Cell;
use std::fmt::Write;
use std::sync::Arc;

/// The array of the words.
pub const WORDS: &str = "race_words";

thread_local! {
    /// A test that plants races: those of this thread are looked for, and counted.
    static PLANTED: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Whether races are looked for.
pub fn sought() -> bool {
    super::chosen("races") || PLANTED.get().is_some()
}

/// The races of what `f` dispatches.
#[cfg(test)]
pub fn counted(f: impl FnOnce()) -> u32 {
    PLANTED.set(Some(0));
    f();
    PLANTED.take().unwrap_or(0)
}

/// Words for arrays of so many bytes together.
pub fn words(context: &Arc<Context>, bytes: u64) -> Result<Array> {
    Array::room(context, Field::Real, &[2 + bytes as usize])
}

/// Panics if a dispatch has found races, or counts them.
pub fn check(words: &Array, shader: &str) {
    let mut first = [0.0; 2];
    words.context().read(&mut [(words.memory(), &mut first)], &|| false).expect("words of the device");
    let [count, place] = first.map(f32::to_bits);
    match PLANTED.get() {
        Some(before) => PLANTED.set(Some(before + count)),
        None => {
            assert_eq!(count, 0, "races of {shader}: one at element {place} of the arrays that it writes")
        }
    }
}

/// The text with a note of each use.
pub fn noted(text: &str) -> String {
    let declared = |line: &&str| line.contains("var<storage, read_write> ");
    let arrays: Vec<(&str, &str)> = text
        .lines()
        .filter(declared)
        .filter_map(|line| line.split_once("read_write> ")?.1.split_once(';')?.0.split_once(": array<"))
        .map(|(name, of)| (name, of.strip_suffix('>').unwrap_or(of)))
        .collect();
    let binding = text.matches("var<storage").count();
    let mut functions =
        format!("@group(0) @binding({binding}) var<storage, read_write> {WORDS}: array<atomic<u32>>;\n");
    functions += include_str!("races.wgsl");
    let mut first = "0u".to_string();
    for (name, of) in &arrays {
        write!(
            functions,
            "fn {name}_read(at: u32) -> {of} {{ race_read({first} + at); return {name}[at]; }}\n\
             fn {name}_write(at: u32, to: {of}) {{ race_write({first} + at); {name}[at] = to; }}\n"
        )
        .expect("a text");
        first += &format!(" + arrayLength(&{name})");
    }
    let names: Vec<_> = arrays.iter().map(|(name, _)| *name).collect();
    let lines = text.lines().map(|line| {
        let code = line.split("//").next().unwrap_or_default();
        let epoch = if code.trim_start().starts_with("storageBarrier();") { " race_epoch++;" } else { "" };
        if line.contains("var<storage") { line.to_string() } else { used(code, &names) + epoch }
    });
    let text = lines.collect::<Vec<_>>().join("\n") + "\n";
    let (before, after) = text.split_once("@compute").expect("a shader has an entry");
    let text = format!("{before}{functions}@compute{after}");
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
