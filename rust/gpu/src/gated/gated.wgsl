// What the shaders of gated units share besides what those of all cells do.

// Whether the reset gate acts behind W_h.
fn after() -> bool {
    return sizes.setting == 1u;
}
