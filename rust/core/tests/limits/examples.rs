//! Every public function has an example that runs.

use crate::public;

#[test]
fn every_public_function_has_an_example() {
    let all = public::all();
    assert!(all.iter().filter(|f| !f.hidden).count() > 90, "the public functions are not found");
    let without: Vec<_> = all.iter().filter(|f| !f.hidden && !f.example).map(|f| &*f.name).collect();
    assert!(without.is_empty(), "public functions without an example in their documentation: {without:?}");
}
