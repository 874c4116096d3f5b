// Every sequence in its own time k = 0 .. length - 1, of what `sizes` and `lengths` say.

fn steps_of(b: u32) -> u32 {
    if sizes.varied == 1u {
        return lengths[b];
    }
    return sizes.steps;
}

// The row of sequence b at its step k.
fn row(b: u32, k: u32) -> u32 {
    let last = steps_of(b);
    if sizes.reverse == 1u && k < last {
        return (last - 1u - k) * sizes.batch + b;
    }
    return k * sizes.batch + b;
}

