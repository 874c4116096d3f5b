// Who has written and read each element of the arrays that a dispatch writes: four words of an element, the last writer, its epoch, the
// readers since, their epoch. An epoch of a workgroup ends with a storageBarrier; workgroups have none in common. The first words count the
// races, and name one.

var<private> race_me: u32;     // group 512 + invocation + 1
var<private> race_epoch: u32;

const RACE_SOME: u32 = 511u;          // several of a group, with group 512
const RACE_ALL: u32 = 0xffffffffu;    // of several groups

fn race_begin(group: u32, local: u32) {
    race_me = group * 512u + local + 1u;
    race_epoch = 0u;
}

// Whether what an invocation did in an epoch is before all that this one does, or is its own.
fn race_before(other: u32, epoch: u32) -> bool {
    return other == 0u || other == race_me || (other / 512u == race_me / 512u && epoch < race_epoch);
}

fn race_found(at: u32) {
    atomicAdd(&race_words[0], 1u);
    atomicStore(&race_words[1], at);
}

fn race_read(at: u32) {
    let to = 2u + 4u * at;
    if to + 3u >= arrayLength(&race_words) {
        return;
    }
    if !race_before(atomicLoad(&race_words[to]), atomicLoad(&race_words[to + 1u])) {
        race_found(at);
    }
    // invocations of a subgroup are here at once: each learns of the one before
    let other = atomicExchange(&race_words[to + 2u], race_me);
    if !race_before(other, atomicExchange(&race_words[to + 3u], race_epoch)) {
        let readers = select(RACE_ALL, race_me / 512u * 512u + RACE_SOME, other / 512u == race_me / 512u);
        atomicStore(&race_words[to + 2u], readers);
    }
}

fn race_write(at: u32) {
    let to = 2u + 4u * at;
    if to + 3u >= arrayLength(&race_words) {
        return;
    }
    let other = atomicExchange(&race_words[to], race_me);
    let epoch = atomicExchange(&race_words[to + 1u], race_epoch);
    let reader = atomicExchange(&race_words[to + 2u], 0u);
    if !race_before(other, epoch) || !race_before(reader, atomicLoad(&race_words[to + 3u])) {
        race_found(at);
    }
}

