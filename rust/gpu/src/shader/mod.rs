//! Shaders: WGSL files, the modules they import, and their variants.
//!
//! A line `#import "numbers"` in a file is replaced by a module: `numbers` is `bits.wgsl` and `arithmetic.wgsl` with
//! `real.wgsl` or `complex.wgsl`, so that one source serves both fields; the other modules are code that several files
//! share. A constant declared by `override` is set when the pipeline is created. The bindings of a shader are read from
//! its source ([`Interface`]): a dispatch names its arrays as the shader does.

mod interface;
#[cfg(test)]
mod tests;

pub use interface::Interface;

use crate::Field;
use std::hash::{Hash, Hasher};

/// A WGSL file, as a static: shaders are compared by address.
#[derive(Debug)]
pub struct Shader {
    /// The stem of the file.
    pub name: &'static str,
    /// The file.
    pub source: &'static str,
    /// Values of its constants for which it is compiled, for tests: every dispatch uses one of these lists.
    pub variants: &'static [&'static [(&'static str, u32)]],
}

/// Shaders of the files of the caller's folder: a name in Rust, one in messages, the file, and its variants.
macro_rules! shaders {
    ($($name:ident $shader:literal $file:literal $($variants:expr)?,)*) => {$(
        #[doc = $file]
        pub(crate) static $name: $crate::shader::Shader = $crate::shader::Shader {
            name: $shader,
            source: include_str!($file),
            variants: $crate::shader::shaders!(@ $($variants)?),
        };
    )*};
    (@) => { &[&[]] };
    (@ $variants:expr) => { $variants };
}

pub(crate) use shaders;

/// Arrays with the names that a shader has for them: those of variables, or others (`name = array`).
macro_rules! arrays {
    ($($name:ident $(= $array:expr)?),*) => {
        [$((stringify!($name), $crate::shader::arrays!(@ $name $(= $array)?))),*]
    };
    (@ $name:ident) => {{
        let array: &$crate::Array = &$name;
        array
    }};
    (@ $name:ident = $array:expr) => { $array };
}

pub(crate) use arrays;

impl Shader {
    /// For numbers of this field, with the first of its lists of constants.
    pub fn of(&'static self, field: Field) -> Variant {
        Variant { shader: self, field, constants: self.variants[0] }
    }
}

impl PartialEq for Shader {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Shader {}

impl Hash for Shader {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::hash(self, state);
    }
}

/// A shader for numbers of one field, with its constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// The file.
    pub shader: &'static Shader,
    /// The field of the numbers.
    pub field: Field,
    /// Values of its constants.
    pub constants: &'static [(&'static str, u32)],
}

/// `count` workgroups in two axes, number y groups + x, and perhaps some more.
pub(crate) fn groups(count: usize) -> [usize; 3] {
    let along = count.clamp(1, 32768);
    [along, count.div_ceil(along), 1]
}

/// The module of the numbers of a field.
macro_rules! numbers {
    ($field:literal) => {
        concat!(include_str!("bits.wgsl"), include_str!("arithmetic.wgsl"), include_str!($field))
    };
}

/// The modules that files import, by name.
fn module(name: &str, field: Field) -> Option<&'static str> {
    match (name, field) {
        ("numbers", Field::Real) => Some(numbers!("real.wgsl")),
        ("numbers", Field::Complex) => Some(numbers!("complex.wgsl")),
        ("elements", _) => Some(include_str!("elements.wgsl")),
        ("workgroups", _) => Some(include_str!("workgroups.wgsl")),
        ("squares", _) => Some(include_str!("squares.wgsl")),
        ("angle", _) => Some(include_str!("../last/angle.wgsl")),
        ("activation", _) => Some(include_str!("../activation/activation.wgsl")),
        ("biases", _) => Some(include_str!("../activation/biases.wgsl")),
        ("cell", _) => Some(concat!(include_str!("../cell/row.wgsl"), include_str!("../cell/cell.wgsl"))),
        ("delta", _) => Some(include_str!("../delta/delta.wgsl")),
        ("within", _) => Some(include_str!("../delta/within.wgsl")),
        ("gated", _) => Some(include_str!("../gated/gated.wgsl")),
        ("rum", _) => Some(include_str!("../rum/rum.wgsl")),
        ("frame", _) => Some(include_str!("../rum/frame.wgsl")),
        ("steps", _) => {
            Some(concat!(include_str!("../cell/row.wgsl"), include_str!("../recurrence/steps.wgsl")))
        }
        ("packed", _) => Some(include_str!("../cayley/packed.wgsl")),
        ("team", _) => Some(include_str!("../cayley/team.wgsl")),
        ("sweep", _) => Some(include_str!("../cayley/sweep.wgsl")),
        ("skew", _) => Some(include_str!("../cayley/skew.wgsl")),
        _ => None,
    }
}

#[cfg(any(test, feature = "proof"))]
use crate::proof::source;

/// The source of a shader or module of this name.
#[cfg(not(any(test, feature = "proof")))]
fn source<'a>(_: &str, source: &'a str) -> std::borrow::Cow<'a, str> {
    source.into()
}

impl Variant {
    /// The source with its modules.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in source(self.shader.name, self.shader.source).lines() {
            let name = line.strip_prefix("#import \"").and_then(|rest| rest.strip_suffix('"'));
            // an unknown module stays an import, which does not compile
            match name.and_then(|name| Some((name, module(name, self.field)?))) {
                Some((name, module)) => text.push_str(&source(&format!("import/{name}"), module)),
                None => text.push_str(line),
            }
            text.push('\n');
        }
        #[cfg(any(test, feature = "proof"))]
        let text = crate::proof::changed(text);
        text
    }
}
