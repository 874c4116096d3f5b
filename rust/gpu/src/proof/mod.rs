//! What another GPU may do and the adapter of the tests does not, chosen by the words of `ISOMETRY_GPU_PROOF`. Tests
//! alone have this module; those of Python in an extension with the feature `proof`. Without a word, memory that no call
//! has written is NaN.
//!
//! | word | effect |
//! |---|---|
//! | `arithmetic` | quotients, roots and exponentials are as rough as WGSL permits, sums of products are fused or not |
//! | `limits` | the device has no more than the limits that WebGPU guarantees |
//! | `races` | a test panics where two invocations of a dispatch use an element of storage without a barrier between, and one writes, or where an index is outside of its array; not with `limits` |
//! | `reversed` | the last invocation of a workgroup takes the place of the first, and the last workgroup that of the first |
//! | `unwritten` | workgroup memory is NaN where a shader begins |
//! | `workgroup` | `races` also looks at workgroup memory, which takes ten times as long |
//! | `without=NAME:NUMBER` | a shader, or a module `import/NAME`, lacks one of its barriers |

pub mod races;
#[cfg(test)]
mod tests;
mod text;

use std::borrow::Cow;
use std::env;
use std::sync::OnceLock;
use wgpu::Limits;

/// The environment variable.
pub const CHOICE: &str = "ISOMETRY_GPU_PROOF";

const WORDS: [&str; 6] = ["arithmetic", "limits", "races", "reversed", "unwritten", "workgroup"];

/// The words of it.
fn words() -> &'static [String] {
    static FOUND: OnceLock<Vec<String>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let words: Vec<_> =
            env::var(CHOICE).unwrap_or_default().split_whitespace().map(String::from).collect();
        let known = |word: &String| WORDS.contains(&&**word) || word.starts_with("without=");
        assert!(words.iter().all(known), "{CHOICE}: {words:?}, expected {WORDS:?} and without=NAME:NUMBER");
        words
    })
}

fn chosen(word: &str) -> bool {
    words().iter().any(|chosen| chosen == word)
}

/// How many times its rounding a result may be off where quotients are off by 2.5 units, roots by 4.5 and exponentials by 3 and more in
/// place of one, as `arithmetic` has them and any GPU may: this adds up to so much in activations and cells.
#[cfg(test)]
pub fn roughness() -> f64 {
    let exact = crate::testing::device().is_none_or(|device| device.is_cpu());
    if exact && !chosen("arithmetic") { 1.0 } else { 4.0 }
}

/// The limits of a device.
pub fn limits(found: Limits) -> Limits {
    // immediates are wgpu's own
    let least = || Limits { max_immediate_size: 128, ..Limits::default() };
    if chosen("limits") { least() } else { found }
}

/// The source of a shader or module with its barriers, but for one that `without` names.
pub fn source<'a>(name: &str, source: &'a str) -> Cow<'a, str> {
    let number = |word: &String| {
        let (of, number) = word.strip_prefix("without=")?.rsplit_once(':')?;
        (of == name).then(|| number.parse::<usize>().ok()).flatten()
    };
    if chosen("arithmetic") && name == "import/numbers" {
        let [own, worst] = [include_str!("../shader/arithmetic.wgsl"), include_str!("arithmetic.wgsl")];
        let (before, after) = source.split_once(own).expect("numbers have this arithmetic");
        let [before, after] = [before, after].map(|text| text.replace("fma(", "fused_or_not("));
        return Cow::Owned(before + worst + &after);
    }
    match words().iter().find_map(number) {
        Some(number) => Cow::Owned(text::without_barrier(source, number)),
        None => Cow::Borrowed(source),
    }
}

/// The text of a shader with its modules, changed as the words say.
pub fn changed(mut text: String) -> String {
    if races::sought() {
        text = races::noted(&text);
    }
    if chosen("unwritten") {
        text = text::unwritten(&text);
    }
    if chosen("reversed") {
        text = text::reversed(&text);
    }
    text
}
