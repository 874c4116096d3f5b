// The biases of a pair of features: the shader's array `own` has those of a row.
fn biases_of(pair: u32, n: u32, phi: RowActivation) -> vec2<f32> {
    if !biased(phi) {
        return vec2<f32>(0.0);
    }
    let unit = unit_places(pair, n, phi);
    return vec2<f32>(own[unit.x], own[min(unit.y, n - 1u)]);
}
